"""LSTM of int8 with an int16 cell state.

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

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import rounding_divide_by_pot
from toolchain.ops.arithmetic.fixed_s16 import logistic, tanh
from toolchain.ops.recurrent import lstm_layer as layer
from toolchain.ops.recurrent.lstm_layer import Lstm
from toolchain.ops.recurrent.samples import random_q
from toolchain.ops.recurrent.sequence import Walk, check_types, row_extents

_PLAIN, _WRAPPED = "thimble_lstm_s8", "thimble_lstm_wrapped_s8"
_WITHOUT_TANH = "thimble_lstm_without_tanh_s8"
_GATE_SCALE = 2.0**-12
_NO_TANH = (
    "a cell state whose scale is not 2**-15 to 2**-9, where LiteRT leaves out its hyperbolic "
    "tangent: the output is the same whatever the cell state, as the reference's; quantise the "
    "model with data in which the state's largest value is between 0.5 and 64"
)
_CALIBRATED = (
    "convert the float model with converter.optimizations = [tf.lite.Optimize.DEFAULT] and a "
    "representative_dataset, by which the converter calibrates the states"
)
_LARGEST_PRODUCT = 32767 * 32768
"""The largest product of an output gate and a hyperbolic tangent, in int16."""
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
class IntegerLstm(Lstm):
    """`hidden_scale` and `hidden_zero_point` quantise the product that becomes the hidden state."""

    hidden_scale: float = 1.0
    hidden_zero_point: int = 0


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
        """The magnitude that no sum exceeds before it wraps. Raises as `check_sums` does."""
        pairs = (
            (self.weights, self.bias, self.scale),
            (self.recurrent, self.recurrent_bias, self.recurrent_scale),
        )
        largest = 0
        for weights, bias, scale in pairs:
            lowest = bias + np.minimum(-128 * weights, 127 * weights).sum(axis=1)
            highest = bias + np.maximum(-128 * weights, 127 * weights).sum(axis=1)
            for held in (-32768, 32767):  # what is added to the scaled sum
                kit.check_sums(lowest, highest, *scale, held)
            most = np.abs(bias) + 128 * np.abs(weights).sum(axis=1)
            largest = max(largest, int(most.max()))
        return largest


def _gates(op: kit.Operator[IntegerLstm]) -> list[_Gate]:
    """Scales in float32, as LiteRT's PopulateQuantizedLstmParams8x8_16 computes them."""
    x, hidden = op.input(layer.INPUT), op.input(layer.HIDDEN)
    places = (
        layer.of_gates(op, first)
        for first in (layer.INPUT_WEIGHTS, layer.RECURRENT_WEIGHTS, layer.BIASES)
    )
    gates = []
    for w, r, b in zip(*places, strict=True):
        weights, recurrent, bias = (kit.constant_of(t).astype(np.int64) for t in (w, r, b))
        scales = [
            float(np.float32(q.scale) * np.float32(y.q.scale) / np.float32(_GATE_SCALE))
            for q, y in ((w.q, x), (r.q, hidden))
        ]
        gates.append(
            _Gate(
                weights,
                recurrent,
                bias - x.q.zero_point * weights.sum(axis=1),
                -hidden.q.zero_point * recurrent.sum(axis=1),
                kit.quantize_multiplier(scales[0]),
                kit.quantize_multiplier(scales[1]),
            )
        )
    return gates


def _hidden_scale(op: kit.Operator[IntegerLstm]) -> tuple[int, int]:
    scale = float(np.float32(op.attributes.hidden_scale))
    return kit.quantize_multiplier(float(np.float32(2.0**-15 / scale * 2.0**-15)))


def _cell_clip(op: kit.Operator[IntegerLstm]) -> int:
    clip = op.attributes.cell_clip
    if clip <= 0:
        return 0
    steps = np.float32(clip) / np.float32(op.input(layer.CELL).q.scale)
    return int(min(max(steps, np.float32(-32768)), np.float32(32767)))


