"""ONNX readers of the operators that move data without changing it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import DType, Quantisation
from toolchain.ops._onnx import axes_argument, image_axes, image_shape, resolve_axes
from toolchain.ops.spec import OnnxNode


def read_concat(node: OnnxNode) -> None:
    """Every part takes the scale of the whole."""
    from toolchain.ops.concat import Concat

    order = node.axes(*range(node.inputs))
    (axis,) = resolve_axes(node, (int(node.attribute("axis")),), len(order))
    q = node.output_quantisation(node.quantisation(0))
    parts = [node.operand(i, order, quantisation=q) for i in range(node.inputs)]
    node.emit("concat", Concat(order.index(axis)), parts, q, order)


def read_split(node: OnnxNode) -> None:
    from toolchain.ops.split import Split

    order = node.axes(0)
    (axis,) = resolve_axes(node, (int(node.attribute("axis", 0)),), len(order))
    lengths = tuple(node.output_shape(i)[axis] for i in range(node.outputs))
    if sum(lengths) != node.shape(0)[axis]:
        raise ValueError(f"parts of {lengths} of {node.shape(0)[axis]}")
    attributes = Split(order.index(axis), lengths)
    node.emit("split", attributes, [node.operand(0, order)], node.quantisation(0), order)


def read_slice(node: OnnxNode) -> None:
    """Slice, and Gather with constant evenly spaced indices."""
    rank = len(node.shape(0))
    begin, strides = [0] * rank, [1] * rank
    sizes = list(node.shape(0))
    if node.operator == "Gather":
        (axis,) = resolve_axes(node, (int(node.attribute("axis", 0)),), rank)
        indices = [i + sizes[axis] if i < 0 else i for i in node.integers(1)]
        steps = set(np.diff(indices).tolist()) or {1}
        if len(steps) != 1 or 0 in steps:
            raise node.unsupported(
                "its indices are not evenly spaced", "gather with Slice, Split and Concat"
            )
        if not all(0 <= i < sizes[axis] for i in indices):
            raise ValueError(f"indices {indices} of {sizes[axis]}")
        begin[axis], sizes[axis], strides[axis] = indices[0], len(indices), steps.pop()
    else:
        for axis, first, count, step in _slices(node, rank):
            begin[axis], sizes[axis], strides[axis] = first, count, step
    _emit_slice(node, begin, sizes, strides)


def _emit_slice(node: OnnxNode, begin: list[int], sizes: list[int], strides: list[int]) -> None:
    from toolchain.ops.slice import Slice

    order, kept = node.axes(0), node.output_shape()
    if [d for d in sizes if d != 1] != [d for d in kept if d != 1]:
        raise ValueError(f"{sizes} is left, {list(kept)} was expected")
    if len(kept) == len(sizes):
        axes = order
    else:  # a gathered dimension is gone: the result lies as ONNX says
        order = tuple(range(len(sizes)))
        axes = tuple(range(len(kept)))
    stored = tuple(kept[axis] for axis in axes)
    attributes = Slice(
        tuple(begin[axis] for axis in order),
        tuple(sizes[axis] for axis in order),
        tuple(strides[axis] for axis in order),
        stored,
    )
    node.emit("slice", attributes, [node.operand(0, order)], node.quantisation(0), axes)


def _slices(node: OnnxNode, rank: int) -> list[tuple[int, int, int, int]]:
    """For each sliced axis: the axis, the first index, how many, the step."""
    if node.has(1):
        starts, ends = node.integers(1), node.integers(2)
        axes = node.integers(3) if node.has(3) else tuple(range(len(starts)))
        steps = node.integers(4) if node.has(4) else (1,) * len(starts)
    else:
        starts, ends = tuple(node.attribute("starts")), tuple(node.attribute("ends"))
        axes = axes_argument(node, 3) or tuple(range(len(starts)))
        steps = (1,) * len(starts)
    found = []
    numbered = resolve_axes(node, axes, rank)
    for axis, start, end, step in zip(numbered, starts, ends, steps, strict=True):
        indices = range(node.shape(0)[axis])[slice(start, end, step)]
        if not indices:
            raise node.unsupported(f"nothing is left of dimension {axis}")
        found.append((axis, indices[0], len(indices), step))
    return found


def read_pad(node: OnnxNode) -> None:
    """Padding by a constant, stored as the input's quantisation has it, or by reflection."""
    from toolchain.ops.mirror_pad import MirrorPad
    from toolchain.ops.pad import Pad

    mode = node.attribute("mode", "constant")
    if mode not in ("constant", "reflect"):
        raise node.unsupported(f"padding mode {mode!r}", "pad with a constant, or reflect")
    rank = len(node.shape(0))
    amounts = node.integers(1) if node.has(1) else tuple(node.attribute("pads"))
    value = float(node.attribute("value", 0.0))
    unsigned = False
    if node.has(2):
        value = float(node.constant(2).real.reshape(()))
        unsigned = node.constant(2).data.dtype == np.uint8
    axes = resolve_axes(node, node.integers(3), rank) if node.has(3) else tuple(range(rank))
    if len(amounts) != 2 * len(axes) or min(amounts, default=0) < 0:
        raise node.unsupported(f"padding by {list(amounts)}", "crop with Slice")
    around = {axis: (amounts[i], amounts[i + len(axes)]) for i, axis in enumerate(axes)}
    order, q = node.axes(0), node.quantisation(0)
    paddings = tuple(around.get(axis, (0, 0)) for axis in order)
    if mode == "reflect":
        node.emit("mirror_pad", MirrorPad(paddings), [node.operand(0, order)], q, order)
        return
    stored = int(np.clip(np.rint(value / q.scale) + q.zero_point, -128, 127))
    if node.holds_integers:
        if not node.has(2):
            raise node.unsupported("padding of integers with no value", "give it the zero point")
        stored = int(value) - (128 if unsigned else 0)
    attributes = Pad(
        paddings,
        None if stored == q.zero_point else stored,
    )
    node.emit("pad", attributes, [node.operand(0, order)], q, order)


