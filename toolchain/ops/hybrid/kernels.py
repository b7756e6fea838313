"""Kernels of hybrid products: their calls, the bytes these touch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.convolution.window_f32 import bias_f32, image_f32, window_f32

_WORDS, _VECTORS = "thimble_convolve_hybrid_s8", "thimble_convolve_hybrid_lanes_s8"
_DEPTHWISE = "thimble_depthwise_hybrid_s8"
_TRANSPOSED = "thimble_transpose_conv_hybrid_s8"
_ROWS, _LANE_ROWS = "thimble_rows_hybrid_s8", "thimble_rows_hybrid_lanes_s8"
_TAPS = MappingProxyType(
    {_WORDS: 4, _VECTORS: packing.VECTOR_BYTES, _ROWS: 4, _LANE_ROWS: packing.VECTOR_BYTES}
)
"""Taps of a filter that lie together."""


def convolution_kernel(
    op: kit.AnyOperator,
    core: kit.Core,
    window: kit.Struct,
    chosen: Range,
    *,
    in_turn: bool,
    groups: int = 1,
) -> kit.Kernel:
    """A convolution of `window`. On Helium filters lie in the order in which vectors are loaded.
    `groups`: of channels; each filter reads the channels of one.

    Raises UnsupportedError as `check_sums` does.
    """
    weights, function = op.input(kit.WEIGHTS), _VECTORS if core.mve else _WORDS
    check_sums(op, weights, chosen)
    sizes = {name: window.members[name] for name in ("kernel_h", "kernel_w", "pad_top", "pad_left")}
    pointwise = sizes == {"kernel_h": 1, "kernel_w": 1, "pad_top": 0, "pad_left": 0}
    whole_depth = window.members["depth"] == window.members["input_c"]
    gathered = not (pointwise and whole_depth)
    params = _params(weights, chosen, in_turn=in_turn, gathered=gathered)
    call = _product_call(function, window, params, kit.Input(kit.INPUT), kit.Output(0))
    constants = product_constants(weights, core, groups=groups)
    return kit.Kernel((call,), _extents, constants, scratch_bytes=_scratch_bytes(call))


@dataclass(frozen=True)
class Images:
    """Images of one pixel, each quantised by itself: `count` from `input` on, whose products go to
    `output`. A quantised image lies in `scratch`. `name` is added to those of the constants.
    """

    count: int
    range: Range
    output: kit.Output | kit.Scratch
    input: kit.Input
    scratch: kit.Scratch
    name: str = ""


def images_call(
    op: kit.AnyOperator, weights: kit.Tensor, core: kit.Core, images: Images
) -> kit.Call:
    """Products of images and weights [units, depth] per tensor or per unit.

    Raises UnsupportedError as `check_sums` does.
    """
    units, depth = weights.shape
    check_sums(op, weights, images.range)
    shapes = (images.count, 1, 1, depth), (images.count, 1, 1, units)
    window = window_f32(*shapes, kit.Window((1, 1)), kit.Activation.NONE)
    params = _params(weights, images.range, in_turn=False, gathered=False)
    call = _product_call(
        _VECTORS if core.mve else _WORDS, window, params, images.input, images.output, images.name
    )
    own: dict[str, kit.Argument] = {"bias": kit.NULL, "scratch": images.scratch}
    return replace(call, arguments={**call.arguments, **own})


def _product_call(
    function: str,
    window: kit.Struct,
    params: kit.Struct,
    image: kit.Input,
    output: kit.Output | kit.Scratch,
    name: str = "",
) -> kit.Call:
    """A call with constants whose keys end in `name`, the operator's bias, and its scratch."""
    return kit.Call(
        function,
        {
            "window": window,
            "params": params,
            "input": image,
            "parameters": kit.Packed(f"parameters{name}"),
            "taps": kit.Packed(f"taps{name}"),
            "scales": kit.Packed(f"scales{name}"),
            "bias": kit.Input(kit.BIAS),
            "scratch": kit.Scratch(),
            "output": output,
        },
    )


def images_extents(touched: kit.Touched) -> kit.Extents:
    """The bytes that one `images_call` touches."""
    call, extents = touched.call, _extents(touched)
    scratch, output = call.find("scratch"), call.find("output")
    source, named = call.find("input"), call.find("parameters")
    assert (
        isinstance(scratch, kit.Scratch)
        and isinstance(source, kit.Input)
        and isinstance(named, kit.Packed)
    )
    name = named.key.removeprefix("parameters")
    used = scratch.at_bytes + extents.scratch
    written = extents.outputs
    if isinstance(output, kit.Scratch):
        written, used = {}, max(used, output.at_bytes + written[0].end)
    elif isinstance(output, kit.Output):
        written = {0: _moved(written[0], output.at)}
    return kit.Extents(
        {kit.INPUT: _moved(extents.inputs[kit.INPUT], source.at)},
        written,
        {f"{key}{name}": size for key, size in extents.constants.items()},
        scratch=used,
        largest=extents.largest,
    )