def _check_cell(scale: float) -> None:
    """Raises ValueError where LiteRT does not define the cell state at this scale."""
    if math.log2(scale) not in _CELL_SHIFTS:
        raise ValueError(
            f"the cell state's scale {scale:g} is not a power of two, 2^-30 to 2^1; {_CALIBRATED}"
        )


def _integer_bits(op: kit.Operator[IntegerLstm]) -> int:
    """Integer bits of the cell state, whose scale is a power of two."""
    return 15 + round(math.log2(op.input(layer.CELL).q.scale))


def _reference(op: kit.Operator[IntegerLstm], inputs: kit.Inputs) -> kit.Arrays:
    gates, clip, bits = _gates(op), _cell_clip(op), _integer_bits(op)
    walk = layer.lstm_walk(op)
    x, hidden, cell = (inputs[i].astype(np.int64) for i in (layer.INPUT, layer.HIDDEN, layer.CELL))
    rows = []
    for step in walk.split(x):
        sums = []
        for gate in gates:
            total = kit.multiply_by_quantized_multiplier(
                step @ gate.weights.T + gate.bias, *gate.scale
            ).clip(-32768, 32767)
            recurrent = hidden @ gate.recurrent.T + gate.recurrent_bias
            total += kit.multiply_by_quantized_multiplier(recurrent, *gate.recurrent_scale)
            sums.append(total.clip(-32768, 32767))
        into, forget, output = (logistic(sums[i]) for i in (0, 1, 3))
        candidate = rounding_divide_by_pot(into * tanh(sums[2], 3), 15 + bits)
        candidate = candidate.astype(np.int16).astype(np.int64)  # wraps
        cell = (rounding_divide_by_pot(forget * cell, 15) + candidate).clip(-32768, 32767)
        if clip:
            cell = cell.clip(-clip, clip)
        squashed = tanh(cell, bits) if bits in _TANH_BITS else into
        product = kit.multiply_by_quantized_multiplier(output * squashed, *_hidden_scale(op))
        hidden = (product + op.attributes.hidden_zero_point).clip(-128, 127)
        rows.append(hidden.astype(np.int8))
    return walk.joined(rows), hidden.astype(np.int8), cell.astype(np.int16)


def _select(op: kit.Operator[IntegerLstm], core: kit.Core) -> kit.Kernel:
    gates = _gates(op)
    product = np.array([_LARGEST_PRODUCT], np.int64)
    wraps = max([gate.largest for gate in gates]) > kit.INT32_MAX
    hidden_multiplier, hidden_shift = _hidden_scale(op)
    kit.check_sums(
        -product, product, hidden_multiplier, hidden_shift, op.attributes.hidden_zero_point
    )
    try:
        _check_cell(op.input(layer.CELL).q.scale)
    except ValueError as error:
        raise kit.UnsupportedError(f"operator {op.name!r}: {error}") from error
    walk, bits = layer.lstm_walk(op), _integer_bits(op)
    params: dict[str, kit.Argument] = {
        "gates": kit.Row(tuple(starmap(_packed_gate, zip(layer.GATES, gates, strict=True)))),
        **walk.members,
        "cell_integer_bits": bits,
        "cell_clip": _cell_clip(op),
        "hidden_multiplier": hidden_multiplier,
        "hidden_shift": hidden_shift,
        "hidden_zero_point": op.attributes.hidden_zero_point,
    }
    arguments: dict[str, kit.Argument] = {
        "input": kit.Input(layer.INPUT),
        "params": kit.Struct("thimble_lstm_params", params),
        "hidden": kit.Output(1),
        "cell": kit.Output(2),
        "gates": kit.Scratch(element="int16_t"),
        "output": kit.Output(0),
    }
    # CMSIS-NN's mask of a right shift by 31 overflows: our own function takes that, too.
    far = min(shift for gate in gates for _, shift in (gate.scale, gate.recurrent_scale)) <= -31
    function = _WRAPPED if wraps or far else _PLAIN
    without = bits not in _TANH_BITS
    if without:
        function = _WITHOUT_TANH
    return kit.Kernel(
        (kit.Call(function, arguments),),
        _extents,
        constants=tuple(_constants(gates)),
        scratch_bytes=2 * len(layer.GATES) * walk.units,
        find_terms=lambda: _terms(walk, core),
        suspicion=_NO_TANH if without else "",
    )


