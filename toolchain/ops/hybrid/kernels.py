"""Kernels of hybrid products: their calls, the bytes these touch."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Op, Tensor
from toolchain.ops.convolution.common import BIAS, INPUT, WEIGHTS, constant_of
from toolchain.ops.convolution.packing import VECTOR_BYTES, pack_sums, vector_turns, word_turns
from toolchain.ops.convolution.window_f32 import bias_f32, image_f32, reach_f32
from toolchain.ops.extents import Extents, round_up, whole
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Output,
    Packed,
    Scratch,
    Struct,
    Touched,
)

_WORDS, _VECTORS = "thimble_convolve_hybrid_s8", "thimble_convolve_hybrid_lanes_s8"
_DEPTHWISE = "thimble_depthwise_hybrid_s8"
_TAPS = MappingProxyType({_WORDS: 4, _VECTORS: VECTOR_BYTES})
"""Taps of a filter that lie together."""
_LARGEST_PRODUCT = 255 * 128


def convolution_kernel(
    op: Op, graph: Graph, core: Core, window: Struct, *, asymmetric: bool, in_turn: bool
) -> Kernel:
    """A convolution of `window`. On Helium filters lie in the order in which vectors are loaded.

    Raises UnsupportedError where a sum may overflow int32.
    """
    weights, function = graph.input(op, WEIGHTS), _VECTORS if core.mve else _WORDS
    _check_sums(op, weights.elements // weights.shape[0])
    sizes = {name: window.members[name] for name in ("kernel_h", "kernel_w", "pad_top", "pad_left")}
    pointwise = sizes == {"kernel_h": 1, "kernel_w": 1, "pad_top": 0, "pad_left": 0}
    whole_depth = window.members["depth"] == window.members["input_c"]
    params = {
        "asymmetric": int(asymmetric),
        "in_turn": int(in_turn),
        "gathered": int(not (pointwise and whole_depth)),
        "per_channel": int(len(weights.q.scales) > 1),
    }
    groups = graph.input(op, INPUT).shape[-1] // weights.shape[-1]
    arguments: dict[str, Argument] = {
        "window": window,
        "params": Struct("thimble_hybrid_params", params),
        "input": Input(INPUT),
        "parameters": Packed("parameters"),
        "taps": Packed("taps"),
        "scales": Packed("scales"),
        "bias": Input(BIAS),
        "scratch": Scratch(),
        "output": Output(0),
    }
    call = Call(function, arguments)
    constants = (
        Constant("parameters", lambda: _packed(weights, groups, core), "filters"),
        Constant("taps", lambda: _filters(weights).sum(axis=1, dtype=np.int32), "sums of weights"),
        _scales(weights),
    )
    return Kernel((call,), _extents, constants, scratch_bytes=_scratch_bytes(call))


def depthwise_kernel(op: Op, graph: Graph, window: Struct) -> Kernel:
    """A depthwise convolution. Raises UnsupportedError where a sum may overflow int32."""
    weights = graph.input(op, WEIGHTS)
    _check_sums(op, weights.shape[1] * weights.shape[2])
    arguments: dict[str, Argument] = {
        "window": window,
        "input": Input(INPUT),
        "filters": Input(WEIGHTS),
        "scales": Packed("scales"),
        "bias": Input(BIAS),
        "scratch": Scratch(),
        "output": Output(0),
    }
    call = Call(_DEPTHWISE, arguments)
    return Kernel((call,), _extents, (_scales(weights),), scratch_bytes=_scratch_bytes(call))


def _check_sums(op: Op, taps: int) -> None:
    if taps * _LARGEST_PRODUCT >= 1 << 31:
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: a sum of {taps} products may overflow int32, where the "
            "reference wraps; make the layer smaller"
        )


def _filters(weights: Tensor) -> NDArray[np.int8]:
    """Weights [filters, ...] as [filters, taps]."""
    return constant_of(weights).reshape(weights.shape[0], -1).astype(np.int8)


def _packed(weights: Tensor, groups: int, core: Core) -> NDArray[np.int32]:
    turns = vector_turns if core.mve else word_turns
    parts = np.split(_filters(weights), groups)
    zeros = np.zeros(weights.shape[0] // groups, np.int32)
    return np.concatenate([pack_sums(part, zeros, turns) for part in parts])


def _scales(weights: Tensor) -> Constant:
    return Constant("scales", lambda: np.array(weights.q.scales, np.float32), "of the weights")


def _image_bytes(call: Call) -> int:
    return call["window.input_h"] * call["window.input_w"] * call["window.input_c"]


def _scratch_bytes(call: Call) -> int:
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
    if touched.has(BIAS):
        read[BIAS] = bias_f32(call)
    if call.function == _DEPTHWISE:
        read[WEIGHTS] = whole(call["window.kernel_h"] * call["window.kernel_w"] * channels)
    else:
        groups = call["window.input_c"] // call["window.depth"]
        padded = groups * round_up(channels // groups, 4)
        filters = padded * round_up(_taps(call), _TAPS[call.function])
        constants |= {"parameters": 4 * padded + filters, "taps": 4 * channels}
        constants["scales"] = 4 * (channels if call["params.per_channel"] else 1)
    return Extents(
        read,
        {0: image_f32(call, "output")},
        constants,
        scratch=_scratch_bytes(call),
        largest=reach_f32(call),
    )
