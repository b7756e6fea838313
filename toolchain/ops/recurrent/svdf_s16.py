"""SVDF with an int16 state.

Arithmetic: LiteRT `reference_ops::EvalIntegerSVDF`, which clamps only to the types' ranges and
scales with two roundings, as CMSIS-NN's kernel does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, State, Tensor
from toolchain.ops.arithmetic.fixed_point import (
    check_sums,
    held_in_int32,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.cmsis_structs import context, dims, factor, limits
from toolchain.ops.convolution.cmsis_nn import require_int32
from toolchain.ops.convolution.common import constant_of
from toolchain.ops.extents import Extents, whole, widths
from toolchain.ops.forms import Choice, OldForm
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    Scratch,
    Struct,
    Touched,
)
from toolchain.ops.preference import NoKernelError
from toolchain.ops.spec import Array, ReadOp, TensorType, TfliteBinding, TfliteNode, WrittenOp

INPUT, FEATURES, TIME, BIAS, STATE = range(5)
_FARTHEST = -31
"""The right shift for which CMSIS-NN computes 1 << 31; it takes every sum below 2**30 to 0."""
Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Svdf(Attributes):
    """The results of `rank` filters are added to make one output."""

    rank: int


def rank_of(op: Op) -> int:
    """How many filters are added to make one output."""
    assert isinstance(op.attributes, Svdf)
    return op.attributes.rank


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, features, time, state = (graph.input(op, i) for i in (INPUT, FEATURES, TIME, STATE))
    if len(x.shape) != 2 or len(features.shape) != 2 or len(time.shape) != 2:
        raise ValueError("input and filters must be matrices")
    batches, filters, memory = x.shape[0], features.shape[0], time.shape[1]
    if rank_of(op) < 1 or filters % rank_of(op):
        raise ValueError(f"{filters} filters do not divide into ranks of {rank_of(op)}")
    units = filters // rank_of(op)
    if features.shape[1] != x.shape[1] or time.shape[0] != filters:
        raise ValueError(f"filters {features} and {time} do not fit input {x}")
    if op.inputs[BIAS] and graph.input(op, BIAS).shape != (units,):
        raise ValueError(f"{graph.input(op, BIAS)} has no value for each of {units} units")
    if state.shape != (batches, memory * filters):
        raise ValueError(f"state {state} is not {[batches, memory * filters]}")
    return (TensorType((batches, units), x.dtype), TensorType(state.shape, state.dtype))


Factors = tuple[tuple[int, int], tuple[int, int]]


def scales(op: Op, graph: Graph) -> Factors:
    """The factors of state and output, in float32 as in LiteRT's `Prepare`."""
    x, features, time, state = (
        np.float32(graph.input(op, i).q.scale) for i in (INPUT, FEATURES, TIME, STATE)
    )
    out = state * time / np.float32(graph.output(op).q.scale)
    return quantize_multiplier(float(x * features / state)), quantize_multiplier(float(out))


def checked_reach(op: Op, graph: Graph, factors: Factors) -> int:
    """What no sum exceeds in magnitude before it wraps, also on the way there. Raises ScaleError as
    `check_sums` does.
    """
    x, y = graph.input(op, INPUT), graph.output(op)
    features, time = (constant_of(graph.input(op, i)).astype(np.int64) for i in (FEATURES, TIME))
    into = _reach(features, -128 - x.q.zero_point, 127 - x.q.zero_point)
    check_sums(*into, *factors[0], 0)
    low, high = _kept(op, graph, into, factors[0])
    units = (y.shape[1], -1)
    least, greatest = (end.reshape(units).sum(axis=1) for end in _reach(time, low, high))
    most = np.abs(time).reshape(units).sum(axis=1) * max(-low, high)
    if op.inputs[BIAS]:
        bias = constant_of(graph.input(op, BIAS)).astype(np.int64)
        least, greatest, most = least + bias, greatest + bias, most + np.abs(bias)
    check_sums(least, greatest, *factors[1], y.q.zero_point)
    largest_input = max(128 + x.q.zero_point, 127 - x.q.zero_point)
    return max(int(most.max()), largest_input * int(np.abs(features).sum(axis=1).max()))


