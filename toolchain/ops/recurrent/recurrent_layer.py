"""Recurrent layers over a whole sequence in float32: ONNX LSTM, GRU and RNN.

Arithmetic: the equations of ONNX's specification, each operation rounded to float32, sums in the
order bias, inputs, units. ONNX Runtime adds in another order. The state begins anew with each run;
a caller who keeps it passes it in and out, as the file does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.slice import Slice
from toolchain.ops.recurrent.sequence import check_shapes, lstm_cell, products

INPUT, WEIGHTS, RECURRENT, BIAS, HIDDEN, CELL = range(6)


class Cell(Enum):
    """The value is the name in ONNX."""

    LSTM = "LSTM"
    GRU = "GRU"
    RNN = "RNN"

    @property
    def gates(self) -> int:
        return {Cell.LSTM: 4, Cell.GRU: 3, Cell.RNN: 1}[self]

    @property
    def biases(self) -> int:
        """Rows of `units` values: a GRU has another for the recurrent product that it resets."""
        return self.gates + (self is Cell.GRU)

    @property
    def scratch(self) -> int:
        """Rows of `units` values that the kernel works in."""
        return {Cell.LSTM: 6, Cell.GRU: 5, Cell.RNN: 2}[self]


@dataclass(frozen=True)
class Recurrent(kit.Attributes):
    """backwards   the last step of the sequence comes first.
    every_step  the output is [steps, batches, units], else that of the last step computed.
    variant     of a GRU, whether the reset gate comes after the recurrent product; of an RNN,
                whether it is rectified instead of tanh.
    """

    cell: Cell = Cell.LSTM
    backwards: bool = False
    every_step: bool = True
    variant: bool = False


def _sizes(op: kit.Operator[Recurrent]) -> tuple[int, int, int, int]:
    """Steps, batches, inputs, units."""
    steps, batches, inputs = op.input(INPUT).shape
    return steps, batches, inputs, op.input(RECURRENT).shape[-1]


def _infer(op: kit.Operator[Recurrent]) -> kit.TensorTypes:
    attributes, (steps, batches, inputs, units) = op.attributes, _sizes(op)
    cell = attributes.cell
    wanted = {
        WEIGHTS: (cell.gates * units, inputs),
        RECURRENT: (cell.gates * units, units),
        BIAS: (cell.biases * units,),
        HIDDEN: (batches, units),
        CELL: (batches, units),
    }
    check_shapes(op, wanted)
    state = kit.TensorType((batches, units), kit.DType.FLOAT32)
    output = state
    if attributes.every_step:
        output = kit.TensorType((steps, *state.shape), kit.DType.FLOAT32)
    return (output, state) if cell is Cell.LSTM else (output,)


def _reference(op: kit.Operator[Recurrent], inputs: kit.Inputs) -> kit.Arrays:
    attributes, (steps, batches, _, units) = op.attributes, _sizes(op)
    x, weights, recurrent, bias, *states = (a.astype(np.float32) for a in inputs)
    zero = np.zeros((batches, units), np.float32)
    hidden, cell, *_ = (*(state if state.size else zero for state in states), zero, zero)
    outputs = np.zeros((steps, batches, units), np.float32)
    for step in range(steps)[::-1] if attributes.backwards else range(steps):
        if attributes.cell is Cell.GRU:
            hidden = _gru_step(attributes, (weights, recurrent, bias), x[step], hidden)
        else:
            sums = products(recurrent, hidden, products(weights, x[step], bias))
            if attributes.cell is Cell.LSTM:
                into, output, forget, candidate = np.split(sums, 4, axis=1)
                hidden, cell = lstm_cell((into, forget, candidate, output), cell)
            elif attributes.variant:
                hidden = np.where(sums > np.float32(0), sums, np.float32(0))
            else:
                hidden = float_math.tanh(sums)
        outputs[step] = hidden
    result = outputs if attributes.every_step else hidden
    return (result, cell) if attributes.cell is Cell.LSTM else (result,)


def _gru_step(
    attributes: Recurrent,
    constants: tuple[kit.Float32, kit.Float32, kit.Float32],
    x: kit.Float32,
    hidden: kit.Float32,
) -> kit.Float32:
    weights, recurrent, bias = constants
    units = hidden.shape[1]
    sums = products(weights, x, bias[: 3 * units])
    gates = float_math.logistic(products(recurrent[: 2 * units], hidden, sums[:, : 2 * units]))
    update, reset, fresh = gates[:, :units], gates[:, units:], sums[:, 2 * units :]
    rows = recurrent[2 * units :]
    if attributes.variant:
        fresh = fresh + reset * products(rows, hidden, bias[3 * units :])
    else:
        fresh = products(rows, reset * hidden, fresh)
    return (np.float32(1) - update) * float_math.tanh(fresh) + update * hidden


def _select(op: kit.Operator[Recurrent], core: kit.Core) -> kit.Kernel:
    attributes, (steps, batches, inputs, units) = op.attributes, _sizes(op)
    params = kit.Struct(
        "thimble_recurrent_f32_params",
        {
            "steps": steps,
            "batches": batches,
            "inputs": inputs,
            "units": units,
            "backwards": int(attributes.backwards),
            "every_step": int(attributes.every_step),
            "variant": int(attributes.variant),
        },
    )
    arguments: dict[str, kit.Argument] = {
        "params": params,
        "input": kit.Input(INPUT),
        "weights": kit.Input(WEIGHTS),
        "recurrent": kit.Input(RECURRENT),
        "bias": kit.Input(BIAS),
        "hidden": kit.Input(HIDDEN),
    }
    if attributes.cell is Cell.LSTM:
        arguments |= {"cell": kit.Input(CELL), "output": kit.Output(0), "last_cell": kit.Output(1)}
    else:
        arguments |= {"output": kit.Output(0)}
    arguments |= {"scratch": kit.Scratch(element="float")}
    function = f"thimble_{attributes.cell.value.lower()}_f32"
    return kit.Kernel(
        (kit.Call(function, arguments),),
        lambda touched: _extents(touched, attributes.cell),
        scratch_bytes=4 * attributes.cell.scratch * units,
        find_terms=lambda: _terms(op),
    )


def _terms(op: kit.Operator[Recurrent]) -> dict[str, float]:
    """Turns of the kernel's loops. The activations of a unit are those of all its gates."""
    attributes, (steps, batches, inputs, units) = op.attributes, _sizes(op)
    rows = steps * batches
    return {
        "call": 1.0,
        "row": rows,
        "product": rows * attributes.cell.gates * units * (inputs + units),
        "unit": rows * units,
        "variant of a unit": rows * units * attributes.variant,
        "written element": (rows if attributes.every_step else batches) * units,
    }