def read_softmax(node: OnnxNode) -> None:
    """Softmax along the innermost dimension in memory; another output scale is requantised."""
    from toolchain.ops.lookup import Lookup
    from toolchain.ops.softmax import Softmax

    rank = len(node.shape(0))
    default = 1 if node.opset < 13 else -1
    (axis,) = resolve_axes(node, (int(node.attribute("axis", default)),), rank)
    if node.opset < 13 and any(size != 1 for size in node.shape(0)[axis + 1 :]):
        if int(np.prod(node.shape(0)[:axis], dtype=np.int64)) * node.shape(0)[rank - 1] != int(
            np.prod(node.shape(0), dtype=np.int64)
        ):
            raise node.unsupported(
                f"over dimensions {axis}..{rank - 1} at once", "export with opset 13 or newer"
            )
        axis = rank - 1
    order = (*(other for other in node.axes(0) if other != axis), axis)
    x = node.operand(0, order)
    natural = Quantisation((1 / 256,), (-128,))
    q = node.output_quantisation(natural)
    if q == natural:
        node.emit("softmax", Softmax(), [x], q, order)
        return
    shape = tuple(node.shape(0)[i] for i in order)
    exact = node.intermediate("softmax", Softmax(), [x], shape, natural)
    node.emit("lookup", Lookup("Identity"), [exact], q, order)


