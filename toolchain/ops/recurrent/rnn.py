"""A recurrent layer whose output is its state, in float32: LiteRT's `RnnBatchStep`.

TFLite UNIDIRECTIONAL_SEQUENCE_RNN, and RNN, which is one step of it. A unit is its bias, plus the
sum over the inputs, plus the sum over the state. The state keeps its value from run to run, as
LiteRT's variable tensor does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math
from toolchain.ops.readers.float32 import check_float_node, larger, range_of, smaller
from toolchain.ops.recurrent.sequence import (
    Sequential,
    Walk,
    check_shapes,
    products,
    row_extents,
    walk_of,
)

INPUT, WEIGHTS, RECURRENT, BIAS, HIDDEN = range(5)


class Bend(Enum):
    """The activation; the value is its name in TFLite."""

    NONE = "NONE"
    RELU = "RELU"
    RELU_N1_TO_1 = "RELU_N1_TO_1"
    RELU6 = "RELU6"
    TANH = "TANH"

    @property
    def range(self) -> tuple[float, float]:
        """Where it holds values; of tanh, that of NONE."""
        return range_of(kit.Activation.NONE if self is Bend.TANH else kit.Activation(self.value))

    @property
    def symbol(self) -> kit.Symbol:
        """The name in C."""
        named = {Bend.NONE: "PLAIN", Bend.TANH: "TANH", Bend.RELU: "RECTIFIED"}
        return kit.Symbol(f"THIMBLE_RNN_{named.get(self, 'CLAMPED')}")


@dataclass(frozen=True)
class Rnn(Sequential):
    """Without steps in its input there is one. `backwards`: the last step comes first."""

    bend: Bend = Bend.TANH
    backwards: bool = False


def _walk(op: kit.Operator[Rnn]) -> Walk:
    return walk_of(op, HIDDEN, backwards=op.attributes.backwards)


def _infer(op: kit.Operator[Rnn]) -> kit.TensorTypes:
    x, hidden = op.input(INPUT), op.input(HIDDEN)
    if len(x.shape) not in (2, 3) or len(hidden.shape) != 2:
        raise ValueError(f"input {x} has no batch and depth")
    walk = _walk(op)
    units = walk.units
    check_shapes(
        op,
        {
            WEIGHTS: (units, walk.inputs),
            RECURRENT: (units, units),
            BIAS: (units,),
            HIDDEN: (walk.batches, units),
        },
    )
    output = kit.TensorType((*x.shape[:-1], units), x.dtype)
    return output, kit.TensorType(hidden.shape, hidden.dtype)


def _bent(sums: kit.Float32, bend: Bend) -> kit.Float32:
    low, high = (np.float32(bound) for bound in bend.range)
    if bend is Bend.TANH:
        return float_math.tanh(sums)
    if bend is Bend.RELU:
        return larger(sums, low)
    return sums if bend is Bend.NONE else smaller(larger(sums, low), high)


def _reference(op: kit.Operator[Rnn], inputs: kit.Inputs) -> kit.Arrays:
    walk, rows = _walk(op), []
    x, weights, recurrent, bias, hidden = (a.astype(np.float32) for a in inputs)
    with np.errstate(all="ignore"):
        for step in walk.split(x):
            sums = (bias + products(weights, step)) + products(recurrent, hidden)
            hidden = _bent(sums, op.attributes.bend)
            rows.append(hidden)
    return walk.joined(rows).reshape(op.y.shape), hidden


def _select(op: kit.Operator[Rnn], core: kit.Core) -> kit.Kernel:
    walk, (low, high) = _walk(op), op.attributes.bend.range
    rows, units = walk.batches * walk.steps, walk.units
    members: dict[str, kit.Argument] = {
        **walk.members,
        "backwards": int(walk.backwards),
        "activation": op.attributes.bend.symbol,
        "min": low,
        "max": high,
    }
    arguments: dict[str, kit.Argument] = {
        "params": kit.Struct("thimble_sequence_rnn_f32_params", members),
        "input": kit.Input(INPUT),
        "weights": kit.Input(WEIGHTS),
        "recurrent": kit.Input(RECURRENT),
        "bias": kit.Input(BIAS),
        "hidden": kit.Output(1),
        "output": kit.Output(0),
    }
    return kit.Kernel(
        (kit.Call("thimble_sequence_rnn_f32", arguments),),
        _extents,
        find_terms=lambda: {
            "call": 1.0,
            "row": rows,
            "product": rows * units * (walk.inputs + units),
            "unit": rows * units,
            "tanh": rows * units * (op.attributes.bend is Bend.TANH),
        },
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    inputs, units = call["params.inputs"], call["params.units"]
    read, written = row_extents(call, 4, 4)
    constants = {WEIGHTS: units * inputs, RECURRENT: units * units, BIAS: units}
    return kit.Extents(
        {**read, **{i: kit.whole(size, 4) for i, size in constants.items()}}, written
    )


def _macs(op: kit.Operator[Rnn]) -> int:
    return _walk(op).macs(1)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    if len(node.inputs) != 5 or any(tensor is None for tensor in node.inputs):
        raise node.unsupported("an input is missing")
    check_float_node(node)
    for index in (WEIGHTS, RECURRENT, BIAS):
        node.constant(index)
    options, name = node.options, node.options.fusedActivationFunction
    if name not in Bend.__members__:
        raise node.unsupported(f"its activation is {name}", "use tanh or ReLU")
    time_major, backwards = (
        bool(getattr(options, given, False)) for given in ("timeMajor", "backwards")
    )
    attributes = Rnn(time_major, Bend[name], backwards)
    return kit.ReadOp(attributes, tuple(range(5)), states=(HIDDEN,))


def _write(op: kit.Operator[Rnn]) -> kit.WrittenOp:
    attributes = op.attributes
    if attributes.backwards:
        raise ValueError("TFLite has no layer that runs backwards alone")
    options: dict[str, str | bool] = {"fusedActivationFunction": attributes.bend.value}
    if len(op.input(INPUT).shape) == 2:
        return kit.WrittenOp("RNN", "RNNOptions", options)
    options |= {"timeMajor": attributes.time_major}
    return kit.WrittenOp("UNIDIRECTIONAL_SEQUENCE_RNN", "SequenceRNNOptions", options)


def _sample(rng: np.random.Generator) -> kit.Graph:
    batches, steps, inputs, units = (int(n) for n in rng.integers(1, (4, 6, 20, 12)))
    time_major = bool(rng.random() < 0.4)
    rows: tuple[int, ...] = (steps, batches) if time_major else (batches, steps)
    if rng.random() < 0.2:
        rows, time_major = (batches,), False
    bends = list(Bend)
    attributes = Rnn(time_major, bends[int(rng.integers(len(bends)))])
    shapes = {"weights": (units, inputs), "recurrent": (units, units), "bias": (units,)}
    constants = [
        kit.constant_sample(name, rng.normal(0, 0.3, shape).astype(np.float32))
        for name, shape in shapes.items()
    ]
    x = kit.Tensor("x", (*rows, inputs), kit.DType.FLOAT32)
    state = kit.Tensor("hidden", (batches, units), kit.DType.FLOAT32)
    kept = kit.State("hidden", "hidden_next", np.zeros(state.shape, np.float32))
    outputs = ("y", "hidden_next")
    return kit.sample("rnn", attributes, x, *constants, state, outputs=outputs, states=[kept])


SPEC = kit.Form(
    kind="rnn",
    attributes=Rnn,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=_macs,
    aliases=kit.kept((1, HIDDEN)),
    tflite=kit.TfliteBinding(("UNIDIRECTIONAL_SEQUENCE_RNN", "RNN"), _read, _write),
    dtype=kit.DType.FLOAT32,
    limits="float32, constant weights; tanh, RELU, RELU6, [-1, 1] or none; both directions are two "
    "layers; state is kept from run to run",
)
