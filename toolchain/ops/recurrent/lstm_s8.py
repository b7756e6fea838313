"""LSTM of int8 with an int16 cell state: no peepholes, projection, layer normalisation or coupled
gates.

Arithmetic: LiteRT `lstm_eval.cc`, `LstmStepInteger8x8_16`, whose gates are gemmlowp's int16
logistic and tanh (CMSIS-NN's and TFLM's are tables, a little off).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, State, Tensor
from toolchain.ops.arithmetic.fixed_point import (
    INT32_MAX,
    check_sums,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)
from toolchain.ops.arithmetic.fixed_s16 import logistic, tanh
from toolchain.ops.convolution.common import constant_of
from toolchain.ops.extents import Extent, Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Output,
    Packed,
    Row,
    Scratch,
    Struct,
    Touched,
    constant,
)
from toolchain.ops.spec import Array, ReadOp, TensorType, TfliteBinding, TfliteNode, WrittenOp

INPUT, INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES, HIDDEN, CELL = 0, 1, 5, 9, 13, 14
GATES = ("input", "forget", "cell", "output")
_FILE_ORDER = (*range(9), -1, -1, -1, *range(9, 13), -1, -1, 13, 14, -1, -1, -1, -1)
"""For each input in the file, its index among the operator's; -1 for those that are not supported
(peepholes, projection, layer normalisation).
"""
_GATE_SCALE = 2.0**-12
WITHOUT_TANH = "thimble_lstm_without_tanh_s8"
_LARGEST_PRODUCT = 32767 * 32768
"""Of an output gate and a hyperbolic tangent, in int16."""
_TANH_BITS = range(7)
"""Integer bits of a cell state that has a hyperbolic tangent in LiteRT's `PortableApplyTanh`
(kernels/internal/reference/portable_tensor_utils.cc:610). For others it returns, and its output
keeps what it held: `CalculateLstmOutputInteger8x8_16` gives it `scratch0`, in which the input gate
lies (lstm_eval.cc:1486, 1572). An assertion of debug builds wants at most 6.
"""
_CELL_SHIFTS = range(-30, 2)
"""Exponents of a cell state's scale: LiteRT divides by 2^(30 + exponent), which gemmlowp's
`RoundingDivideByPOT` defines for 0 to 31 (lstm_eval.cc:655).
"""


@dataclass(frozen=True)
class Lstm(Attributes):
    """`hidden_scale` and `hidden_zero_point` quantise the product that becomes the hidden state."""

    hidden_scale: float
    hidden_zero_point: int
    cell_clip: float = 0.0
    time_major: bool = False


@dataclass(frozen=True)
class _Gate:
    """Sums of the input and of the hidden state, each scaled by (multiplier, shift)."""

    weights: NDArray[np.int64]
    recurrent: NDArray[np.int64]
    bias: NDArray[np.int64]
    recurrent_bias: NDArray[np.int64]
    scale: tuple[int, int]
    recurrent_scale: tuple[int, int]

    @property
    def largest(self) -> int:
        """What no sum exceeds in magnitude before it wraps. Raises as `check_sums` does."""
        pairs = (
            (self.weights, self.bias, self.scale),
            (self.recurrent, self.recurrent_bias, self.recurrent_scale),
        )
        largest = 0
        for weights, bias, scale in pairs:
            lowest = bias + np.minimum(-128 * weights, 127 * weights).sum(axis=1)
            highest = bias + np.maximum(-128 * weights, 127 * weights).sum(axis=1)
            for held in (-32768, 32767):  # what is added to the scaled sum
                check_sums(lowest, highest, *scale, held)
            most = np.abs(bias) + 128 * np.abs(weights).sum(axis=1)
            largest = max(largest, int(most.max()))
        return largest


def attributes_of(op: Op) -> Lstm:
    assert isinstance(op.attributes, Lstm)
    return op.attributes


def sizes_of(op: Op, graph: Graph) -> tuple[int, int, int, int]:
    """Batches, steps, inputs, units."""
    first, second, inputs = graph.input(op, INPUT).shape
    batches, steps = (second, first) if attributes_of(op).time_major else (first, second)
    return batches, steps, inputs, graph.input(op, HIDDEN).shape[1]


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, hidden, cell = (graph.input(op, index) for index in (INPUT, HIDDEN, CELL))
    if len(x.shape) != 3 or len(hidden.shape) != 2:
        raise ValueError(f"input {x} has no batch, time and depth")
    batches, _, inputs, units = sizes_of(op, graph)
    shapes = {INPUT_WEIGHTS: (units, inputs), RECURRENT_WEIGHTS: (units, units), BIASES: (units,)}
    for first, shape in shapes.items():
        for index in range(first, first + len(GATES)):
            if graph.input(op, index).shape != shape:
                raise ValueError(f"{graph.input(op, index)} is not {list(shape)}")
    if hidden.shape != (batches, units) or cell.shape != hidden.shape:
        raise ValueError(f"states {hidden} and {cell} are not {[batches, units]}")
    return (
        TensorType((*x.shape[:2], units), x.dtype),
        TensorType(hidden.shape, hidden.dtype),
        TensorType(cell.shape, cell.dtype),
    )


def _float32(value: float) -> np.float32:
    return np.float32(value)


def _gates(op: Op, graph: Graph) -> list[_Gate]:
    """Scales in float32, as LiteRT's PopulateQuantizedLstmParams8x8_16 computes them."""
    x, hidden = graph.input(op, INPUT), graph.input(op, HIDDEN)
    found = []
    for number in range(len(GATES)):
        w = graph.input(op, INPUT_WEIGHTS + number)
        r = graph.input(op, RECURRENT_WEIGHTS + number)
        weights, recurrent = (constant_of(t).astype(np.int64) for t in (w, r))
        bias = constant_of(graph.input(op, BIASES + number)).astype(np.int64)
        scales = [
            float(_float32(q.scale) * _float32(y.q.scale) / _float32(_GATE_SCALE))
            for q, y in ((w.q, x), (r.q, hidden))
        ]
        found.append(
            _Gate(
                weights,
                recurrent,
                bias - x.q.zero_point * weights.sum(axis=1),
                -hidden.q.zero_point * recurrent.sum(axis=1),
                quantize_multiplier(scales[0]),
                quantize_multiplier(scales[1]),
            )
        )
    return found


