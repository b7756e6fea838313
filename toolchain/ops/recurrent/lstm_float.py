"""LSTM of floats, with float weights (LiteRT `lstm_eval.cc`, `LstmStepFloat`) or int8 ones
(`LstmStepHybrid`).

A gate is its bias, plus the sum over the inputs, plus the sum over the hidden state. Where weights
are int8, the input row and the hidden state are quantised in each step, each by its own range, and
both sums are scaled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.hybrid.kernels import check_sums, matrix_bytes, packed_matrix
from toolchain.ops.hybrid.sums import centred, check_floats, in_float32, random_range, range_asked
from toolchain.ops.recurrent import lstm_layer as layer
from toolchain.ops.recurrent import lstm_s8
from toolchain.ops.recurrent.lstm_layer import Lstm
from toolchain.ops.recurrent.samples import in_float, with_attributes, with_int8_weights
from toolchain.ops.recurrent.sequence import Walk, lstm_cell, products, row_extents

_FLOAT_BYTES = 4
_FLOAT = "thimble_sequence_lstm_f32"
_WORDS, _VECTORS = "thimble_sequence_lstm_hybrid_s8", "thimble_sequence_lstm_hybrid_lanes_s8"
_MATRICES = {"weights": layer.INPUT_WEIGHTS, "recurrent": layer.RECURRENT_WEIGHTS}


@dataclass(frozen=True)
class FloatLstm(Lstm):
    """`backwards`: the last step of the sequence comes first.

    `range`: how rows are quantised where weights are int8, SYMMETRIC or ASYMMETRIC; None where they
    are float32.
    """

    backwards: bool = False
    range: Range | None = None


def _walk(op: kit.Operator[FloatLstm]) -> Walk:
    return layer.lstm_walk(op, backwards=op.attributes.backwards)


def _joined(tensors: Sequence[kit.Tensor]) -> kit.Array:
    """The data of four gates, one after another."""
    return np.concatenate([kit.constant_of(tensor) for tensor in tensors])


def _sums(matrices: Sequence[kit.Tensor], rows: kit.Float32, chosen: Range | None) -> kit.Float32:
    """The products of rows and the weights of all gates, [batches, gates * units]."""
    if chosen is None:
        return products(_joined(matrices).astype(np.float32), rows)
    stored, steps = centred(rows, chosen)
    parts = []
    for weights in matrices:
        sums = in_float32(stored @ kit.constant_of(weights).astype(np.int64).T)
        parts.append(sums * (steps * np.float32(weights.q.scale))[:, None])
    return np.concatenate(parts, axis=1).astype(np.float32)


def _reference(op: kit.Operator[FloatLstm], inputs: kit.Inputs) -> kit.Arrays:
    weights, recurrent = (layer.of_gates(op, first) for first in _MATRICES.values())
    bias = _joined(layer.of_gates(op, layer.BIASES)).astype(np.float32)
    walk, chosen = _walk(op), op.attributes.range
    x, hidden, cell = (
        inputs[i].astype(np.float32) for i in (layer.INPUT, layer.HIDDEN, layer.CELL)
    )
    rows = []
    with np.errstate(all="ignore"):
        for step in walk.split(x):
            sums = (bias + _sums(weights, step, chosen)) + _sums(recurrent, hidden, chosen)
            gates = np.split(sums, len(layer.GATES), axis=1)
            hidden, cell = lstm_cell(gates, cell, op.attributes.cell_clip)
            rows.append(hidden)
    return walk.joined(rows), hidden, cell


def _select(op: kit.Operator[FloatLstm], core: kit.Core) -> kit.Kernel:
    return _float_kernel(op) if op.attributes.range is None else _hybrid_kernel(op, core)


def _float_kernel(op: kit.Operator[FloatLstm]) -> kit.Kernel:
    walk = _walk(op)
    rows, units = walk.batches * walk.steps, walk.units
    members: dict[str, kit.Argument] = {
        **walk.members,
        "backwards": int(walk.backwards),
        "cell_clip": float(np.float32(op.attributes.cell_clip)),
    }
    arguments: dict[str, kit.Argument] = {
        "params": kit.Struct("thimble_sequence_lstm_f32_params", members),
        "input": kit.Input(layer.INPUT),
        "weights": kit.Packed("weights"),
        "recurrent": kit.Packed("recurrent"),
        "bias": kit.Packed("bias"),
        "hidden": kit.Output(1),
        "cell": kit.Output(2),
        "gates": kit.Scratch(element="float"),
        "output": kit.Output(0),
    }

    def constant(key: str, first: int) -> kit.Constant:
        """[gates, units, ...]."""
        gates = layer.of_gates(op, first)
        return kit.Constant(
            key,
            lambda: np.stack([kit.constant_of(tensor) for tensor in gates]).astype(np.float32),
            f"{key} of the gates: {', '.join(layer.GATES)}",
        )

    return kit.Kernel(
        (kit.Call(_FLOAT, arguments),),
        _float_extents,
        constants=tuple(constant(*one) for one in (*_MATRICES.items(), ("bias", layer.BIASES))),
        scratch_bytes=_gates_bytes(units),
        find_terms=lambda: {
            "call": 1.0,
            "row": rows,
            "product": rows * len(layer.GATES) * units * (walk.inputs + units),
            "unit": rows * units,
        },
    )


def _gates_bytes(units: int) -> int:
    """Bytes of a float for each unit of each gate."""
    return _FLOAT_BYTES * len(layer.GATES) * units


def _float_extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    inputs, units = call["params.inputs"], call["params.units"]
    gates = _gates_bytes(units)
    constants = {"weights": gates * inputs, "recurrent": gates * units, "bias": gates}
    return kit.Extents(*row_extents(call, *[_FLOAT_BYTES] * 3), constants, scratch=gates)


def _hybrid_kernel(op: kit.Operator[FloatLstm], core: kit.Core) -> kit.Kernel:
    walk, chosen = _walk(op), op.attributes.range
    assert chosen is not None
    for first in _MATRICES.values():
        for matrix in layer.of_gates(op, first):
            check_sums(op, matrix, chosen)
    members: dict[str, kit.Argument] = {
        **walk.members,
        "asymmetric": int(chosen is Range.ASYMMETRIC),
        "cell_clip": float(np.float32(op.attributes.cell_clip)),
    }
    for name in _MATRICES:
        parts: dict[str, kit.Argument] = {
            "parameters": kit.Packed(f"{name}_parameters"),
            "taps": kit.Packed(f"{name}_taps"),
            "scales": kit.Packed(f"{name}_scales"),
        }
        members[name] = kit.Struct("thimble_hybrid_matrix", parts)
    arguments: dict[str, kit.Argument] = {
        "params": kit.Struct("thimble_sequence_lstm_hybrid_params", members),
        "input": kit.Input(layer.INPUT),
        "bias": kit.Packed("bias"),
        "hidden": kit.Output(1),
        "cell": kit.Output(2),
        "gates": kit.Scratch(element="float"),
        "stored": kit.Scratch(_gates_bytes(walk.units), element="int8_t"),
        "output": kit.Output(0),
    }
    function = _VECTORS if core.mve else _WORDS
    return kit.Kernel(
        (kit.Call(function, arguments),),
        _hybrid_extents,
        constants=tuple(_hybrid_constants(op, core)),
        scratch_bytes=_gates_bytes(walk.units) + max(walk.inputs, walk.units),
    )


def _hybrid_constants(op: kit.Operator[FloatLstm], core: kit.Core) -> Iterator[kit.Constant]:
    order, biases = ", ".join(layer.GATES), layer.of_gates(op, layer.BIASES)
    yield kit.Constant("bias", lambda: _joined(biases).astype(np.float32), f"of {order}")
    for name, first in _MATRICES.items():
        yield from _matrix(name, layer.of_gates(op, first), core)


def _matrix(name: str, gates: Sequence[kit.Tensor], core: kit.Core) -> Iterator[kit.Constant]:
    """The constants of the matrices of all gates."""

    def packed() -> kit.Array:
        filters = _joined(gates).astype(np.int8)
        return packed_matrix(filters, np.zeros(len(filters), np.int32), core)

    def sums() -> kit.Array:
        return np.asarray(_joined(gates).astype(np.int32).sum(axis=1), np.int32)

    order = ", ".join(layer.GATES)
    yield kit.Constant(f"{name}_parameters", packed, f"{name} of the gates: {order}")
    yield kit.Constant(f"{name}_taps", sums, "sums of them")
    scales = np.array([weights.q.scale for weights in gates], np.float32)
    yield kit.constant(f"{name}_scales", scales, "of each gate")


def _hybrid_extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    inputs, units = call["params.inputs"], call["params.units"]
    filters = len(layer.GATES) * units
    constants = {"bias": _gates_bytes(units)}
    for name, depth in (("weights", inputs), ("recurrent", units)):
        constants[f"{name}_parameters"] = matrix_bytes(filters, depth, call.function != _WORDS)
        constants[f"{name}_taps"] = 4 * filters
        constants[f"{name}_scales"] = 4 * len(layer.GATES)
    stored = call.find("stored")
    assert isinstance(stored, kit.Scratch)
    scratch = max(_gates_bytes(units), stored.at_bytes + max(inputs, units))
    return kit.Extents(*row_extents(call, *[_FLOAT_BYTES] * 3), constants, scratch=scratch)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    kept, tensors = layer.given_tensors(node)
    options, clip, chosen = node.options, float(node.options.cellClip), None
    backwards = bool(getattr(options, "backwards", False))
    if tensors[layer.INPUT_WEIGHTS].dtype is kit.DType.INT8:
        _check_int8_weights(node, kept, tensors)
        if backwards:
            raise node.unsupported(
                "it has int8 weights in both directions", "quantise activations too, or no weights"
            )
        chosen = range_asked(node)
    else:
        for tensor in tensors:
            if tensor.dtype is not kit.DType.FLOAT32:
                raise node.unsupported(
                    f"tensor {tensor.name!r} is {tensor.dtype.value} beside float32",
                    "quantise the model fully to int8, or not at all",
                )
    if not math.isfinite(clip):
        raise node.unsupported(f"its cell clip is {clip}")
    attributes = FloatLstm(bool(options.timeMajor), clip, backwards, chosen)
    return kit.ReadOp(attributes, kept, states=layer.KEPT_STATES)


def _check_int8_weights(
    node: kit.TfliteNode, kept: Sequence[int], tensors: Sequence[kit.Tensor]
) -> None:
    check_floats(node, (kept[layer.INPUT], *kept[layer.BIASES :]))
    for tensor in tensors[layer.INPUT_WEIGHTS : layer.BIASES]:
        if tensor.dtype is not kit.DType.INT8 or tensor.quantisation is None:
            raise node.unsupported(
                f"weights {tensor.name!r} are {tensor.dtype.value} beside int8 ones",
                "quantise all weights, or none",
            )
        layer.check_symmetric(node, tensor)


def _write(op: kit.Operator[FloatLstm]) -> kit.WrittenOp:
    if op.attributes.range is None:
        return layer.written(op)
    return layer.written(op, asymmetricQuantizeInputs=op.attributes.range is Range.ASYMMETRIC)


def _drawn(rng: np.random.Generator) -> tuple[kit.Graph, FloatLstm]:
    """A layer with float weights but for its attributes, and these."""
    graph = in_float(lstm_s8.sample(rng), rng)
    attributes = graph.ops[0].attributes
    assert isinstance(attributes, Lstm)
    return graph, FloatLstm(attributes.time_major, attributes.cell_clip)


def _sample(rng: np.random.Generator) -> kit.Graph:
    return with_attributes(*_drawn(rng))


def _hybrid_sample(rng: np.random.Generator) -> kit.Graph:
    graph, attributes = _drawn(rng)
    weights = graph.ops[0].inputs[layer.INPUT_WEIGHTS : layer.BIASES]
    graph = with_int8_weights(graph, weights, 0.008, rng)
    return with_attributes(graph, replace(attributes, range=random_range(rng)))


LSTM_F32 = kit.Form(
    kind="lstm",
    attributes=FloatLstm,
    infer=layer.infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=layer.macs,
    tflite=kit.TfliteBinding(("UNIDIRECTIONAL_SEQUENCE_LSTM",), _read, _write),
    dtype=kit.DType.FLOAT32,
    limits="float32; no peepholes, projection, layer normalisation or coupled gates; state is kept "
    "from run to run",
)
LSTM_HYBRID = replace(
    LSTM_F32,
    sample=_hybrid_sample,
    weights=kit.DType.INT8,
    name="hybrid",
    limits="float32 with constant int8 weights, as LiteRT's hybrid kernel",
)