def _moved(extent: kit.Extent, elements: int) -> kit.Extent:
    """The extent of floats so many elements further on."""
    begin, end = extent.begin + 4 * elements, extent.end + 4 * elements
    return kit.Extent(begin, end, touched=extent.end - extent.begin)


def rows_kernel(op: kit.AnyOperator, core: kit.Core, window: kit.Struct) -> kit.Kernel:
    """A fully connected layer of stored rows, a `window` of pixels. Raises UnsupportedError as
    `check_sums` does.
    """
    weights = op.input(kit.WEIGHTS)
    check_sums(op, weights, Range.ONNX)
    arguments: dict[str, kit.Argument] = {
        "window": window,
        "params": _params(weights, Range.SYMMETRIC, in_turn=False, gathered=False),
        "input": kit.Input(kit.INPUT),
        "zero_point": op.input(kit.INPUT).q.zero_point,
        "parameters": kit.Packed("parameters"),
        "taps": kit.Packed("taps"),
        "scales": kit.Packed("scales"),
        "bias": kit.Input(kit.BIAS),
        "output": kit.Output(0),
    }
    call = kit.Call(_LANE_ROWS if core.mve else _ROWS, arguments)
    return kit.Kernel((call,), _extents, product_constants(weights, core))


def _params(weights: kit.Tensor, chosen: Range, *, in_turn: bool, gathered: bool) -> kit.Struct:
    members: dict[str, kit.Argument] = {
        "range": kit.Symbol(chosen.value),
        "in_turn": int(in_turn),
        "gathered": int(gathered),
        "per_channel": int(len(weights.q.scales) > 1),
        "shifted": int(any(weights.q.zero_points)),
    }
    return kit.Struct("thimble_hybrid_params", members)


def product_constants(
    weights: kit.Tensor, core: kit.Core, *, groups: int = 1, name: str = ""
) -> tuple[kit.Constant, ...]:
    """The constants of a product with weights in so many groups, whose keys end in `name`."""
    return (
        kit.Constant(f"parameters{name}", lambda: _packed(weights, groups, core), "filters"),
        kit.Constant(f"taps{name}", lambda: _taps_sums(weights), "sums of weights"),
        _scales(weights, len(weights.q.scales), name),
    )


def depthwise_kernel(op: kit.AnyOperator, window: kit.Struct, chosen: Range) -> kit.Kernel:
    """A depthwise convolution whose filters have one zero point, and one scale or one each. Each
    output is one int32 sum of values less the zero point, in LiteRT, too: it may wrap.
    """
    weights = op.input(kit.WEIGHTS)
    first: dict[str, kit.Argument] = {
        "window": window,
        "range": kit.Symbol(chosen.value),
        "filters_zero_point": weights.q.zero_points[0],
    }
    return _unpacked_kernel(_DEPTHWISE, weights, weights.shape[3], first)


def transposed_kernel(op: kit.AnyOperator, window: kit.Struct) -> kit.Kernel:
    """A transposed convolution whose filters have one scale or one each."""
    weights = op.input(kit.WEIGHTS)
    return _unpacked_kernel(_TRANSPOSED, weights, weights.shape[0], {"window": window})


def _unpacked_kernel(
    function: str, weights: kit.Tensor, filters: int, first: Mapping[str, kit.Argument]
) -> kit.Kernel:
    """A call that reads so many filters as the model has them, after the arguments `first`."""
    arguments: dict[str, kit.Argument] = {
        **first,
        "input": kit.Input(kit.INPUT),
        "filters": kit.Input(kit.WEIGHTS),
        "scales": kit.Packed("scales"),
        "bias": kit.Input(kit.BIAS),
        "scratch": kit.Scratch(),
        "output": kit.Output(0),
    }
    call = kit.Call(function, arguments)
    constants = (_scales(weights, filters),)
    return kit.Kernel((call,), _extents, constants, scratch_bytes=_scratch_bytes(call))