def _reach(filters: Int64, low: int, high: int) -> tuple[Int64, Int64]:
    """The least and greatest sum of each filter's products with values from `low` to `high`."""
    ends = filters * low, filters * high
    return np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)


def _kept(
    op: Op, graph: Graph, sums: tuple[Int64, Int64], factor: tuple[int, int]
) -> tuple[int, int]:
    """The least and greatest value of the state, less its zero point: what it begins with, and what
    follows.
    """
    state = graph.input(op, STATE)
    info, zero_point = np.iinfo(state.dtype.value), state.q.zero_point
    begins = [kept.initial for kept in graph.states if kept.input == op.inputs[STATE]]
    if not begins or zero_point:  # that of an int8 state is added with wrap
        return int(info.min) - zero_point, int(info.max) - zero_point
    ends = (multiply_by_quantized_multiplier(end, *factor) for end in held_in_int32(*sums))
    low, high = (end.clip(info.min, info.max) for end in ends)
    return min(int(low.min()), int(begins[0].min())), max(int(high.max()), int(begins[0].max()))


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, y, state = graph.input(op, INPUT), graph.output(op), graph.input(op, STATE)
    into, out = scales(op, graph)
    features, time = (inputs[i].astype(np.int64) for i in (FEATURES, TIME))
    sums = (inputs[INPUT].astype(np.int64) - x.q.zero_point) @ features.T
    zero, info = state.q.zero_point, np.iinfo(state.dtype.value)
    newest = multiply_by_quantized_multiplier(sums, *into).clip(info.min, info.max)
    newest = (newest + zero).astype(state.dtype.numpy).astype(np.int64)  # wraps, see svdf_s8
    kept = inputs[STATE].astype(np.int64).reshape(len(newest), *time.shape)
    kept = np.concatenate([kept[:, :, 1:], newest[:, :, None]], axis=2)
    total = ((kept - zero) * time).sum(axis=2).reshape(*y.shape, rank_of(op)).sum(axis=2)
    if op.inputs[BIAS]:
        total = total + inputs[BIAS].astype(np.int64)
    result = multiply_by_quantized_multiplier(total, *out) + y.q.zero_point
    return (
        result.clip(-128, 127).astype(np.int8),
        kept.reshape(state.shape).astype(state.dtype.numpy),
    )


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    """CMSIS-NN's kernel where it is defined, else Thimble's."""
    try:
        return _cmsis_nn(op, graph, core)
    except NoKernelError:
        return own_kernel(op, graph, "thimble_svdf_s16_s8")


def _own(op: Op, graph: Graph, core: Core) -> Kernel:
    return own_kernel(op, graph, "thimble_svdf_s16_s8")


def _cmsis_nn(op: Op, graph: Graph, core: Core) -> Kernel:
    """CMSIS-NN's kernel, which does not read the dimensions of state, bias and output.

    Raises NoKernelError where its sums may wrap or a right shift of 31 matters (it computes 1 << 31
    for it, which is undefined, too).
    """
    x, y, time = graph.input(op, INPUT), graph.output(op), graph.input(op, TIME)
    batches, filters, units = x.shape[0], graph.input(op, FEATURES).shape[0], y.shape[1]
    factors = scales(op, graph)
    largest = checked_reach(op, graph, factors)
    require_int32(np.array([largest]))
    if largest >= 1 << 30 and any(shift == _FARTHEST for _, shift in factors):
        raise NoKernelError(f"it does not shift sums of up to {largest:,} right by 31")
    into, out = ((0, 0) if shift == _FARTHEST else (factor, shift) for factor, shift in factors)
    feature_bytes, unit_bytes = 4 * batches * filters, 4 * batches * units
    params: dict[str, Argument] = {
        "rank": rank_of(op),
        "input_offset": x.q.zero_point,
        "output_offset": y.q.zero_point,
        "input_activation": _range(DType.INT16),
        "output_activation": _range(DType.INT8),
    }
    arguments: dict[str, Argument] = {
        "input_ctx": context(feature_bytes),
        "output_ctx": context(unit_bytes, feature_bytes),
        "svdf_params": Struct("cmsis_nn_svdf_params", params),
        "input_quant_params": factor(*into),
        "output_quant_params": factor(*out),
        "input_dims": _dims(batches, x.shape[1]),
        "input_data": Input(INPUT),
        "state_dims": _dims(batches, filters * time.shape[1]),
        "state_data": Output(1),
        "weights_feature_dims": _dims(filters, x.shape[1]),
        "weights_feature_data": Input(FEATURES),
        "weights_time_dims": _dims(filters, time.shape[1]),
        "weights_time_data": Input(TIME),
        "bias_dims": _dims(1, units),
        "bias_data": Input(BIAS),
        "output_dims": _dims(batches, units),
        "output_data": Output(0),
    }
    call = Call("arm_svdf_state_s16_s8", arguments, status=True)
    return Kernel((call,), _extents, scratch_bytes=feature_bytes + unit_bytes)


