"""LSTM of float inputs with int8 weights: LiteRT `lstm_eval.cc`, `LstmStepHybrid`, without its
optional parts.

In each step the input row and the hidden state are quantised, each by its own range. A gate is its
bias, plus the scaled sum over the inputs, plus that over the hidden state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic import float_math
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.convolution.common import constant_of
from toolchain.ops.extents import Extents
from toolchain.ops.hybrid.kernels import check_sums, matrix_bytes, packed_matrix
from toolchain.ops.hybrid.sums import centred, check_floats, in_float32
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
from toolchain.ops.recurrent.lstm_f32 import LSTM_F32, gates_bytes, row_extents
from toolchain.ops.recurrent.lstm_s8 import (
    BIASES,
    CELL,
    GATES,
    HIDDEN,
    INPUT,
    INPUT_WEIGHTS,
    RECURRENT_WEIGHTS,
    Lstm,
    given_tensors,
    sizes_of,
    write_layer,
)
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode, WrittenOp

Float32 = NDArray[np.float32]
_WORDS = "thimble_sequence_lstm_hybrid_s8"
_MATRICES = {"weights": INPUT_WEIGHTS, "recurrent": RECURRENT_WEIGHTS}


@dataclass(frozen=True)
class HybridLstm(Lstm):
    """`range`: how rows are quantised, SYMMETRIC or ASYMMETRIC."""

    range: Range = Range.SYMMETRIC


def _of(op: Op) -> HybridLstm:
    assert isinstance(op.attributes, HybridLstm)
    return op.attributes


def _four(op: Op, graph: Graph, first: int) -> list[Tensor]:
    """What the four gates have at this place, in their order."""
    return [graph.input(op, first + gate) for gate in range(len(GATES))]


def _joined(tensors: Sequence[Tensor]) -> Array:
    """Of four gates, one after another."""
    return np.concatenate([constant_of(tensor) for tensor in tensors])


def _products(matrices: Sequence[Tensor], rows: Float32, chosen: Range) -> Float32:
    """[batches, gates * units]."""
    stored, steps = centred(rows, chosen)
    parts = []
    for weights in matrices:
        sums = in_float32(stored @ constant_of(weights).astype(np.int64).T)
        parts.append(sums * (steps * np.float32(weights.q.scale))[:, None])
    return np.concatenate(parts, axis=1).astype(np.float32)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    weights, recurrent = (_four(op, graph, first) for first in _MATRICES.values())
    bias = _joined(_four(op, graph, BIASES)).astype(np.float32)
    clip, chosen = np.float32(_of(op).cell_clip), _of(op).range
    x, hidden, cell = (inputs[i].astype(np.float32) for i in (INPUT, HIDDEN, CELL))
    if not _of(op).time_major:
        x = np.swapaxes(x, 0, 1)
    rows = []
    with np.errstate(all="ignore"):
        for step in x:
            sums = bias + _products(weights, step, chosen)
            sums = sums + _products(recurrent, hidden, chosen)
            into, forget, candidate, output = np.split(sums, len(GATES), axis=1)
            kept = float_math.logistic(forget) * cell
            cell = kept + float_math.logistic(into) * float_math.tanh(candidate)
            if clip > 0:
                cell = np.clip(cell, -clip, clip)
            hidden = float_math.logistic(output) * float_math.tanh(cell)
            rows.append(hidden)
    return np.stack(rows, axis=0 if _of(op).time_major else 1), hidden, cell


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    batches, steps, inputs, units = sizes_of(op, graph)
    time_major = _of(op).time_major
    for index in range(INPUT_WEIGHTS, INPUT_WEIGHTS + 2 * len(GATES)):
        check_sums(op, graph.input(op, index), _of(op).range)
    members: dict[str, Argument] = {
        "batches": batches,
        "steps": steps,
        "inputs": inputs,
        "units": units,
        "batch_stride": 1 if time_major else steps,
        "step_stride": batches if time_major else 1,
        "asymmetric": int(_of(op).range is Range.ASYMMETRIC),
        "cell_clip": float(np.float32(_of(op).cell_clip)),
    }
    for name in _MATRICES:
        parts: dict[str, Argument] = {
            "parameters": Packed(f"{name}_parameters"),
            "taps": Packed(f"{name}_taps"),
            "scales": Packed(f"{name}_scales"),
        }
        members[name] = Struct("thimble_hybrid_matrix", parts)
    function = "thimble_sequence_lstm_hybrid_lanes_s8" if core.mve else _WORDS
    arguments: dict[str, Argument] = {
        "params": Struct("thimble_sequence_lstm_hybrid_params", members),
        "input": Input(INPUT),
        "bias": Packed("bias"),
        "hidden": Output(1),
        "cell": Output(2),
        "gates": Scratch(element="float"),
        "stored": Scratch(gates_bytes(units), element="int8_t"),
        "output": Output(0),
    }
    return Kernel(
        (Call(function, arguments),),
        _extents,
        constants=tuple(_constants(op, graph, core)),
        scratch_bytes=gates_bytes(units) + max(inputs, units),
    )


def _constants(op: Op, graph: Graph, core: Core) -> list[Constant]:
    order = ", ".join(GATES)
    biases = _four(op, graph, BIASES)
    found = [Constant("bias", lambda: _joined(biases).astype(np.float32), f"of {order}")]
    for name, first in _MATRICES.items():
        matrices = _four(op, graph, first)

        def parameters(matrices: list[Tensor] = matrices) -> Array:
            return packed_matrix(_joined(matrices).astype(np.int8), core)

        def taps(matrices: list[Tensor] = matrices) -> Array:
            return np.asarray(_joined(matrices).astype(np.int32).sum(axis=1), np.int32)

        def scales(matrices: list[Tensor] = matrices) -> Array:
            return np.array([matrix.q.scale for matrix in matrices], np.float32)

        found += [
            Constant(f"{name}_parameters", parameters, f"{name} of the gates: {order}"),
            Constant(f"{name}_taps", taps, "sums of them"),
            Constant(f"{name}_scales", scales, "of each gate"),
        ]
    return found


def _extents(touched: Touched) -> Extents:
    call = touched.call
    inputs, units = call["params.inputs"], call["params.units"]
    read, written = row_extents(call)
    filters = len(GATES) * units
    constants = {"bias": gates_bytes(units)}
    for name, depth in (("weights", inputs), ("recurrent", units)):
        constants[f"{name}_parameters"] = matrix_bytes(filters, depth, call.function != _WORDS)
        constants[f"{name}_taps"] = 4 * filters
        constants[f"{name}_scales"] = 4 * len(GATES)
    stored = call.find("stored")
    assert isinstance(stored, Scratch)
    scratch = max(gates_bytes(units), stored.at_bytes + max(inputs, units))
    return Extents(read, written, constants, scratch=scratch)


def _read(node: TfliteNode) -> ReadOp:
    kept, tensors = given_tensors(node)
    check_floats(node, (kept[INPUT], *kept[BIASES:]))
    for tensor in tensors[INPUT_WEIGHTS:BIASES]:
        if tensor.dtype is not DType.INT8 or tensor.quantisation is None:
            raise node.unsupported(
                f"weights {tensor.name!r} are {tensor.dtype.value} beside int8 ones",
                "quantise all weights, or none",
            )
        if tensor.q.per_channel or tensor.q.zero_point:
            raise node.unsupported(f"weights {tensor.name!r} are not per tensor and symmetric")
    clip = float(node.options.cellClip)
    if not math.isfinite(clip):
        raise node.unsupported(f"its cell clip is {clip}")
    chosen = Range.ASYMMETRIC if node.options.asymmetricQuantizeInputs else Range.SYMMETRIC
    attributes = HybridLstm(1.0, 0, clip, bool(node.options.timeMajor), chosen)
    return ReadOp(attributes, kept, states=(18, 19))


def _write(op: Op, graph: Graph) -> WrittenOp:
    written = write_layer(op)
    asymmetric = _of(op).range is Range.ASYMMETRIC
    options = {**written.options, "asymmetricQuantizeInputs": asymmetric}
    return replace(written, options=options, intermediates=())


def _sample(rng: np.random.Generator) -> Graph:
    graph = LSTM_F32.sample(rng)
    (op,) = graph.ops
    assert isinstance(op.attributes, Lstm)
    tensors = dict(graph.tensors)
    for name in op.inputs[INPUT_WEIGHTS:BIASES]:
        scale = float(np.float32(rng.uniform(0.002, 0.008)))
        data = rng.integers(-127, 128, tensors[name].shape).astype(np.int8)
        tensors[name] = replace(
            tensors[name],
            dtype=DType.INT8,
            quantisation=Quantisation((scale,), (0,)),
            constant=data,
        )
    chosen = Range.ASYMMETRIC if rng.random() < 0.5 else Range.SYMMETRIC
    a = op.attributes
    plain = replace(op, attributes=HybridLstm(1.0, 0, a.cell_clip, a.time_major, chosen))
    return Graph.build(
        "sample", tensors.values(), [plain], graph.inputs, graph.outputs, graph.states
    )


LSTM_HYBRID = replace(
    LSTM_F32,
    attributes=HybridLstm,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("UNIDIRECTIONAL_SEQUENCE_LSTM",), _read, _write),
    weights=DType.INT8,
    name="hybrid",
    limits="float32 with constant int8 weights, as LiteRT's hybrid kernel",
)