def read_arg_extremum(node: OnnxNode) -> None:
    """ArgMax or ArgMin; the first of equal elements."""
    from toolchain.ops.arg_max import ArgMax

    order = node.axes(0)
    (axis,) = resolve_axes(node, (int(node.attribute("axis", 0)),), len(order))
    if node.attribute("select_last_index", 0):
        raise node.unsupported("select_last_index", "export with select_last_index=0")
    kept = [other for other in order if other != axis]
    axes = tuple(sorted(kept).index(other) for other in kept)
    logical = node.output_shape()
    if node.attribute("keepdims", 1):
        axes = order
    stored = tuple(node.shape(0)[other] for other in kept)
    attributes = ArgMax(order.index(axis), node.operator == "ArgMin", DType.INT64)
    if len(axes) != len(logical):
        raise ValueError(f"an output of shape {list(logical)}")
    node.emit("arg_max", attributes, [node.operand(0, order)], None, axes, stored, DType.INT64)


def read_onnx_resize(node: OnnxNode) -> None:
    """Resize of an image, where TFLite has the same mapping of output to input positions."""
    from toolchain.ops import resize_nearest
    from toolchain.ops._resizing import Resize

    axes = image_axes(node)
    source, target = image_shape(node.shape(0)), image_shape(node.output_shape())
    if node.shape(0)[:2] != node.output_shape()[:2]:
        raise node.unsupported("resizing the batch or the channels")
    mode = node.attribute("mode", "nearest")
    x, q = node.operand(0, axes, source), node.quantisation(0)
    coordinates = node.attribute("coordinate_transformation_mode", "half_pixel")
    if node.operator == "Upsample" or node.opset < 11:
        coordinates = "asymmetric"
    if mode == "nearest":
        wanted = [_nearest(node, coordinates, axis, source, target) for axis in (1, 2)]
        for corners, centers in ((False, False), (False, True), (True, False), (True, True)):
            attributes = Resize(target[1], target[2], corners, centers)
            rows, columns = (
                resize_nearest.nearest(attributes, source[axis], target[axis]) for axis in (1, 2)
            )
            if [rows, columns] == wanted:
                node.emit("resize_nearest", attributes, [x], q, axes, target)
                return
    elif mode in ("linear", "bilinear") and not node.attribute("antialias", 0):
        forms = {"asymmetric": (False, False), "align_corners": (True, False)}
        forms |= {"half_pixel": (False, True)}
        if 1 not in target[1:3]:
            forms |= {"pytorch_half_pixel": (False, True)}
        if coordinates in forms:
            attributes = Resize(target[1], target[2], *forms[coordinates])
            node.emit("resize_bilinear", attributes, [x], q, axes, target)
            return
    raise node.unsupported(
        f"mode {mode!r} with {coordinates!r} coordinates",
        "resize by a whole factor with asymmetric or half_pixel coordinates",
    )


def _nearest(
    node: OnnxNode, coordinates: str, axis: int, source: tuple[int, ...], target: tuple[int, ...]
) -> list[int]:
    """The input index for each output index, as ONNX defines it."""
    old, new = source[axis], target[axis]
    place = np.arange(new, dtype=np.float64)
    scale = old / new
    if coordinates == "align_corners":
        place = place * ((old - 1) / (new - 1) if new > 1 else 0.0)
    elif coordinates == "asymmetric":
        place = place * scale
    elif coordinates == "pytorch_half_pixel" and new == 1:
        place = place * 0.0
    elif coordinates in ("half_pixel", "pytorch_half_pixel"):
        place = (place + 0.5) * scale - 0.5
    else:
        raise node.unsupported(f"{coordinates!r} coordinates")
    rounding = node.attribute("nearest_mode", "round_prefer_floor")
    if node.operator == "Upsample" or node.opset < 11:
        rounding = "floor"
    functions: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
        "floor": np.floor,
        "ceil": np.ceil,
        "round_prefer_floor": lambda p: np.ceil(p - 0.5),
        "round_prefer_ceil": lambda p: np.floor(p + 0.5),
    }
    if rounding not in functions:
        raise node.unsupported(f"nearest_mode {rounding!r}")
    indices = np.clip(functions[rounding](place), 0, old - 1)
    return [int(i) for i in indices]