def own_kernel(op: Op, graph: Graph, function: str) -> Kernel:
    """Thimble's kernel, whose sums wrap. Raises ScaleError as `check_sums` does."""
    x, y, state = graph.input(op, INPUT), graph.output(op), graph.input(op, STATE)
    (into_multiplier, into_shift), (out_multiplier, out_shift) = factors = scales(op, graph)
    checked_reach(op, graph, factors)
    params = {
        "batches": x.shape[0],
        "depth": x.shape[1],
        "units": y.shape[1],
        "rank": rank_of(op),
        "memory": graph.input(op, TIME).shape[1],
        "input_zero_point": x.q.zero_point,
        "state_zero_point": state.q.zero_point,
        "output_zero_point": y.q.zero_point,
        "into_multiplier": into_multiplier,
        "into_shift": into_shift,
        "out_multiplier": out_multiplier,
        "out_shift": out_shift,
    }
    arguments: dict[str, Argument] = {
        "params": Struct("thimble_svdf_params", params),
        "input": Input(INPUT),
        "features": Input(FEATURES),
        "time": Input(TIME),
        "bias": Input(BIAS),
        "state": Output(1),
        "output": Output(0),
    }
    return Kernel((Call(function, arguments),), _own_extents)


def _own_extents(touched: Touched) -> Extents:
    """As its header says."""
    call, (width, _) = touched.call, widths(touched.call.function)
    batches, depth, units, memory = (
        call[f"params.{name}"] for name in ("batches", "depth", "units", "memory")
    )
    filters = units * call["params.rank"]
    read = {INPUT: whole(batches * depth), FEATURES: whole(filters * depth)}
    read[TIME] = whole(filters * memory, width)
    if touched.has(BIAS):
        read[BIAS] = whole(units, 4)
    return Extents(read, {0: whole(batches * units), 1: whole(batches * filters * memory, width)})


def _range(dtype: DType) -> Struct:
    info = np.iinfo(dtype.value)
    return limits(int(info.min), int(info.max))


def _dims(rows: int, columns: int) -> Struct:
    return dims(n=rows, h=columns)


def _extents(touched: Touched) -> Extents:
    """The units follow from filters and rank; both sums lie in scratch."""
    call = touched.call
    batches, depth = call["input_dims.n"], call["input_dims.h"]
    filters, memory = call["weights_feature_dims.n"], call["weights_time_dims.h"]
    rank = call["svdf_params.rank"]
    units = filters // rank if rank else 0
    read = {INPUT: whole(batches * depth), FEATURES: whole(filters * depth)}
    read[TIME] = whole(filters * memory, 2)
    if touched.has(BIAS):
        read[BIAS] = whole(units, 4)
    second = call.find("output_ctx.buf")
    assert isinstance(second, Scratch)
    return Extents(
        read,
        {0: whole(batches * units), 1: whole(batches * filters * memory, 2)},
        scratch=max(4 * batches * filters, second.at_bytes + 4 * batches * units),
    )


def _macs(op: Op, graph: Graph) -> int:
    features, time = graph.input(op, FEATURES), graph.input(op, TIME)
    return graph.input(op, INPUT).shape[0] * (features.elements + time.elements)


