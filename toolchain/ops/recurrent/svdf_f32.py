"""SVDF in float32, LiteRT's `EvalFloatSVDF`, with any activation that is a clamp. See `svdf`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, State, Tensor
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.arithmetic.lane_sums import lane_sum
from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import Argument, Call, Input, Kernel, Output, Struct, Touched
from toolchain.ops.readers.float32 import check_float_node, larger, range_of, smaller
from toolchain.ops.recurrent.svdf_s16 import (
    BIAS,
    FEATURES,
    INPUT,
    SPEC_S16,
    STATE,
    TIME,
    Svdf,
    rank_of,
)
from toolchain.ops.recurrent.svdf_s16 import write as write_integers
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode, WrittenOp

Float32 = NDArray[np.float32]
_ACTIVATIONS = (Activation.RELU, Activation.NONE, Activation.RELU6, Activation.RELU_N1_TO_1)


@dataclass(frozen=True)
class FloatSvdf(Svdf):
    activation: Activation = Activation.RELU


def _activation(op: Op) -> Activation:
    assert isinstance(op.attributes, FloatSvdf)
    return op.attributes.activation


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, features, time = (inputs[i].astype(np.float32) for i in (INPUT, FEATURES, TIME))
    newest = lane_sum(features * x[:, None, :])
    kept = inputs[STATE].astype(np.float32).reshape(len(x), *time.shape)
    kept = np.concatenate([kept[:, :, 1:], newest[:, :, None]], axis=2)
    filtered = lane_sum(time * kept)
    total = lane_sum(filtered.reshape(*graph.output(op).shape, rank_of(op)))
    if op.inputs[BIAS]:
        total = total + inputs[BIAS].astype(np.float32)
    if _activation(op) is not Activation.NONE:  # NaN becomes the lower bound
        low, high = (np.float32(bound) for bound in range_of(_activation(op)))
        total = smaller(larger(total, low), high)
    return total, kept.reshape(inputs[STATE].shape)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x, y = graph.input(op, INPUT), graph.output(op)
    low, high = range_of(_activation(op))
    params: dict[str, Argument] = {
        "batches": x.shape[0],
        "depth": x.shape[1],
        "units": y.shape[1],
        "rank": rank_of(op),
        "memory": graph.input(op, TIME).shape[1],
        "clamped": int(_activation(op) is not Activation.NONE),
        "min": low,
        "max": high,
    }
    arguments: dict[str, Argument] = {
        "params": Struct("thimble_svdf_f32_params", params),
        "input": Input(INPUT),
        "features": Input(FEATURES),
        "time": Input(TIME),
        "bias": Input(BIAS),
        "state": Output(1),
        "output": Output(0),
    }
    return Kernel((Call("thimble_svdf_f32", arguments),), _extents)


def _extents(touched: Touched) -> Extents:
    call = touched.call
    batches, depth, units, memory = (
        call[f"params.{name}"] for name in ("batches", "depth", "units", "memory")
    )
    filters = units * call["params.rank"]
    read = {INPUT: whole(batches * depth, 4), FEATURES: whole(filters * depth, 4)}
    read[TIME] = whole(filters * memory, 4)
    if touched.has(BIAS):
        read[BIAS] = whole(units, 4)
    return Extents(read, {0: whole(batches * units, 4), 1: whole(batches * filters * memory, 4)})


def _read(node: TfliteNode) -> ReadOp:
    given = node.inputs
    if len(given) != 5 or any(given[i] is None for i in (INPUT, FEATURES, TIME, STATE)):
        raise node.unsupported("an input is missing")
    check_float_node(node)
    for index in (FEATURES, TIME, *((BIAS,) if given[BIAS] is not None else ())):
        node.constant(index)
    attributes = FloatSvdf(int(node.options.rank), read_activation(node))
    return ReadOp(attributes, (0, 1, 2, 3, 4), states=(STATE,))


def read_activation(node: TfliteNode) -> Activation:
    """The fused activation. Raises UnsupportedError for one that is no clamp."""
    name = node.options.fusedActivationFunction
    if name not in {activation.name for activation in _ACTIVATIONS}:
        raise node.unsupported(f"its activation is {name}", "apply it in an operator of its own")
    return Activation[name]


def write(op: Op, graph: Graph) -> WrittenOp:
    written = write_integers(op, graph)
    options = {**written.options, "fusedActivationFunction": _activation(op).name}
    return replace(written, options=options)


def _sample(rng: np.random.Generator) -> Graph:
    graph = SPEC_S16.sample(rng)
    (op,) = graph.ops
    tensors = []
    for tensor in graph.tensors.values():
        data = None
        if tensor.is_constant:
            data = rng.normal(0, 0.3, tensor.shape).astype(np.float32)
        tensors.append(Tensor(tensor.name, tensor.shape, DType.FLOAT32, None, data))
    activation = _ACTIVATIONS[int(rng.integers(len(_ACTIVATIONS)))]
    (kept,) = graph.states
    states = [State(kept.input, kept.output, np.zeros(kept.initial.shape, np.float32))]
    plain = replace(op, attributes=FloatSvdf(rank_of(op), activation))
    return Graph.build("sample", tensors, [plain], graph.inputs, graph.outputs, states)


SPEC_F32 = replace(
    SPEC_S16,
    attributes=FloatSvdf,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("SVDF",), _read, write),
    dtype=DType.FLOAT32,
    types=frozenset(),
    limits="float32; RELU, RELU6, [-1, 1] or none; state is kept from run to run",
)
