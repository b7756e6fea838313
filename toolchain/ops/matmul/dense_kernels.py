"""Kernels of fully connected layers: their calls, the bytes these touch, and cost terms."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Op, Tensor
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.arithmetic.requant import requant
from toolchain.ops.arithmetic.single_rounding import single_rounding
from toolchain.ops.convolution.packing import (
    VECTOR_BYTES,
    Scaling,
    fit_joined,
    fit_nibbles,
    folded_bias,
    largest_sums,
    nibble_turns,
    nibble_vector_turns,
    once_code,
    pack_common_scaling,
    pack_fully_connected,
    pack_joined,
    pack_sums,
    single_rounding_scaling,
    vector_turns,
    word_turns,
)
from toolchain.ops.convolution.window_f32 import (
    bias_f32,
    filters_f32,
    image_f32,
    reach_f32,
    window_f32,
)
from toolchain.ops.extents import Extents, round_up, whole
from toolchain.ops.kernel import (
    NULL,
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Output,
    Packed,
    SafeOverlap,
    Scratch,
    Struct,
    Terms,
    Touched,
    constant,
    numbers,
)
from toolchain.ops.matmul.product_kernels import column_bytes, product_terms
from toolchain.ops.readers import int16
from toolchain.ops.terms import is_narrow, slow_channels
from toolchain.ops.walks import lead_bytes
from toolchain.ops.weighted import BIAS, INPUT, WEIGHTS, bias_of, constant_of
from toolchain.ops.window import Window

SUMS = 3
"""The input of a partial layer with the sums of the blocks before it."""
_WORDS, _JOINED, _VECTORS, _FOUR_BITS, _FOUR_BIT_VECTORS = (
    "thimble_fully_connected_s8",
    "thimble_fully_connected_joined_s8",
    "thimble_fully_connected_lanes_s8",
    "thimble_fully_connected_s4",
    "thimble_fully_connected_lanes_s4",
)
_PARTIAL_WORDS, _PARTIAL_VECTORS = (
    "thimble_partial_fully_connected_s8",
    "thimble_partial_fully_connected_lanes_s8",
)
_TURNS = MappingProxyType(
    {
        _WORDS: word_turns,
        _PARTIAL_WORDS: word_turns,
        _VECTORS: vector_turns,
        _PARTIAL_VECTORS: vector_turns,
        _FOUR_BITS: nibble_turns,
        _FOUR_BIT_VECTORS: nibble_vector_turns,
    }
)
_TAPS = MappingProxyType(
    {
        _WORDS: (4, 4),
        _PARTIAL_WORDS: (4, 4),
        _JOINED: (4, 4),
        _VECTORS: (VECTOR_BYTES, VECTOR_BYTES),
        _PARTIAL_VECTORS: (VECTOR_BYTES, VECTOR_BYTES),
        _FOUR_BITS: (4, 2),
        _FOUR_BIT_VECTORS: (VECTOR_BYTES, VECTOR_BYTES // 2),
    }
)
"""How many taps of a unit lie together, and in how many bytes."""
_SCALING_BYTES = 4 * 9
"""Of four units: multipliers, their low parts, shift codes."""


def sum_factors(op: Op, graph: Graph) -> NDArray[np.float64]:
    """The real scale of a sum in steps of the output: one per output, or one for all."""
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    factors: NDArray[np.float64] = x.q.scale * np.array(weights.q.scales) / y.q.scale
    return factors


def dense_scaling(op: Op, graph: Graph, activation: Activation) -> Scaling:
    """How sums are scaled. Raises UnsupportedError if no integers scale them as LiteRT does."""
    x, y = graph.input(op, INPUT), graph.output(op)
    filters, factors = _filters(op, graph), sum_factors(op, graph)
    bias = bias_of(op, graph, len(filters))
    clamp = clamp_range(activation, y)
    scales = single_rounding_scaling(bias, filters, x.q.zero_point, factors, clamp, y.q.zero_point)
    if scales is None:
        raise UnsupportedError(_no_multiplier(op, float(factors.max())))
    return scales


def _no_multiplier(op: Op, factor: float) -> str:
    return (
        f"operator {op.name!r}: no integer multiplier rounds as LiteRT's double scale {factor} "
        "does; change the output scale in its last digits"
    )


def four_bit_filters(op: Op, graph: Graph) -> bool:
    """Whether the kernel takes filters packed in four bits."""
    return graph.input(op, WEIGHTS).shape[1] > 4 and fit_nibbles(_filters(op, graph))


def dense_kernel(op: Op, graph: Graph, activation: Activation, core: Core) -> Kernel:
    """Thimble's int8 kernel, on every core: CMSIS-NN's rounds twice, LiteRT once.

    On Helium filters lie in the order in which vectors are loaded. Units are joined where an
    instruction has two products.

    Raises UnsupportedError as `dense_scaling` does.
    """
    if known_filters(graph.input(op, WEIGHTS)) is None:
        return computed_kernel(op, graph, activation)
    scales = dense_scaling(op, graph, activation)
    y = graph.output(op)
    common = len(sum_factors(op, graph)) == 1
    function = _VECTORS if core.mve else _WORDS
    if four_bit_filters(op, graph):
        function = _FOUR_BIT_VECTORS if core.mve else _FOUR_BITS
    elif function == _WORDS and not core.multiplies_alone and _join(op, graph):
        function = _JOINED
    arguments: dict[str, Argument] = {
        **_sizes(op, graph),
        "requant": requant(y.q.zero_point, *clamp_range(activation, y)),
        "input": Input(INPUT),
        "parameters": Packed("parameters"),
        "common": Packed("scaling") if common else NULL,
        "output": Output(0),
    }
    call = Call(function, arguments)
    parameters = Constant(
        "parameters",
        lambda: (
            pack_joined(scales, common)
            if function == _JOINED
            else pack_fully_connected(scales, common, _TURNS[function])
        ),
        "biases, filters and requantisation",
    )
    scaling = Constant("scaling", lambda: pack_common_scaling(scales), "multipliers and shifts")
    return Kernel(
        (call,),
        _dense_extents,
        constants=(parameters, scaling) if common else (parameters,),
        find_overlaps=lambda: (SafeOverlap(INPUT, 0, _lead_bytes(call)),),
        find_terms=lambda: _dense_terms(op, graph, call),
    )


def known_filters(weights: Tensor) -> NDArray[np.int8] | None:
    """Filters less their zero point; None where they are computed, or int8 does not hold that."""
    if weights.constant is None:
        return None
    zero_point = 0 if weights.q.per_channel else weights.q.zero_point
    centred = weights.constant.astype(np.int16) - zero_point
    fit = centred.min(initial=0) >= -128 and centred.max(initial=0) <= 127
    return centred.astype(np.int8) if fit else None


def _filters(op: Op, graph: Graph) -> NDArray[np.int8]:
    found = known_filters(graph.input(op, WEIGHTS))
    assert found is not None
    return found


def computed_kernel(op: Op, graph: Graph, activation: Activation) -> Kernel:
    """The kernel of filters that are not packed.

    Raises UnsupportedError as `dense_scaling` does. Sums wrap, as LiteRT's.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    sizes, factor = _sizes(op, graph), float(sum_factors(op, graph)[0])
    bias = np.abs(bias_of(op, graph, sizes["units"]).astype(np.int64))
    reach = [
        max(127 - operand.q.zero_point, 128 + operand.q.zero_point) for operand in (x, weights)
    ]
    largest = min(int(bias.max(initial=0)) + sizes["depth"] * reach[0] * reach[1], 1 << 31)
    clamp = clamp_range(activation, y)
    fit = single_rounding(factor, largest, *(bound - y.q.zero_point for bound in clamp))
    if fit is None:
        raise UnsupportedError(_no_multiplier(op, factor))
    shape: dict[str, Argument] = {
        "batch": numbers((1, 1, 1)),
        "rows": sizes["rows"],
        "depth": sizes["depth"],
        "columns": sizes["units"],
        "multiplier": fit.multiplier,
        "code": once_code(fit, largest),
    }
    for name, operand in (("x", x), ("y", weights)):
        members: dict[str, Argument] = {"outer": sizes["depth"], "inner": 1}
        members |= {"batch": numbers((0, 0, 0)), "zero_point": operand.q.zero_point}
        shape[name] = Struct("thimble_matmul_operand", members)
    arguments: dict[str, Argument] = {
        "shape": Struct("thimble_matmul_shape", shape),
        "low": fit.low,
        "requant": requant(y.q.zero_point, *clamp),
        "input": Input(INPUT),
        "filters": Input(WEIGHTS),
        "bias": Input(BIAS),
        "scratch": Scratch(),
        "output": Output(0),
    }
    call = Call("thimble_fully_connected_computed_s8", arguments)
    return Kernel(
        (call,),
        _computed_extents,
        scratch_bytes=column_bytes(call),
        find_terms=lambda: product_terms(call),
    )