def _extents(touched: kit.Touched, cell: Cell) -> kit.Extents:
    call = touched.call
    steps, batches, inputs, units = call.params("steps", "batches", "inputs", "units")
    read = {
        INPUT: steps * batches * inputs,
        WEIGHTS: cell.gates * units * inputs,
        RECURRENT: cell.gates * units * units,
        BIAS: cell.biases * units,
        HIDDEN: batches * units,
        CELL: batches * units,
    }
    if cell is Cell.GRU and not call["params.variant"]:
        read[BIAS] = cell.gates * units
    written = {0: (steps if call["params.every_step"] else 1) * batches * units}
    if cell is Cell.LSTM:
        written[1] = batches * units
    return kit.Extents(
        {index: kit.whole(size, 4) for index, size in read.items() if touched.has(index)},
        {index: kit.whole(size, 4) for index, size in written.items()},
        scratch=4 * cell.scratch * units,
    )


def _macs(op: kit.Operator[Recurrent]) -> int:
    steps, batches, inputs, units = _sizes(op)
    return steps * batches * op.attributes.cell.gates * units * (inputs + units)


# Reading.


def _read(node: kit.OnnxNode) -> None:
    if not node.in_float:
        raise node.left_in_float("it has no int8 form")
    cell = Cell(node.operator)
    _check(node, cell)
    batch_first = bool(node.attribute("layout", 0))
    x = node.operand(0, (1, 0, 2) if batch_first else (0, 1, 2))
    steps, batches = (node.shape(0)[axis] for axis in ((1, 0) if batch_first else (0, 1)))
    units = node.constant(2).data.shape[-1]
    name = node.attribute("direction", "forward")
    backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[name]
    every_step = node.is_read(0)
    state = (batches, units)
    outputs: list[list[str]] = [[], [], []]
    for place, back in enumerate(backwards):
        attributes = Recurrent(cell, back, every_step, _variant(node, cell, place))
        inputs = [x, *_constants(node, cell, place, units)]
        inputs += [_initial(node, index, place, state) for index in (5, 6)[: 1 + _has_cell(cell)]]
        while not inputs[-1]:
            inputs.pop()
        shapes = [(steps, *state) if every_step else state, state][: 1 + _has_cell(cell)]
        made = node.results("recurrent_layer", attributes, inputs, shapes)
        outputs[0].append(made[0])
        outputs[1].append(_last(node, made[0], steps, back, state) if every_step else made[0])
        outputs[2] += made[1:]
    for index, parts in enumerate(outputs):
        if not (index < node.outputs and node.is_read(index)):
            continue
        lead = (steps,) if index == 0 else ()
        tensor = _joined(node, parts, lead, state)
        rank_four = (1, 2, 0, 3) if batch_first else (0, 1, 2, 3)
        rank_three = (1, 0, 2) if batch_first else (0, 1, 2)
        node.define(index, tensor, rank_four if index == 0 else rank_three)


