"""SVDF with an int16 state.

Arithmetic: LiteRT `reference_ops::EvalIntegerSVDF`, which clamps only to the types' ranges and
scales with two roundings, as CMSIS-NN's kernel does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, State, Tensor
from toolchain.ops.arithmetic.fixed_point import (
    ScaleError,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.cmsis_structs import context, dims, factor, limits
from toolchain.ops.convolution.common import constant_of
from toolchain.ops.extents import Extents, whole
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
from toolchain.ops.spec import (
    Array,
    OpSpec,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

INPUT, FEATURES, TIME, BIAS, STATE = range(5)
_FARTHEST = -31
_LARGEST_BIAS = 1 << 30
"""Half of what int32 holds: CMSIS-NN adds it to sums without looking."""


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


def scales(op: Op, graph: Graph) -> tuple[tuple[int, int], tuple[int, int]]:
    """The factors of state and output, in float32 as in LiteRT's `Prepare`."""
    x, features, time, state = (
        np.float32(graph.input(op, i).q.scale) for i in (INPUT, FEATURES, TIME, STATE)
    )
    into = _scaled(float(x * features / state), 255 * _row_sum(op, graph, FEATURES))
    largest = 2 ** (8 * graph.input(op, STATE).dtype.size_bytes) - 1
    total = largest * rank_of(op) * _row_sum(op, graph, TIME)
    if op.inputs[BIAS]:
        total += _largest_bias(op, graph)
    out = float(state * time / np.float32(graph.output(op).q.scale))
    return into, _scaled(out, total)


def _largest_bias(op: Op, graph: Graph) -> int:
    return int(np.abs(constant_of(graph.input(op, BIAS)).astype(np.int64)).max())


def _scaled(factor: float, largest: int) -> tuple[int, int]:
    """`quantize_multiplier`, but (0, 0) instead of a right shift by 31, for which CMSIS-NN computes
    1 << 31.

    Such a shift takes every value below 2**30 to 0. Raises ScaleError for greater values.
    """
    multiplier, shift = quantize_multiplier(factor, largest)
    if shift > _FARTHEST:
        return multiplier, shift
    if largest >= 1 << 30:
        raise ScaleError(f"sums of up to {largest:,} are scaled by {factor:.4g}, beyond its shifts")
    return 0, 0


def _row_sum(op: Op, graph: Graph, index: int) -> int:
    """The largest sum of a filter's weights, in magnitude."""
    rows = np.abs(constant_of(graph.input(op, index)).astype(np.int64)).sum(axis=1)
    return int(rows.max())


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
    """CMSIS-NN's kernel, which does not read the dimensions of state, bias and output.

    Raises ScaleError for a bias that overflows its sums.
    """
    x, y, time = graph.input(op, INPUT), graph.output(op), graph.input(op, TIME)
    batches, filters, units = x.shape[0], graph.input(op, FEATURES).shape[0], y.shape[1]
    into, out = scales(op, graph)
    if op.inputs[BIAS] and _largest_bias(op, graph) >= _LARGEST_BIAS:
        bias = _largest_bias(op, graph)
        raise ScaleError(f"its bias of {bias:,} leaves CMSIS-NN's 32-bit sums no room")
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


SPEC_S16 = OpSpec(
    kind="svdf",
    attributes=Svdf,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=_macs,
    tflite=TfliteBinding(("SVDF",), _read, write),
    dtypes=frozenset({DType.INT8, DType.INT16}),
    limits="int8 with an int16 state; RELU; state is kept from run to run",
)
