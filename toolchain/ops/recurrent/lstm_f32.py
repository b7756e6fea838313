"""LSTM in float32: LiteRT `lstm_eval.cc`, `LstmStepFloat`, without its optional parts.

A gate is its bias, plus the sum over the inputs, plus the sum over the hidden state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, State, Tensor
from toolchain.ops.arithmetic import float_math
from toolchain.ops.convolution.common import constant_of
from toolchain.ops.extents import Extent, Extents, whole
from toolchain.ops.kernel import (
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
from toolchain.ops.recurrent.lstm_s8 import (
    BIASES,
    CELL,
    GATES,
    HIDDEN,
    INPUT,
    INPUT_WEIGHTS,
    LSTM_S8,
    RECURRENT_WEIGHTS,
    Lstm,
    attributes_of,
    given_tensors,
    sizes_of,
    write_layer,
)
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode, WrittenOp

Float32 = NDArray[np.float32]
_FLOAT_BYTES = 4


@dataclass(frozen=True)
class FloatLstm(Lstm):
    """`backwards`: the last step of the sequence comes first."""

    hidden_scale: float = 1.0
    hidden_zero_point: int = 0
    backwards: bool = False


def _backwards(op: Op) -> bool:
    assert isinstance(op.attributes, FloatLstm)
    return op.attributes.backwards


def _joined(op: Op, graph: Graph, first: int) -> Float32:
    """What the four gates have at this place, in their order."""
    parts = [constant_of(graph.input(op, first + gate)) for gate in range(len(GATES))]
    joined: Float32 = np.stack(parts).astype(np.float32)
    return joined


def _products(weights: Float32, rows: Float32) -> Float32:
    """[batches, gates * units] sums, added in the order of the depth."""
    total = np.zeros((len(rows), len(weights)), np.float32)
    for place in range(weights.shape[1]):
        total = total + weights[:, place] * rows[:, place : place + 1]
    return total


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    _, _, depth, units = sizes_of(op, graph)
    weights = _joined(op, graph, INPUT_WEIGHTS).reshape(-1, depth)
    recurrent = _joined(op, graph, RECURRENT_WEIGHTS).reshape(-1, units)
    bias = _joined(op, graph, BIASES).reshape(-1)
    clip = np.float32(attributes_of(op).cell_clip)
    x, hidden, cell = (inputs[i].astype(np.float32) for i in (INPUT, HIDDEN, CELL))
    if not attributes_of(op).time_major:
        x = np.swapaxes(x, 0, 1)
    rows = []
    with np.errstate(all="ignore"):
        for step in x[::-1] if _backwards(op) else x:
            sums = (bias + _products(weights, step)) + _products(recurrent, hidden)
            into, forget, candidate, output = np.split(sums, len(GATES), axis=1)
            kept = float_math.logistic(forget) * cell
            cell = kept + float_math.logistic(into) * float_math.tanh(candidate)
            if clip > 0:
                cell = np.clip(cell, -clip, clip)
            hidden = float_math.logistic(output) * float_math.tanh(cell)
            rows.append(hidden)
    rows = rows[::-1] if _backwards(op) else rows
    return np.stack(rows, axis=0 if attributes_of(op).time_major else 1), hidden, cell


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    batches, steps, inputs, units = sizes_of(op, graph)
    time_major = attributes_of(op).time_major
    params = Struct(
        "thimble_sequence_lstm_f32_params",
        {
            "batches": batches,
            "steps": steps,
            "inputs": inputs,
            "units": units,
            "batch_stride": 1 if time_major else steps,
            "step_stride": batches if time_major else 1,
            "backwards": int(_backwards(op)),
            "cell_clip": float(np.float32(attributes_of(op).cell_clip)),
        },
    )
    call = Call(
        "thimble_sequence_lstm_f32",
        {
            "params": params,
            "input": Input(INPUT),
            "weights": Packed("weights"),
            "recurrent": Packed("recurrent"),
            "bias": Packed("bias"),
            "hidden": Output(1),
            "cell": Output(2),
            "gates": Scratch(element="float"),
            "output": Output(0),
        },
    )
    packed = {"weights": INPUT_WEIGHTS, "recurrent": RECURRENT_WEIGHTS, "bias": BIASES}

    def constant(key: str, first: int) -> Constant:
        comment = f"{key} of the gates: {', '.join(GATES)}"
        return Constant(key, lambda: _joined(op, graph, first), comment)

    return Kernel(
        (call,),
        _extents,
        constants=tuple(constant(key, first) for key, first in packed.items()),
        scratch_bytes=gates_bytes(units),
        find_terms=lambda: {
            "call": 1.0,
            "row": batches * steps,
            "product": batches * steps * len(GATES) * units * (inputs + units),
            "unit": batches * steps * units,
        },
    )


def gates_bytes(units: int) -> int:
    """Of a float of each unit of each gate."""
    return _FLOAT_BYTES * len(GATES) * units


def row_extents(call: Call) -> tuple[dict[int, Extent], dict[int, Extent]]:
    """The inputs and outputs of a call with `params`. Row (batch, step) is number batch *
    batch_stride + step * step_stride.
    """
    batches, steps, inputs, units = (
        call[f"params.{name}"] for name in ("batches", "steps", "inputs", "units")
    )
    rows = (batches - 1) * call["params.batch_stride"] + 1
    rows += (steps - 1) * call["params.step_stride"]

    def row_extent(width: int) -> Extent:
        count = _FLOAT_BYTES * width
        return Extent(0, rows * count, touched=batches * steps * count)

    state = whole(batches * units, _FLOAT_BYTES)
    return {INPUT: row_extent(inputs)}, {0: row_extent(units), 1: state, 2: state}


def _extents(touched: Touched) -> Extents:
    call = touched.call
    inputs, units = call["params.inputs"], call["params.units"]
    gates = gates_bytes(units)
    read, written = row_extents(call)
    constants = {"weights": gates * inputs, "recurrent": gates * units, "bias": gates}
    return Extents(read, written, constants, scratch=gates)


def _read(node: TfliteNode) -> ReadOp:
    kept, tensors = given_tensors(node)
    for tensor in tensors:
        if tensor.dtype is not DType.FLOAT32:
            raise node.unsupported(
                f"tensor {tensor.name!r} is {tensor.dtype.value} beside float32",
                "quantise the model fully to int8, or not at all",
            )
    clip = float(node.options.cellClip)
    if not math.isfinite(clip):
        raise node.unsupported(f"its cell clip is {clip}")
    backwards = bool(getattr(node.options, "backwards", False))
    attributes = FloatLstm(
        cell_clip=clip, time_major=bool(node.options.timeMajor), backwards=backwards
    )
    return ReadOp(attributes, kept, states=(18, 19))


def _write(op: Op, graph: Graph) -> WrittenOp:
    return replace(write_layer(op), intermediates=())


def _sample(rng: np.random.Generator) -> Graph:
    graph = LSTM_S8.sample(rng)
    (op,) = graph.ops
    tensors = []
    for tensor in graph.tensors.values():
        data = None
        if tensor.is_constant:
            data = rng.normal(0, 0.3, tensor.shape).astype(np.float32)
        tensors.append(Tensor(tensor.name, tensor.shape, DType.FLOAT32, None, data))
    states = [
        State(kept.input, kept.output, np.zeros(kept.initial.shape, np.float32))
        for kept in graph.states
    ]
    clip, time_major = attributes_of(op).cell_clip, attributes_of(op).time_major
    plain = replace(op, attributes=FloatLstm(cell_clip=clip, time_major=time_major))
    return Graph.build("sample", tensors, [plain], graph.inputs, graph.outputs, states)


LSTM_F32 = replace(
    LSTM_S8,
    attributes=FloatLstm,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("UNIDIRECTIONAL_SEQUENCE_LSTM",), _read, _write),
    dtype=DType.FLOAT32,
    types=frozenset(),
    limits="float32; no peepholes, projection, layer normalisation or coupled gates; state is kept "
    "from run to run",
)