def _hidden_scale(op: Op) -> tuple[int, int]:
    scale = float(_float32(attributes_of(op).hidden_scale))
    return quantize_multiplier(float(_float32(2.0**-15 / scale * 2.0**-15)))


def _cell_clip(op: Op, graph: Graph) -> int:
    clip = attributes_of(op).cell_clip
    if clip <= 0:
        return 0
    steps = _float32(clip) / _float32(graph.input(op, CELL).q.scale)
    return int(min(max(steps, _float32(-32768)), _float32(32767)))


def _check_cell(scale: float) -> None:
    """Raises ValueError where LiteRT does not define the cell state at this scale."""
    if math.log2(scale) not in _CELL_SHIFTS:
        raise ValueError(f"the cell state's scale {scale:g} is not a power of two, 2^-30 to 2^1")


def without_tanh(op: Op, graph: Graph) -> bool:
    """Whether the layer's output does not depend on its cell state, as in LiteRT."""
    return _integer_bits(op, graph) not in _TANH_BITS


def _integer_bits(op: Op, graph: Graph) -> int:
    """Of the cell state, whose scale is a power of two."""
    return 15 + round(math.log2(graph.input(op, CELL).q.scale))


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    gates, clip, bits = _gates(op, graph), _cell_clip(op, graph), _integer_bits(op, graph)
    x, hidden, cell = (inputs[i].astype(np.int64) for i in (INPUT, HIDDEN, CELL))
    if not attributes_of(op).time_major:
        x = np.swapaxes(x, 0, 1)
    rows = []
    for step in x:
        sums = []
        for gate in gates:
            total = multiply_by_quantized_multiplier(
                step @ gate.weights.T + gate.bias, *gate.scale
            ).clip(-32768, 32767)
            recurrent = hidden @ gate.recurrent.T + gate.recurrent_bias
            total += multiply_by_quantized_multiplier(recurrent, *gate.recurrent_scale)
            sums.append(total.clip(-32768, 32767))
        into, forget, output = (logistic(sums[i]) for i in (0, 1, 3))
        candidate = rounding_divide_by_pot(into * tanh(sums[2], 3), 15 + bits)
        candidate = candidate.astype(np.int16).astype(np.int64)  # wraps
        cell = (rounding_divide_by_pot(forget * cell, 15) + candidate).clip(-32768, 32767)
        if clip:
            cell = cell.clip(-clip, clip)
        squashed = tanh(cell, bits) if bits in _TANH_BITS else into
        product = multiply_by_quantized_multiplier(output * squashed, *_hidden_scale(op))
        hidden = (product + attributes_of(op).hidden_zero_point).clip(-128, 127)
        rows.append(hidden.astype(np.int8))
    y = np.stack(rows, axis=0 if attributes_of(op).time_major else 1)
    return y, hidden.astype(np.int8), cell.astype(np.int16)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    gates = _gates(op, graph)
    wraps = max([gate.largest for gate in gates]) > INT32_MAX
    far = min(shift for gate in gates for _, shift in (gate.scale, gate.recurrent_scale)) <= -31
    product = np.array([_LARGEST_PRODUCT], np.int64)
    check_sums(-product, product, *_hidden_scale(op), attributes_of(op).hidden_zero_point)
    try:
        _check_cell(graph.input(op, CELL).q.scale)
    except ValueError as error:
        raise UnsupportedError(f"operator {op.name!r}: {error}; convert the model again") from error
    batches, steps, inputs, units = sizes_of(op, graph)
    time_major = attributes_of(op).time_major
    hidden_multiplier, hidden_shift = _hidden_scale(op)
    params: dict[str, Argument] = {
        "gates": Row(tuple(starmap(_packed_gate, zip(GATES, gates, strict=True)))),
        "batches": batches,
        "steps": steps,
        "inputs": inputs,
        "units": units,
        "batch_stride": 1 if time_major else steps,
        "step_stride": batches if time_major else 1,
        "cell_integer_bits": _integer_bits(op, graph),
        "cell_clip": _cell_clip(op, graph),
        "hidden_multiplier": hidden_multiplier,
        "hidden_shift": hidden_shift,
        "hidden_zero_point": attributes_of(op).hidden_zero_point,
    }
    arguments: dict[str, Argument] = {
        "input": Input(INPUT),
        "params": Struct("thimble_lstm_params", params),
        "hidden": Output(1),
        "cell": Output(2),
        "gates": Scratch(element="int16_t"),
        "output": Output(0),
    }
    # CMSIS-NN's mask of a right shift by 31 overflows: our own function takes that, too.
    function = "thimble_lstm_wrapped_s8" if wraps or far else "thimble_lstm_s8"
    if without_tanh(op, graph):
        function = WITHOUT_TANH
    return Kernel(
        (Call(function, arguments),),
        _extents,
        constants=tuple(_constants(gates)),
        scratch_bytes=2 * len(GATES) * units,
    )