def check_sums(op: kit.AnyOperator, weights: kit.Tensor, chosen: Range) -> None:
    """Raise UnsupportedError where a sum may wrap, unless images are quantised around 0.

    LiteRT sums these in one int32, which wraps as Thimble's. The part of another zero point is
    rounded to float on its own.
    """
    if chosen is Range.SYMMETRIC:
        return
    zero_points = _zero_points(weights).astype(np.int64)
    magnitudes = np.abs(_filters(weights) - zero_points[:, None]).sum(axis=1)
    if 255 * int(magnitudes.max(initial=0)) >= 1 << 31:
        raise op.refused(
            f"a sum of {weights.elements // weights.shape[0]} products may "
            "overflow int32, which the reference rounds in parts; make the layer smaller"
        )


def _filters(weights: kit.Tensor) -> NDArray[np.int8]:
    """Weights [filters, ...] as [filters, taps]."""
    return kit.constant_of(weights).reshape(weights.shape[0], -1).astype(np.int8)


def _zero_points(weights: kit.Tensor) -> NDArray[np.int32]:
    """The zero point of each filter."""
    return np.broadcast_to(np.array(weights.q.zero_points, np.int32), weights.shape[0])


def _taps_sums(weights: kit.Tensor) -> NDArray[np.int32]:
    """The sum of each filter's weights less their zero point."""
    filters = _filters(weights)
    sums = filters.sum(axis=1, dtype=np.int64) - filters.shape[1] * _zero_points(weights)
    return np.asarray(sums, np.int32)


def _packed(weights: kit.Tensor, groups: int, core: kit.Core) -> NDArray[np.int32]:
    filters, zeros = np.split(_filters(weights), groups), np.split(_zero_points(weights), groups)
    parts = zip(filters, zeros, strict=True)
    return np.concatenate([packed_matrix(part, zero, core) for part, zero in parts])


def packed_matrix(
    filters: NDArray[np.int8], zero_points: NDArray[np.int32], core: kit.Core
) -> NDArray[np.int32]:
    """Filters [filters, taps] with their zero points, as the kernel of the core reads them."""
    turns = packing.vector_turns if core.mve else packing.word_turns
    return packing.pack_sums(filters, zero_points, turns)


def matrix_bytes(filters: int, taps: int, lanes: bool) -> int:
    """Bytes of a `packed_matrix`, on Helium with `lanes`."""
    return kit.round_up(filters, 4) * (4 + kit.round_up(taps, packing.VECTOR_BYTES if lanes else 4))


def _scales(weights: kit.Tensor, count: int, name: str = "") -> kit.Constant:
    """So many scales: those of the filters, or the one of all."""
    scales = np.array(weights.q.scales, np.float32)
    return kit.Constant(f"scales{name}", lambda: np.broadcast_to(scales, count), "of the weights")


def _image_bytes(call: kit.Call) -> int:
    return call["window.input_h"] * call["window.input_w"] * call["window.input_c"]


def _scratch_bytes(call: kit.Call) -> int:
    if call.function in (_ROWS, _LANE_ROWS):
        return 0
    if call.function in (_DEPTHWISE, _TRANSPOSED) or not call["params.gathered"]:
        return _image_bytes(call)
    return kit.round_up(_image_bytes(call), 4) + kit.round_up(_taps(call), 4)


def _taps(call: kit.Call) -> int:
    """Taps of a filter."""
    return call["window.kernel_h"] * call["window.kernel_w"] * call["window.depth"]


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    channels = call["window.output_c"]
    read, constants = {kit.INPUT: image_f32(call, "input")}, {"scales": 4 * channels}
    if isinstance(call.arguments["bias"], kit.Input) and touched.has(kit.BIAS):
        read[kit.BIAS] = bias_f32(call)
    if call.function == _DEPTHWISE:
        read[kit.WEIGHTS] = kit.whole(call["window.kernel_h"] * call["window.kernel_w"] * channels)
    elif call.function == _TRANSPOSED:
        read[kit.WEIGHTS] = kit.whole(_taps(call) * channels)
    else:
        groups = call["window.input_c"] // call["window.depth"]
        padded = groups * kit.round_up(channels // groups, 4)
        filters = padded * kit.round_up(_taps(call), _TAPS[call.function])
        constants |= {"parameters": 4 * padded + filters, "taps": 4 * channels}
        constants["scales"] = 4 * (channels if call["params.per_channel"] else 1)
    if call.function in (_ROWS, _LANE_ROWS):
        read[kit.INPUT] = kit.whole(call["window.input_w"] * call["window.input_c"])
    return kit.Extents(
        read,
        {0: image_f32(call, "output")},
        constants,
        scratch=_scratch_bytes(call),
        largest=kit.reach_in(call, "window"),
    )
