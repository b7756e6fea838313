"""SVDF of float inputs with int8 filters: LiteRT's `EvalHybridSVDF`.

The inputs of each image are quantised, and products with the feature filters are scaled in float32.
Time filters are dequantised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Quantisation
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.arithmetic.lane_sums import lane_sum
from toolchain.ops.extents import Extents, whole
from toolchain.ops.hybrid.kernels import Images, images_call, images_constants, images_extents
from toolchain.ops.hybrid.sums import centred, check_floats, in_float32
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
from toolchain.ops.readers.float32 import larger, range_of, smaller
from toolchain.ops.recurrent.svdf_f32 import SPEC_F32, FloatSvdf, read_activation
from toolchain.ops.recurrent.svdf_f32 import write as write_float
from toolchain.ops.recurrent.svdf_s16 import BIAS, FEATURES, INPUT, STATE, TIME, rank_of
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode, WrittenOp

Float32 = NDArray[np.float32]
_TIME_STEP = "thimble_svdf_hybrid_s8"


@dataclass(frozen=True)
class HybridSvdf(FloatSvdf):
    """`range`: how inputs are quantised, SYMMETRIC or ASYMMETRIC."""

    range: Range = Range.SYMMETRIC


def _of(op: Op) -> HybridSvdf:
    assert isinstance(op.attributes, HybridSvdf)
    return op.attributes


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    features, time = (graph.input(op, index) for index in (FEATURES, TIME))
    stored, steps = centred(inputs[INPUT].astype(np.float32), _of(op).range)
    sums = in_float32(stored @ inputs[FEATURES].astype(np.int64).T)
    newest = sums * (np.float32(features.q.scale) * steps[:, None])
    filters = inputs[TIME].astype(np.float32) * np.float32(time.q.scale)
    kept = inputs[STATE].astype(np.float32).reshape(len(newest), *time.shape)
    kept = np.concatenate([kept[:, :, 1:], newest[:, :, None]], axis=2)
    filtered = lane_sum(filters * kept)
    total = lane_sum(filtered.reshape(*graph.output(op).shape, rank_of(op)))
    if op.inputs[BIAS]:
        total = total + inputs[BIAS].astype(np.float32)
    if _of(op).activation is not Activation.NONE:  # NaN becomes the lower bound
        low, high = (np.float32(bound) for bound in range_of(_of(op).activation))
        total = smaller(larger(total, low), high)
    return total, kept.reshape(inputs[STATE].shape)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    features, time, y = graph.input(op, FEATURES), graph.input(op, TIME), graph.output(op)
    batches, filters = y.shape[0], features.shape[0]
    newest_bytes = 4 * batches * filters
    newest, stored = Scratch(element="float"), Scratch(newest_bytes)
    images = Images(batches, _of(op).range, newest, Input(INPUT), stored)
    low, high = range_of(_of(op).activation)
    params: dict[str, Argument] = {
        "batches": batches,
        "units": y.shape[1],
        "rank": rank_of(op),
        "memory": time.shape[1],
        "clamped": int(_of(op).activation is not Activation.NONE),
        "min": low,
        "max": high,
        "time_scale": time.q.scale,
    }
    arguments: dict[str, Argument] = {
        "params": Struct("thimble_svdf_hybrid_params", params),
        "newest": newest,
        "time": Input(TIME),
        "bias": Input(BIAS),
        "state": Output(1),
        "output": Output(0),
    }
    scratch_bytes = newest_bytes + features.shape[1]
    calls = (images_call(op, features, core, images), Call(_TIME_STEP, arguments))
    constants = images_constants(features, core)
    return Kernel(calls, _extents, constants, scratch_bytes=scratch_bytes)


def _extents(touched: Touched) -> Extents:
    products, call = touched.calls
    first = images_extents(replace(touched, calls=(products,)))
    batches, units, memory = (call[f"params.{name}"] for name in ("batches", "units", "memory"))
    filters = units * call["params.rank"]
    read = {**first.inputs, TIME: whole(filters * memory)}
    if touched.has(BIAS):
        read[BIAS] = whole(units, 4)
    written = {0: whole(batches * units, 4), 1: whole(batches * filters * memory, 4)}
    scratch = max(first.scratch, 4 * batches * filters)
    return replace(first, inputs=read, outputs=written, scratch=scratch)


def _read(node: TfliteNode) -> ReadOp:
    given = node.inputs
    if len(given) != 5 or any(given[i] is None for i in (INPUT, FEATURES, TIME, STATE)):
        raise node.unsupported("an input is missing")
    check_floats(node, (INPUT, BIAS, STATE))
    for index in (FEATURES, TIME, *((BIAS,) if given[BIAS] is not None else ())):
        node.constant(index)
    for filters in (given[FEATURES], given[TIME]):
        assert filters is not None
        if filters.dtype is not DType.INT8 or filters.quantisation is None:
            raise node.unsupported(
                f"its filters {filters.name!r} are not int8 with a scale, beside int8 ones",
                "convert the model again",
            )
        if filters.q.per_channel or filters.q.zero_point:
            raise node.unsupported("its filters are not per tensor and symmetric")
    chosen = Range.ASYMMETRIC if node.options.asymmetricQuantizeInputs else Range.SYMMETRIC
    attributes = HybridSvdf(int(node.options.rank), read_activation(node), chosen)
    return ReadOp(attributes, (0, 1, 2, 3, 4), states=(STATE,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    written = write_float(op, graph)
    asymmetric = _of(op).range is Range.ASYMMETRIC
    options = {**written.options, "asymmetricQuantizeInputs": asymmetric}
    return replace(written, options=options, version=4)


def _sample(rng: np.random.Generator) -> Graph:
    graph = SPEC_F32.sample(rng)
    (op,) = graph.ops
    assert isinstance(op.attributes, FloatSvdf)

    def stored(name: str) -> tuple[Quantisation, NDArray[np.int8]]:
        scale = float(np.float32(rng.uniform(0.002, 0.02)))
        data = rng.integers(-127, 128, graph.tensors[name].shape).astype(np.int8)
        return Quantisation((scale,), (0,)), data

    tensors = dict(graph.tensors)
    for name in (op.inputs[FEATURES], op.inputs[TIME]):
        q, data = stored(name)
        tensors[name] = replace(tensors[name], dtype=DType.INT8, quantisation=q, constant=data)
    chosen = Range.ASYMMETRIC if rng.random() < 0.5 else Range.SYMMETRIC
    plain = replace(op, attributes=HybridSvdf(rank_of(op), op.attributes.activation, chosen))
    return Graph.build(
        "sample", tensors.values(), [plain], graph.inputs, graph.outputs, graph.states
    )


HYBRID = replace(
    SPEC_F32,
    attributes=HybridSvdf,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("SVDF",), _read, _write),
    weights=DType.INT8,
    name="hybrid",
    limits="float32 with constant int8 filters, as LiteRT's hybrid kernel",
)