def _packed_gate(name: str, gate: _Gate) -> Struct:
    (multiplier, shift), (recurrent_multiplier, recurrent_shift) = gate.scale, gate.recurrent_scale
    return Struct(
        "thimble_lstm_gate",
        {
            "input_weights": Packed(f"{name}_weights"),
            "recurrent_weights": Packed(f"{name}_recurrent"),
            "input_bias": Packed(f"{name}_bias"),
            "recurrent_bias": Packed(f"{name}_recurrent_bias"),
            "input_multiplier": multiplier,
            "input_shift": shift,
            "recurrent_multiplier": recurrent_multiplier,
            "recurrent_shift": recurrent_shift,
        },
    )


def _constants(gates: Sequence[_Gate]) -> Iterator[Constant]:
    """What the gates' structs name."""
    for name, gate in zip(GATES, gates, strict=True):
        data: dict[str, Array] = {
            "weights": gate.weights.astype(np.int8),
            "recurrent": gate.recurrent.astype(np.int8),
            "bias": gate.bias.astype(np.int32),
            "recurrent_bias": gate.recurrent_bias.astype(np.int32),
        }
        for key, values in data.items():
            yield constant(f"{name}_{key}", values, f"{key.replace('_', ' ')} of the {name} gate")


def _extents(touched: Touched) -> Extents:
    """Row (batch, step) is number batch * batch_stride + step * step_stride."""
    call = touched.call
    batches, steps, inputs, units = (
        call[f"params.{name}"] for name in ("batches", "steps", "inputs", "units")
    )
    rows = (batches - 1) * call["params.batch_stride"] + 1
    rows += (steps - 1) * call["params.step_stride"]
    gates = call.find("params.gates")
    assert isinstance(gates, Row)
    sizes = {
        "input_weights": units * inputs,
        "recurrent_weights": units * units,
        "input_bias": 4 * units,
        "recurrent_bias": 4 * units,
    }
    read: dict[str, int] = {}
    for gate in gates.values:
        assert isinstance(gate, Struct)
        for name, size in sizes.items():
            packed = gate.members[name]
            assert isinstance(packed, Packed)
            read[packed.key] = size
    return Extents(
        {INPUT: Extent(0, rows * inputs, touched=batches * steps * inputs)},
        {
            0: Extent(0, rows * units, touched=batches * steps * units),
            1: whole(batches * units),
            2: whole(batches * units, 2),
        },
        read,
        scratch=2 * len(gates.values) * units,
    )