def _read(node: TfliteNode) -> ReadOp:
    state = node.inputs[STATE] if len(node.inputs) == 5 else None
    if state is not None and (state.dtype is not DType.INT16 or state.q.zero_point):
        raise node.unsupported(
            f"its state is {state.dtype.value}, and LiteRT computes with a symmetric int16 state",
            "convert it again: current converters make the state int16",
        )
    return read_layer(node, DType.INT16)


def read_layer(node: TfliteNode, time_dtype: DType) -> ReadOp:
    """The reader of a layer whose time filters and state have this type."""
    given = node.inputs
    if len(given) != 5 or any(given[i] is None for i in (INPUT, FEATURES, TIME, STATE)):
        raise node.unsupported("an input is missing")
    features, time, bias = given[FEATURES], given[TIME], given[BIAS]
    assert features is not None
    assert time is not None
    wanted = {INPUT: DType.INT8, FEATURES: DType.INT8, TIME: time_dtype, BIAS: DType.INT32}
    for index, dtype in wanted.items():
        tensor = given[index]
        if tensor is not None and tensor.dtype is not dtype:
            raise node.unsupported(
                f"tensor {tensor.name!r} is {tensor.dtype.value}, not {dtype.value}",
                "quantise the model fully to int8",
            )
    for index in (FEATURES, TIME, *((BIAS,) if bias is not None else ())):
        node.constant(index)
    if any(t.q.per_channel or t.q.zero_point for t in (features, time)):
        raise node.unsupported("its filters are not per tensor and symmetric")
    if node.options.fusedActivationFunction != "RELU":
        raise node.unsupported("its activation is not RELU, the only one that LiteRT computes")
    return ReadOp(Svdf(int(node.options.rank)), (0, 1, 2, 3, 4), states=(STATE,))


def write(op: Op, graph: Graph) -> WrittenOp:
    options = {"rank": rank_of(op), "fusedActivationFunction": "RELU"}
    return WrittenOp("SVDF", "SVDFOptions", options)


def _sample(rng: np.random.Generator) -> Graph:
    batches, depth, units, rank, memory = (int(n) for n in rng.integers(1, (3, 40, 8, 3, 11)))
    filters = units * rank

    def quantised(low: float, high: float, zero: int = 0) -> Quantisation:
        return Quantisation((float(np.float32(2.0 ** rng.uniform(low, high))),), (zero,))

    features = rng.integers(-127, 128, (filters, depth)).astype(np.int8)
    time = rng.integers(-3000, 3001, (filters, memory)).astype(np.int16)
    bias = rng.integers(-5000, 5000, units).astype(np.int32)
    state_q, time_q = quantised(-11, -8), quantised(-14, -11)
    state = Tensor("state", (batches, memory * filters), DType.INT16, state_q)
    y_q = quantised(-4, 0, int(rng.integers(-128, 128)))
    bias_q = Quantisation((float(np.float32(state_q.scale) * np.float32(time_q.scale)),), (0,))
    tensors = [
        Tensor("x", (batches, depth), DType.INT8, quantised(-7, -4, int(rng.integers(-128, 128)))),
        Tensor("features", features.shape, DType.INT8, quantised(-9, -6), features),
        Tensor("time", time.shape, DType.INT16, time_q, time),
        Tensor("bias", (units,), DType.INT32, bias_q, bias),
        state,
        Tensor("y", (batches, units), DType.INT8, y_q),
        Tensor("state_next", state.shape, DType.INT16, state_q),
    ]
    names = ("x", "features", "time", "bias" if rng.random() < 0.8 else "", "state")
    op = Op("svdf", "svdf", names, ("y", "state_next"), Svdf(rank))
    first = State("state", "state_next", np.zeros(state.shape, np.int16))
    graph = Graph.build("sample", tensors, [op], ["x"], ["y"], [first])
    return graph.with_ops(graph.ops)


SPEC_S16 = OldForm(
    kind="svdf",
    attributes=Svdf,
    infer=_infer,
    reference=_reference,
    select=Choice(_select, _cmsis_nn, _own),
    sample=_sample,
    macs=_macs,
    tflite=TfliteBinding(("SVDF",), _read, write),
    dtype=DType.INT16,
    operand=STATE,
    types=frozenset({DType.INT8, DType.INT16}),
    limits="int8 with an int16 state; RELU; state is kept from run to run",
)
