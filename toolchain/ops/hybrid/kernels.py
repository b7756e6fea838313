"""Kernels of hybrid products: their calls, the bytes these touch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Op, Tensor
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.convolution.packing import VECTOR_BYTES, pack_sums, vector_turns, word_turns
from toolchain.ops.convolution.window_f32 import bias_f32, image_f32, reach_f32, window_f32
from toolchain.ops.extents import Extent, Extents, round_up, whole
from toolchain.ops.kernel import (
    NULL,
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Output,
    Packed,
    Scratch,
    Struct,
    Symbol,
    Touched,
)
from toolchain.ops.weighted import BIAS, INPUT, WEIGHTS, constant_of
from toolchain.ops.window import Window

_WORDS, _VECTORS = "thimble_convolve_hybrid_s8", "thimble_convolve_hybrid_lanes_s8"
_DEPTHWISE = "thimble_depthwise_hybrid_s8"
_ROWS, _LANE_ROWS = "thimble_rows_hybrid_s8", "thimble_rows_hybrid_lanes_s8"
_TAPS = MappingProxyType({_WORDS: 4, _VECTORS: VECTOR_BYTES, _ROWS: 4, _LANE_ROWS: VECTOR_BYTES})
"""Taps of a filter that lie together."""


def convolution_kernel(
    op: Op, graph: Graph, core: Core, window: Struct, chosen: Range, *, in_turn: bool
) -> Kernel:
    """A convolution of `window`. On Helium filters lie in the order in which vectors are loaded.

    Raises UnsupportedError as `check_sums` does.
    """
    weights, function = graph.input(op, WEIGHTS), _VECTORS if core.mve else _WORDS
    check_sums(op, weights, chosen)
    sizes = {name: window.members[name] for name in ("kernel_h", "kernel_w", "pad_top", "pad_left")}
    pointwise = sizes == {"kernel_h": 1, "kernel_w": 1, "pad_top": 0, "pad_left": 0}
    whole_depth = window.members["depth"] == window.members["input_c"]
    gathered = not (pointwise and whole_depth)
    groups = graph.input(op, INPUT).shape[-1] // weights.shape[-1]
    arguments: dict[str, Argument] = {
        "window": window,
        "params": _params(weights, chosen, in_turn=in_turn, gathered=gathered),
        "input": Input(INPUT),
        "parameters": Packed("parameters"),
        "taps": Packed("taps"),
        "scales": Packed("scales"),
        "bias": Input(BIAS),
        "scratch": Scratch(),
        "output": Output(0),
    }
    call = Call(function, arguments)
    constants = _constants(weights, groups, core)
    return Kernel((call,), _extents, constants, scratch_bytes=_scratch_bytes(call))


@dataclass(frozen=True)
class Images:
    """Images of one pixel, each quantised by itself: `count` from `input` on, whose products go to
    `output`. A quantised image lies in `scratch`. `name` is added to those of the constants.
    """

    count: int
    range: Range
    output: Output | Scratch
    input: Input
    scratch: Scratch
    name: str = ""


def images_call(op: Op, weights: Tensor, core: Core, images: Images) -> Call:
    """Products of images and weights [units, depth] per tensor or per unit.

    Raises UnsupportedError as `check_sums` does.
    """
    units, depth = weights.shape
    check_sums(op, weights, images.range)
    shapes = (images.count, 1, 1, depth), (images.count, 1, 1, units)
    arguments: dict[str, Argument] = {
        "window": window_f32(*shapes, Window((1, 1)), Activation.NONE),
        "params": _params(weights, images.range, in_turn=False, gathered=False),
        "input": images.input,
        "parameters": Packed(f"parameters{images.name}"),
        "taps": Packed(f"taps{images.name}"),
        "scales": Packed(f"scales{images.name}"),
        "bias": NULL,
        "scratch": images.scratch,
        "output": images.output,
    }
    return Call(_VECTORS if core.mve else _WORDS, arguments)


def images_constants(weights: Tensor, core: Core, name: str = "") -> tuple[Constant, ...]:
    """Of an `images_call` whose constants have this `name`."""
    found = _constants(weights, 1, core)
    return tuple(replace(one, key=f"{one.key}{name}") for one in found)


def images_extents(touched: Touched) -> Extents:
    """Those of one `images_call`."""
    call, found = touched.call, _extents(touched)
    scratch, output = call.find("scratch"), call.find("output")
    source, named = call.find("input"), call.find("parameters")
    assert isinstance(scratch, Scratch) and isinstance(source, Input) and isinstance(named, Packed)
    name = named.key.removeprefix("parameters")
    used = scratch.at_bytes + found.scratch
    written = found.outputs
    if isinstance(output, Scratch):
        written, used = {}, max(used, output.at_bytes + written[0].end)
    elif isinstance(output, Output):
        written = {0: _moved(written[0], output.at)}
    return Extents(
        {INPUT: _moved(found.inputs[INPUT], source.at)},
        written,
        {f"{key}{name}": size for key, size in found.constants.items()},
        scratch=used,
        largest=found.largest,
    )


def _moved(extent: Extent, elements: int) -> Extent:
    """The extent of floats so many elements further on."""
    begin, end = extent.begin + 4 * elements, extent.end + 4 * elements
    return Extent(begin, end, touched=extent.end - extent.begin)


def rows_kernel(op: Op, graph: Graph, core: Core, window: Struct) -> Kernel:
    """A fully connected layer of stored rows, a `window` of pixels. Raises UnsupportedError as
    `check_sums` does.
    """
    weights = graph.input(op, WEIGHTS)
    check_sums(op, weights, Range.ONNX)
    arguments: dict[str, Argument] = {
        "window": window,
        "params": _params(weights, Range.SYMMETRIC, in_turn=False, gathered=False),
        "input": Input(INPUT),
        "zero_point": graph.input(op, INPUT).q.zero_point,
        "parameters": Packed("parameters"),
        "taps": Packed("taps"),
        "scales": Packed("scales"),
        "bias": Input(BIAS),
        "output": Output(0),
    }
    call = Call(_LANE_ROWS if core.mve else _ROWS, arguments)
    return Kernel((call,), _extents, _constants(weights, 1, core))


def _params(weights: Tensor, chosen: Range, *, in_turn: bool, gathered: bool) -> Struct:
    members: dict[str, Argument] = {
        "range": Symbol(chosen.value),
        "in_turn": int(in_turn),
        "gathered": int(gathered),
        "per_channel": int(len(weights.q.scales) > 1),
        "shifted": int(any(weights.q.zero_points)),
    }
    return Struct("thimble_hybrid_params", members)


def _constants(weights: Tensor, groups: int, core: Core) -> tuple[Constant, ...]:
    return (
        Constant("parameters", lambda: _packed(weights, groups, core), "filters"),
        Constant("taps", lambda: _taps_sums(weights), "sums of weights"),
        _scales(weights),
    )


def depthwise_kernel(op: Op, graph: Graph, window: Struct, chosen: Range) -> Kernel:
    """A depthwise convolution whose filters have one zero point. Each output is one int32 sum of
    values less the zero point, in LiteRT, too: it may wrap.
    """
    weights = graph.input(op, WEIGHTS)
    arguments: dict[str, Argument] = {
        "window": window,
        "range": Symbol(chosen.value),
        "filters_zero_point": weights.q.zero_points[0],
        "input": Input(INPUT),
        "filters": Input(WEIGHTS),
        "scales": Packed("scales"),
        "bias": Input(BIAS),
        "scratch": Scratch(),
        "output": Output(0),
    }
    call = Call(_DEPTHWISE, arguments)
    return Kernel((call,), _extents, (_scales(weights),), scratch_bytes=_scratch_bytes(call))


def check_sums(op: Op, weights: Tensor, chosen: Range) -> None:
    """Raise UnsupportedError where a sum may wrap, unless images are quantised around 0.

    LiteRT sums these in one int32, which wraps as Thimble's. What another zero point adds is
    rounded to float on its own.
    """
    if chosen is Range.SYMMETRIC:
        return
    zero_points = _zero_points(weights).astype(np.int64)
    magnitudes = np.abs(_filters(weights) - zero_points[:, None]).sum(axis=1)
    if 255 * int(magnitudes.max(initial=0)) >= 1 << 31:
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: a sum of {weights.elements // weights.shape[0]} products may "
            "overflow int32, which the reference rounds in parts; make the layer smaller"
        )


def _filters(weights: Tensor) -> NDArray[np.int8]:
    """Weights [filters, ...] as [filters, taps]."""
    return constant_of(weights).reshape(weights.shape[0], -1).astype(np.int8)


def _zero_points(weights: Tensor) -> NDArray[np.int32]:
    """Of each filter."""
    return np.broadcast_to(np.array(weights.q.zero_points, np.int32), weights.shape[0])


def _taps_sums(weights: Tensor) -> NDArray[np.int32]:
    """Of each filter, its weights less its zero point."""
    filters = _filters(weights)
    sums = filters.sum(axis=1, dtype=np.int64) - filters.shape[1] * _zero_points(weights)
    return np.asarray(sums, np.int32)


def _packed(weights: Tensor, groups: int, core: Core) -> NDArray[np.int32]:
    turns = vector_turns if core.mve else word_turns
    parts = np.split(_filters(weights), groups)
    zeros = np.split(_zero_points(weights), groups)
    return np.concatenate(
        [pack_sums(part, zero, turns) for part, zero in zip(parts, zeros, strict=True)]
    )


def packed_matrix(filters: NDArray[np.int8], core: Core) -> NDArray[np.int32]:
    """Filters [filters, taps] without zero points, as the kernel of the core reads them."""
    turns = vector_turns if core.mve else word_turns
    return pack_sums(filters, np.zeros(len(filters), np.int32), turns)


def matrix_bytes(filters: int, taps: int, lanes: bool) -> int:
    """Of `packed_matrix`, on Helium with `lanes`."""
    return round_up(filters, 4) * (4 + round_up(taps, VECTOR_BYTES if lanes else 4))


def _scales(weights: Tensor) -> Constant:
    return Constant("scales", lambda: np.array(weights.q.scales, np.float32), "of the weights")


def _image_bytes(call: Call) -> int:
    return call["window.input_h"] * call["window.input_w"] * call["window.input_c"]


def _scratch_bytes(call: Call) -> int:
    if call.function in (_ROWS, _LANE_ROWS):
        return 0
    if call.function == _DEPTHWISE or not call["params.gathered"]:
        return _image_bytes(call)
    return round_up(_image_bytes(call), 4) + round_up(_taps(call), 4)


def _taps(call: Call) -> int:
    """Of a filter."""
    return call["window.kernel_h"] * call["window.kernel_w"] * call["window.depth"]


def _extents(touched: Touched) -> Extents:
    call = touched.call
    channels = call["window.output_c"]
    read, constants = {INPUT: image_f32(call, "input")}, {"scales": 4 * channels}
    if isinstance(call.arguments["bias"], Input) and touched.has(BIAS):
        read[BIAS] = bias_f32(call)
    if call.function == _DEPTHWISE:
        read[WEIGHTS] = whole(call["window.kernel_h"] * call["window.kernel_w"] * channels)
    else:
        groups = call["window.input_c"] // call["window.depth"]
        padded = groups * round_up(channels // groups, 4)
        filters = padded * round_up(_taps(call), _TAPS[call.function])
        constants |= {"parameters": 4 * padded + filters, "taps": 4 * channels}
        constants["scales"] = 4 * (channels if call["params.per_channel"] else 1)
    if call.function in (_ROWS, _LANE_ROWS):
        read[INPUT] = whole(call["window.input_w"] * call["window.input_c"])
    return Extents(
        read,
        {0: image_f32(call, "output")},
        constants,
        scratch=_scratch_bytes(call),
        largest=reach_f32(call),
    )