def _computed_extents(touched: Touched) -> Extents:
    call = touched.call
    rows, depth, units = (call[f"shape.{name}"] for name in ("rows", "depth", "columns"))
    read = {INPUT: whole(rows * depth), WEIGHTS: whole(units * depth)}
    if touched.has(BIAS):
        read[BIAS] = whole(units, 4)
    return Extents(read, {0: whole(rows * units)}, scratch=column_bytes(call))


def _join(op: Op, graph: Graph) -> bool:
    """Whether filters are joined two by two, which saves every other unpacking."""
    filters = _filters(op, graph)
    zero_point = graph.input(op, INPUT).q.zero_point
    bias = bias_of(op, graph, len(filters))
    return fit_joined(filters, largest_sums(bias, filters, zero_point, partial=False))


def partial_dense_kernel(op: Op, graph: Graph, core: Core) -> Kernel:
    """The kernel of int32 sums over some of the inputs; on Helium that for vectors."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    function = _PARTIAL_VECTORS if core.mve else _PARTIAL_WORDS

    def packed() -> NDArray[np.int32]:
        filters = constant_of(weights).astype(np.int8)
        bias = folded_bias(bias_of(op, graph, len(filters)), filters, x.q.zero_point)
        return pack_sums(filters, bias, _TURNS[function])

    arguments: dict[str, Argument] = {
        **_sizes(op, graph),
        "input": Input(INPUT),
        "parameters": Packed("parameters"),
        "sums": Input(SUMS),
        "output": Output(0),
    }
    call = Call(function, arguments)
    adds = bool(op.inputs[SUMS])
    return Kernel(
        (call,),
        _partial_extents,
        constants=(Constant("parameters", packed, "biases and filters"),),
        # Each sum is read just before it is written.
        find_overlaps=lambda: (SafeOverlap(SUMS),) if adds else (),
        find_terms=lambda: _partial_terms(call, adds=adds),
    )


def int16_dense_kernel(op: Op, graph: Graph, activation: Activation) -> Kernel:
    """Thimble's int16 kernel: CMSIS-NN keeps 16 bits of the factor, LiteRT all of them.

    Raises UnsupportedError if the output's scale is too small for the sums.
    """
    y = graph.output(op)
    low, high = clamp_range(activation, y)
    factors, sizes = sum_factors(op, graph), _sizes(op, graph)
    bias = int16.bias_of(op, graph, BIAS, sizes["units"])
    largest = sizes["depth"] * 2.0**22 + np.abs(bias.astype(np.float64))  # 16 bits times 8, each
    if (largest * factors).max() >= 2.0**31:
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: the output scale {y.q.scale:g} is too fine; its values may "
            "not fit 32 bits, where the reference wraps"
        )
    params = {**sizes, "per_channel": int(len(factors) > 1), "min": low, "max": high}
    arguments: dict[str, Argument] = {
        "params": Struct("thimble_fully_connected_s16_params", params),
        "input": Input(INPUT),
        "filters": Input(WEIGHTS),
        "bias": Packed("bias"),
        "factors": Packed("factors"),
        "output": Output(0),
    }
    return Kernel(
        (Call("thimble_fully_connected_s16", arguments),),
        _int16_extents,
        constants=(
            constant("bias", bias, "int64"),
            constant("factors", factors.view(np.int64), "bytes of doubles: scale of a sum"),
        ),
    )


def float_dense_kernel(op: Op, graph: Graph, activation: Activation) -> Kernel:
    """The float32 kernel: a convolution of a line of pixels, each a row of inputs."""
    rows, depth, units = _sizes(op, graph).values()
    window = window_f32((1, 1, rows, depth), (1, 1, rows, units), Window((1, 1)), activation)
    arguments: dict[str, Argument] = {
        "window": window,
        "input": Input(INPUT),
        "filters": Input(WEIGHTS),
        "bias": Input(BIAS),
        "output": Output(0),
    }
    note = "A fully connected layer is a convolution of a line of pixels: each row is a pixel."
    return Kernel((Call("thimble_convolve_f32", arguments, note=note),), _float_extents)


def _sizes(op: Op, graph: Graph) -> dict[str, int]:
    """Rows, inputs and outputs of each."""
    units, depth = graph.input(op, WEIGHTS).shape
    return {"rows": graph.input(op, INPUT).elements // depth, "depth": depth, "units": units}


def _lead_bytes(call: Call) -> int:
    """Row by row; four units are written before the row is read again for the next four."""
    units, depth, rows = call["units"], call["depth"], np.arange(call["rows"])
    early = (units - 1) // 4 * 4
    lead = lead_bytes(rows * units + early, rows * depth) if early else 0
    return max(lead, lead_bytes(rows * units, rows * depth))


def _parameter_bytes(call: Call) -> int:
    """Biases and filters of units, four at a time."""
    taps, size_bytes = _TAPS[call.function]
    return round_up(call["units"], 4) * (4 + size_bytes * -(-call["depth"] // taps))


def _dense_extents(touched: Touched) -> Extents:
    call = touched.call
    constants = {"parameters": _parameter_bytes(call)}
    if isinstance(call.arguments["common"], Packed):
        constants["scaling"] = _SCALING_BYTES
    else:
        constants["parameters"] += round_up(call["units"], 4) // 4 * _SCALING_BYTES
    read, written = (whole(call["rows"] * call[size]) for size in ("depth", "units"))
    return Extents({0: read}, {0: written}, constants)


def _partial_extents(touched: Touched) -> Extents:
    call = touched.call
    sums = whole(call["rows"] * call["units"], 4)
    read = {0: whole(call["rows"] * call["depth"])}
    if touched.has(SUMS):
        read[SUMS] = sums
    return Extents(read, {0: sums}, {"parameters": _parameter_bytes(call)})


def _int16_extents(touched: Touched) -> Extents:
    call = touched.call
    rows, depth, units = (call[f"params.{name}"] for name in ("rows", "depth", "units"))
    return Extents(
        {0: whole(rows * depth, 2), 1: whole(units * depth)},
        {0: whole(rows * units, 2)},
        {"bias": 8 * units, "factors": 8 * (units if call["params.per_channel"] else 1)},
    )


def _float_extents(touched: Touched) -> Extents:
    call = touched.call
    read = {0: image_f32(call, "input"), 1: filters_f32(call, call["window.depth"])}
    if touched.has(BIAS):
        read[BIAS] = bias_f32(call)
    return Extents(read, {0: image_f32(call, "output")}, largest=reach_f32(call))


def _dense_terms(op: Op, graph: Graph, call: Call) -> Terms:
    """Four units at a time."""
    rows, depth, units = call["rows"], call["depth"], call["units"]
    words, blocks = -(-depth // 4), rows * -(-units // 4)
    _, slow = slow_channels(op, graph)
    if call.function in (_VECTORS, _FOUR_BIT_VECTORS):
        slow_units = int(
            np.repeat(np.logical_or.reduceat(slow, range(0, units, 4)), 4)[:units].sum()
        )
        vectors = -(-depth // VECTOR_BYTES)
        return {
            "call": 1.0,
            "row": rows,
            "row vector": rows * vectors * (call.function == _FOUR_BIT_VECTORS),
            "block": blocks,
            "vector": blocks * vectors,
            "slow unit": rows * slow_units,
        }
    fours = slow[: units // 4 * 4].reshape(-1, 4)
    slow_units = 4 * rows * int(fours.any(axis=1).sum())
    quick = 0 if is_narrow(op, graph) else rows * (units // 4) - slow_units // 4
    terms: Terms = {
        "call": 1.0,
        "row": rows,
        "block": blocks,
        "quick block": quick,
        "lone unit": rows * units - 4 * quick - slow_units,
        "slow unit": slow_units,
        "uneven block": blocks * bool(depth % 4),
    }
    if call.function == _WORDS:
        return {**terms, "word": blocks * words}
    terms = {**terms, "row word": rows * words}
    if call.function == _FOUR_BITS:
        return {**terms, "four-bit word": blocks * words}
    at_once = quick if isinstance(call.arguments["common"], Packed) and not depth % 4 else 0
    return {
        **terms,
        "quick block": quick - at_once,
        "block at once": at_once,
        "joined word": blocks * words,
    }


def _partial_terms(call: Call, *, adds: bool) -> Terms:
    rows, depth, units = call["rows"], call["depth"], call["units"]
    blocks, (taps, _) = rows * -(-units // 4), _TAPS[call.function]
    if call.function == _PARTIAL_VECTORS:
        return {
            "call": 1.0,
            "row": rows,
            "block": blocks,
            "vector": blocks * -(-depth // taps),
            "output": rows * units,
            "added": rows * units * adds,
        }
    return {
        "call": 1.0,
        "row": rows,
        "block": blocks,
        "word": blocks * -(-depth // taps),
        "uneven block": blocks * bool(depth % 4),
        "output": rows * units,
        "added": rows * units * adds,
    }