def _has_cell(cell: Cell) -> bool:
    return cell is Cell.LSTM


_USUAL = {
    Cell.LSTM: ("sigmoid", "tanh", "tanh"),
    Cell.GRU: ("sigmoid", "tanh"),
    Cell.RNN: ("tanh",),
}


def _check(node: kit.OnnxNode, cell: Cell) -> None:
    """Raises UnsupportedError for forms that exporters do not write."""
    directions = 2 if node.attribute("direction", "forward") == "bidirectional" else 1
    given = tuple(str(name).lower() for name in node.attribute("activations", ()))
    usual = _USUAL[cell] * directions
    if given and given != usual and not (cell is Cell.RNN and set(given) <= {"tanh", "relu"}):
        raise node.unsupported(f"the activations {', '.join(given)}", f"use {', '.join(usual)}")
    if node.attribute("clip") is not None or node.attribute("input_forget", 0):
        raise node.unsupported("clipping, or coupled gates", "train without")
    if node.has(4) and set(node.integers(4)) != {node.shape(0)[node.attribute("layout", 0)]}:
        raise node.unsupported("sequences of other lengths than the input", "pad them")
    if cell is Cell.LSTM and node.has(7) and np.any(node.constant(7).real):
        raise node.unsupported("peepholes", "train without")


def _variant(node: kit.OnnxNode, cell: Cell, place: int) -> bool:
    if cell is Cell.GRU:
        return bool(node.attribute("linear_before_reset", 0))
    given = node.attribute("activations", ())
    return cell is Cell.RNN and bool(given) and str(given[place]).lower() == "relu"