def _terms(walk: Walk, core: kit.Core) -> kit.Terms:
    """Rows of a gate's matrices, so many together, and the vectors, words or bytes of each."""
    together, width = (4, 16) if core.mve else (2, 4) if core.dsp else (3, 1)
    cells, (groups, last) = walk.batches * walk.steps, divmod(walk.units, together)
    matrices = len(layer.GATES) * cells
    terms = dict.fromkeys(("group word", "group rest", "last word", "last rest"), 0.0)
    for depth in (walk.inputs, walk.units):
        words, rest = (-(-depth // width), 0) if core.mve else divmod(depth, width)
        terms["group word"] += matrices * groups * words
        terms["group rest"] += matrices * groups * rest
        terms["last word"] += matrices * last * words
        terms["last rest"] += matrices * last * rest
    return terms | {
        "call": 1.0,
        "cell": cells,
        "group": 2 * matrices * groups,
        "last": 2 * matrices * last,
        "unit": cells * (-(-walk.units // 4) if core.mve else walk.units),
    }


def _packed_gate(name: str, gate: _Gate) -> kit.Struct:
    (multiplier, shift), (recurrent_multiplier, recurrent_shift) = gate.scale, gate.recurrent_scale
    return kit.Struct(
        "thimble_lstm_gate",
        {
            "input_weights": kit.Packed(f"{name}_weights"),
            "recurrent_weights": kit.Packed(f"{name}_recurrent"),
            "input_bias": kit.Packed(f"{name}_bias"),
            "recurrent_bias": kit.Packed(f"{name}_recurrent_bias"),
            "input_multiplier": multiplier,
            "input_shift": shift,
            "recurrent_multiplier": recurrent_multiplier,
            "recurrent_shift": recurrent_shift,
        },
    )


def _constants(gates: Sequence[_Gate]) -> Iterator[kit.Constant]:
    """The constants that the gates' structs name."""
    for name, gate in zip(layer.GATES, gates, strict=True):
        data: dict[str, kit.Array] = {
            "weights": gate.weights.astype(np.int8),
            "recurrent": gate.recurrent.astype(np.int8),
            "bias": gate.bias.astype(np.int32),
            "recurrent_bias": gate.recurrent_bias.astype(np.int32),
        }
        for key, values in data.items():
            yield kit.constant(
                f"{name}_{key}", values, f"{key.replace('_', ' ')} of the {name} gate"
            )


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    inputs, units = call["params.inputs"], call["params.units"]
    gates = call.find("params.gates")
    assert isinstance(gates, kit.Row)
    sizes = {
        "input_weights": units * inputs,
        "recurrent_weights": units * units,
        "input_bias": 4 * units,
        "recurrent_bias": 4 * units,
    }
    constants: dict[str, int] = {}
    for gate in gates.values:
        assert isinstance(gate, kit.Struct)
        for name, size in sizes.items():
            packed = gate.members[name]
            assert isinstance(packed, kit.Packed)
            constants[packed.key] = size
    read, made = row_extents(call, 1, 1, 2)
    return kit.Extents(read, made, constants, scratch=2 * len(gates.values) * units)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    options, (kept, tensors) = node.options, layer.given_tensors(node)
    if tensors[layer.INPUT].dtype is kit.DType.INT16:
        raise node.unsupported(
            "its activations are int16, which LiteRT's kernel would read as int8",
            "quantise them to int8: target_spec.supported_ops = "
            "[tf.lite.OpsSet.TFLITE_BUILTINS_INT8]",
        )
    kinds = [kit.DType.INT8] * layer.BIASES + [kit.DType.INT32] * len(layer.GATES)
    check_types(node, dict(zip(kept, (*kinds, kit.DType.INT8, kit.DType.INT16), strict=True)))
    for tensor in tensors[layer.INPUT_WEIGHTS : layer.BIASES]:
        layer.check_symmetric(node, tensor)
    cell = tensors[layer.CELL].q
    if cell.zero_point:
        raise node.unsupported(
            f"the cell state's zero point is {cell.zero_point}, not 0", _CALIBRATED
        )
    try:
        _check_cell(cell.scale)
    except ValueError as error:
        raise node.unsupported(str(error)) from error
    hidden = node.intermediates[4] if len(node.intermediates) == 5 else None
    if hidden is None or hidden.quantisation is None:
        raise node.unsupported(
            "the scale of its hidden state is missing, without which LiteRT does not run it",
            _CALIBRATED,
        )
    attributes = IntegerLstm(
        bool(options.timeMajor), float(options.cellClip), hidden.q.scale, hidden.q.zero_point
    )
    return kit.ReadOp(attributes, kept, states=layer.KEPT_STATES)


def _write(op: kit.Operator[IntegerLstm]) -> kit.WrittenOp:
    hidden = kit.Quantisation((op.attributes.hidden_scale,), (op.attributes.hidden_zero_point,))
    return layer.written(
        op,
        (
            *(kit.Tensor(f"gate_{name}", (0,), kit.DType.FLOAT32) for name in layer.GATES),
            kit.Tensor("hidden", (0,), kit.DType.INT8, hidden),
        ),
    )


def sample(rng: np.random.Generator) -> kit.Graph:
    """A random layer, and its states."""
    batches, steps, inputs, units = (int(n) for n in rng.integers(1, (4, 6, 20, 12)))
    time_major = bool(rng.random() < 0.3)

    x_q = random_q(rng, -8, -4, int(rng.integers(-128, 128)))
    h_q = random_q(rng, -8, -6, int(rng.integers(-128, 128) if rng.random() < 0.3 else -1))
    c_q = kit.Quantisation((2.0 ** -int(rng.integers(9, 16)),), (0,))
    rows = (steps, batches) if time_major else (batches, steps)
    tensors = [kit.Tensor("x", (*rows, inputs), kit.DType.INT8, x_q)]
    for kind, depth in (("w", inputs), ("r", units)):
        for gate in layer.GATES:
            data = rng.integers(-127, 128, (units, depth)).astype(np.int8)
            tensors.append(kit.constant_sample(f"{kind}_{gate}", data, random_q(rng, -10, -5)))
    for gate, weights in zip(layer.GATES, tensors[1:5], strict=True):
        q = kit.Quantisation((float(np.float32(weights.q.scale) * np.float32(x_q.scale)),), (0,))
        data = rng.integers(-9000, 9000, units).astype(np.int32)
        tensors.append(kit.constant_sample(f"b_{gate}", data, q))
    tensors.append(kit.Tensor("hidden", (batches, units), kit.DType.INT8, h_q))
    tensors.append(kit.Tensor("cell", (batches, units), kit.DType.INT16, c_q))
    clip = float(rng.choice([0.0, 10.0, 0.5]))
    attributes = IntegerLstm(time_major, clip, h_q.scale, h_q.zero_point)
    states = [
        kit.State("hidden", "hidden_next", np.full((batches, units), h_q.zero_point, np.int8)),
        kit.State("cell", "cell_next", np.zeros((batches, units), np.int16)),
    ]
    outputs = ("y", "hidden_next", "cell_next")
    return kit.sample("lstm", attributes, *tensors, q=h_q, outputs=outputs, states=states)


LSTM_S8 = kit.Form(
    kind="lstm",
    attributes=IntegerLstm,
    infer=layer.infer,
    reference=_reference,
    select=_select,
    sample=sample,
    macs=layer.macs,
    tflite=kit.TfliteBinding(("UNIDIRECTIONAL_SEQUENCE_LSTM",), _read, _write),
    dtype=kit.DType.INT8,
    types=frozenset({kit.DType.INT8, kit.DType.INT16}),
    limits="int8, cell state int16 with a scale of 2^-30 to 2^1; no peepholes, projection, layer "
    "normalisation or coupled gates; state is kept from run to run",
)