def _macs(op: Op, graph: Graph) -> int:
    batches, steps, inputs, units = sizes_of(op, graph)
    return batches * steps * len(GATES) * units * (inputs + units)


def given_tensors(node: TfliteNode) -> tuple[tuple[int, ...], list[Tensor]]:
    """The inputs that are kept, by their places in the file, and their tensors.

    Raises what `node.unsupported` makes for a layer with parts that no kernel has.
    """
    options, given = node.options, list(node.inputs)
    given += [None] * (len(_FILE_ORDER) - len(given))
    for index, own in enumerate(_FILE_ORDER):
        if own >= 0 and given[index] is None:
            raise node.unsupported(f"input {index} is missing", "an LSTM without coupled gates")
        if own < 0 and given[index] is not None:
            raise node.unsupported(
                "it has peepholes, a projection or layer normalisation", "use a plain LSTM layer"
            )
    kept = tuple(index for index, own in enumerate(_FILE_ORDER) if own >= 0)
    for index in kept[INPUT_WEIGHTS:HIDDEN]:
        node.constant(index)
    if options.fusedActivationFunction != "TANH":
        raise node.unsupported("its activation is not tanh")
    if options.diagonalRecurrentTensors or options.projClip:
        raise node.unsupported("it has diagonal recurrent weights or a clipped projection")
    return kept, [tensor for index in kept if (tensor := given[index]) is not None]


def _read(node: TfliteNode) -> ReadOp:
    options, (kept, tensors) = node.options, given_tensors(node)
    kinds = [*[DType.INT8] * BIASES, *[DType.INT32] * len(GATES), DType.INT8, DType.INT16]
    for tensor, dtype in zip(tensors, kinds, strict=True):
        if tensor.dtype is not dtype:
            raise node.unsupported(
                f"tensor {tensor.name!r} is {tensor.dtype.value}, not {dtype.value}",
                "quantise the model fully to int8",
            )
    for tensor in tensors[INPUT_WEIGHTS:BIASES]:
        if tensor.q.per_channel or tensor.q.zero_point:
            raise node.unsupported(f"weights {tensor.name!r} are not per tensor and symmetric")
    cell = tensors[CELL].q
    if cell.zero_point:
        raise node.unsupported(f"the cell state's zero point is {cell.zero_point}, not 0")
    try:
        _check_cell(cell.scale)
    except ValueError as error:
        raise node.unsupported(str(error), "convert it again") from error
    hidden = node.intermediates[4] if len(node.intermediates) == 5 else None
    if hidden is None or hidden.quantisation is None:
        raise node.unsupported("the scale of its hidden state is missing", "convert it again")
    attributes = Lstm(
        hidden.q.scale, hidden.q.zero_point, float(options.cellClip), bool(options.timeMajor)
    )
    return ReadOp(attributes, kept, states=(18, 19))