def _constants(node: kit.OnnxNode, cell: Cell, place: int, units: int) -> list[str]:
    """The weights and the bias of one direction; the two biases of a gate are one here."""
    rows = cell.gates * units
    weights, recurrent = (node.constant(i).real[place].astype(np.float32) for i in (1, 2))
    bias = np.zeros(2 * rows)
    if node.has(3):
        bias = node.constant(3).real[place]
    first, other = bias[:rows].copy(), bias[rows:].copy()
    behind = np.zeros(0)
    if cell is Cell.GRU:
        behind = np.zeros(units)
        if _variant(node, cell, place):
            behind = other[2 * units :].copy()
            other[2 * units :] = 0
    whole_bias = np.concatenate([first + other, behind]).astype(np.float32)
    arrays = {"weights": weights, "recurrent": recurrent, "bias": whole_bias}
    return [node.add_constant(f"{stem}{place}", data, None) for stem, data in arrays.items()]


def _initial(node: kit.OnnxNode, index: int, place: int, state: tuple[int, int]) -> str:
    """One direction's first state; '' for zeros."""
    if not node.has(index):
        return ""
    batch_first = bool(node.attribute("layout", 0))
    if node.is_constant(index):
        real = node.constant(index).real
        mine = (real[:, place] if batch_first else real[place]).astype(np.float32)
        return node.add_constant(f"first{index}", mine, None) if mine.any() else ""
    axes = (1, 0, 2) if batch_first else (0, 1, 2)
    if math.prod(node.shape(index)) == math.prod(state):
        return node.operand(index, axes, state)
    begin, sizes = (place, 0, 0), (1, *state)
    part = Slice(begin, sizes, (1, 1, 1), state)
    return node.results("slice", part, [node.operand(index, axes)], [state])[0]


def _last(node: kit.OnnxNode, tensor: str, steps: int, back: bool, state: tuple[int, int]) -> str:
    """The output of the step that is computed last."""
    if not any(node.is_read(index) for index in range(1, min(node.outputs, 2))):
        return ""
    part = Slice((0 if back else steps - 1, 0, 0), (1, *state), (1, 1, 1), state)
    return node.results("slice", part, [tensor], [state])[0]


def _joined(
    node: kit.OnnxNode, parts: Sequence[str], lead: tuple[int, ...], state: tuple[int, int]
) -> str:
    """[lead, directions, batches, units]."""
    shape = (*lead, 1, *state)
    wide = [node.results("reshape", Reshape(shape), [part], [shape])[0] for part in parts]
    if len(wide) == 1:
        return wide[0]
    joined = (*lead, len(wide), *state)
    return node.results("concat", Concat(len(lead)), wide, [joined])[0]


def _sample(rng: np.random.Generator) -> kit.Graph:
    cell = list(Cell)[int(rng.integers(3))]
    steps, batches, inputs, units = (int(rng.integers(1, high)) for high in (6, 4, 9, 8))
    backwards, every_step, variant = (bool(b) for b in rng.integers(0, 2, 3))
    attributes = Recurrent(cell, backwards, every_step, variant and cell is not Cell.LSTM)

    def real(name: str, *shape: int) -> kit.Tensor:
        data = rng.normal(0, 0.6, shape).astype(np.float32)
        return kit.Tensor(name, shape, kit.DType.FLOAT32, None, data)

    tensors = [
        kit.Tensor("x", (steps, batches, inputs), kit.DType.FLOAT32),
        real("weights", cell.gates * units, inputs),
        real("recurrent", cell.gates * units, units),
        real("bias", cell.biases * units),
    ]
    for name in ("hidden", "cell")[: int(rng.integers(0, 2 + _has_cell(cell)))]:
        tensors.append(kit.Tensor(name, (batches, units), kit.DType.FLOAT32))
    outputs = ("y", "last_cell") if _has_cell(cell) else ("y",)
    return kit.sample("recurrent_layer", attributes, *tensors, outputs=outputs, name="recurrent")


SPEC = kit.Form(
    kind="recurrent_layer",
    attributes=Recurrent,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=_macs,
    onnx=kit.OnnxBinding(("LSTM", "GRU", "RNN"), _read),
    dtype=kit.DType.FLOAT32,
    limits="float32, also between quantised operators; constant weights, the usual activations, "
    "one or both directions, first and last states; no peepholes or clipping",
)