def _write(op: Op, graph: Graph) -> WrittenOp:
    return write_layer(op)


def write_layer(op: Op) -> WrittenOp:
    """The operator in a file, with the scales of int8."""
    attributes = attributes_of(op)
    hidden = Quantisation((attributes.hidden_scale,), (attributes.hidden_zero_point,))
    return WrittenOp(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "UnidirectionalSequenceLSTMOptions",
        {
            "fusedActivationFunction": "TANH",
            "cellClip": attributes.cell_clip,
            "timeMajor": attributes.time_major,
        },
        order=_FILE_ORDER,
        intermediates=(
            *(Tensor(f"gate_{name}", (0,), DType.FLOAT32) for name in GATES),
            Tensor("hidden", (0,), DType.INT8, hidden),
        ),
    )


def _sample(rng: np.random.Generator) -> Graph:
    batches, steps, inputs, units = (int(n) for n in rng.integers(1, (4, 6, 20, 12)))
    time_major = bool(rng.random() < 0.3)

    def quantised(low: float, high: float, zero: int = 0) -> Quantisation:
        return Quantisation((float(_float32(2.0 ** rng.uniform(low, high))),), (zero,))

    x_q = quantised(-8, -4, int(rng.integers(-128, 128)))
    h_q = quantised(-8, -6, int(rng.integers(-128, 128) if rng.random() < 0.3 else -1))
    c_q = Quantisation((2.0 ** -int(rng.integers(9, 16)),), (0,))
    rows = (steps, batches) if time_major else (batches, steps)
    tensors = [Tensor("x", (*rows, inputs), DType.INT8, x_q)]
    for kind, depth in (("w", inputs), ("r", units)):
        for gate in GATES:
            data = rng.integers(-127, 128, (units, depth)).astype(np.int8)
            q = quantised(-10, -5)
            tensors.append(Tensor(f"{kind}_{gate}", data.shape, DType.INT8, q, data))
    for gate, weights in zip(GATES, tensors[1:5], strict=True):
        q = Quantisation((float(_float32(weights.q.scale) * _float32(x_q.scale)),), (0,))
        data = rng.integers(-9000, 9000, units).astype(np.int32)
        tensors.append(Tensor(f"b_{gate}", (units,), DType.INT32, q, data))
    hidden = Tensor("hidden", (batches, units), DType.INT8, h_q)
    cell = Tensor("cell", (batches, units), DType.INT16, c_q)
    after = [
        Tensor("hidden_next", hidden.shape, DType.INT8, h_q),
        Tensor("cell_next", cell.shape, DType.INT16, c_q),
    ]
    y = Tensor("y", (*rows, units), DType.INT8, h_q)
    clip = float(rng.choice([0.0, 10.0, 0.5]))
    attributes = Lstm(h_q.scale, h_q.zero_point, clip, time_major)
    names = tuple(t.name for t in (*tensors, hidden, cell))
    op = Op("lstm", "lstm", names, ("y", "hidden_next", "cell_next"), attributes)
    states = [
        State("hidden", "hidden_next", np.full(hidden.shape, h_q.zero_point, np.int8)),
        State("cell", "cell_next", np.zeros(cell.shape, np.int16)),
    ]
    return Graph.build("sample", [*tensors, hidden, cell, y, *after], [op], ["x"], ["y"], states)


LSTM_S8 = OldForm(
    kind="lstm",
    attributes=Lstm,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=_macs,
    tflite=TfliteBinding(("UNIDIRECTIONAL_SEQUENCE_LSTM",), _read, _write),
    dtype=DType.INT8,
    types=frozenset({DType.INT8, DType.INT16}),
    limits="int8, cell state int16 with a scale of 2^-30 to 2^1; no peepholes, projection, layer "
    "normalisation or coupled gates; state is kept from run to run",
)
