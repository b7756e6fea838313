"""A recurrent layer whose output is its state, in float32: LiteRT's `RnnBatchStep`.

TFLite UNIDIRECTIONAL_SEQUENCE_RNN, and RNN, which is one step of it. A unit is its bias, plus the
sum over the inputs, plus the sum over the state. The state keeps its value from run to run, as
LiteRT's variable tensor does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, State, Tensor
from toolchain.ops.arithmetic import float_math
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.extents import Extent, Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Call, Input, Kernel, Output, Struct, Symbol, Touched
from toolchain.ops.readers.float32 import check_float_node, larger, range_of, smaller
from toolchain.ops.spec import (
    Alias,
    Array,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

Float32 = NDArray[np.float32]
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
        return range_of(Activation.NONE if self is Bend.TANH else Activation(self.value))

    @property
    def symbol(self) -> Symbol:
        """The name in C."""
        named = {Bend.NONE: "PLAIN", Bend.TANH: "TANH", Bend.RELU: "RECTIFIED"}
        return Symbol(f"THIMBLE_RNN_{named.get(self, 'CLAMPED')}")


@dataclass(frozen=True)
class Rnn(Attributes):
    """`time_major`: the input is [steps, batches, inputs], else [batches, steps, inputs]; without
    steps there is one. `backwards`: the last step of the sequence comes first.
    """

    bend: Bend = Bend.TANH
    time_major: bool = False
    backwards: bool = False


def _attributes(op: Op) -> Rnn:
    assert isinstance(op.attributes, Rnn)
    return op.attributes


def _sizes(op: Op, graph: Graph) -> tuple[int, int, int, int]:
    """Batches, steps, inputs, units."""
    *rows, inputs = graph.input(op, INPUT).shape
    first, second = rows if len(rows) == 2 else (rows[0], 1)
    turned = _attributes(op).time_major and len(rows) == 2
    batches, steps = (second, first) if turned else (first, second)
    return batches, steps, inputs, graph.input(op, HIDDEN).shape[-1]


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, hidden = graph.input(op, INPUT), graph.input(op, HIDDEN)
    if len(x.shape) not in (2, 3) or len(hidden.shape) != 2:
        raise ValueError(f"input {x} has no batch and depth")
    batches, _, inputs, units = _sizes(op, graph)
    wanted = {
        WEIGHTS: (units, inputs),
        RECURRENT: (units, units),
        BIAS: (units,),
        HIDDEN: (batches, units),
    }
    for index, shape in wanted.items():
        if graph.input(op, index).shape != shape:
            raise ValueError(f"{graph.input(op, index)} is not {list(shape)}")
    return TensorType((*x.shape[:-1], units), x.dtype), TensorType(hidden.shape, hidden.dtype)


def _products(weights: Float32, rows: Float32) -> Float32:
    """[batches, units] sums, added in the order of the depth."""
    total = np.zeros((len(rows), len(weights)), np.float32)
    for place in range(weights.shape[1]):
        total = total + weights[:, place] * rows[:, place : place + 1]
    return total


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    own, (batches, steps, depth, units) = _attributes(op), _sizes(op, graph)
    x, weights, recurrent, bias, hidden = (a.astype(np.float32) for a in inputs)
    rows = x.reshape((steps, batches, depth) if own.time_major else (batches, steps, depth))
    rows = rows if own.time_major else np.swapaxes(rows, 0, 1)
    low, high = (np.float32(bound) for bound in own.bend.range)
    outputs = np.zeros((steps, batches, units), np.float32)
    with np.errstate(all="ignore"):
        for step in range(steps)[::-1] if own.backwards else range(steps):
            sums = (bias + _products(weights, rows[step])) + _products(recurrent, hidden)
            if own.bend is Bend.TANH:
                sums = float_math.tanh(sums)
            elif own.bend is Bend.RELU:
                sums = larger(sums, low)
            elif own.bend is not Bend.NONE:
                sums = smaller(larger(sums, low), high)
            outputs[step] = hidden = sums
    made = outputs if own.time_major else np.swapaxes(outputs, 0, 1)
    return np.ascontiguousarray(made).reshape(graph.output(op).shape), hidden


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    own, (batches, steps, inputs, units) = _attributes(op), _sizes(op, graph)
    low, high = own.bend.range
    params = Struct(
        "thimble_sequence_rnn_f32_params",
        {
            "batches": batches,
            "steps": steps,
            "inputs": inputs,
            "units": units,
            "batch_stride": 1 if own.time_major else steps,
            "step_stride": batches if own.time_major else 1,
            "backwards": int(own.backwards),
            "activation": own.bend.symbol,
            "min": low,
            "max": high,
        },
    )
    call = Call(
        "thimble_sequence_rnn_f32",
        {
            "params": params,
            "input": Input(INPUT),
            "weights": Input(WEIGHTS),
            "recurrent": Input(RECURRENT),
            "bias": Input(BIAS),
            "hidden": Output(1),
            "output": Output(0),
        },
    )
    return Kernel((call,), _extents, find_terms=lambda: _terms(op, graph))


def _terms(op: Op, graph: Graph) -> dict[str, float]:
    batches, steps, inputs, units = _sizes(op, graph)
    rows = batches * steps
    return {
        "call": 1.0,
        "row": rows,
        "product": rows * units * (inputs + units),
        "unit": rows * units,
        "tanh": rows * units * (_attributes(op).bend is Bend.TANH),
    }


def _extents(touched: Touched) -> Extents:
    call = touched.call
    batches, steps, inputs, units = (
        call[f"params.{name}"] for name in ("batches", "steps", "inputs", "units")
    )
    rows = (batches - 1) * call["params.batch_stride"] + 1
    rows += (steps - 1) * call["params.step_stride"]
    return Extents(
        {
            INPUT: Extent(0, 4 * rows * inputs, touched=4 * batches * steps * inputs),
            WEIGHTS: whole(units * inputs, 4),
            RECURRENT: whole(units * units, 4),
            BIAS: whole(units, 4),
        },
        {
            0: Extent(0, 4 * rows * units, touched=4 * batches * steps * units),
            1: whole(batches * units, 4),
        },
    )


def _aliases(op: Op, graph: Graph) -> tuple[Alias, ...]:
    return (Alias(op.outputs[1], op.inputs[HIDDEN]),)


def _macs(op: Op, graph: Graph) -> int:
    batches, steps, inputs, units = _sizes(op, graph)
    return batches * steps * units * (inputs + units)


def _read(node: TfliteNode) -> ReadOp:
    if len(node.inputs) != 5 or any(tensor is None for tensor in node.inputs):
        raise node.unsupported("an input is missing")
    check_float_node(node)
    for index in (WEIGHTS, RECURRENT, BIAS):
        node.constant(index)
    options, name = node.options, node.options.fusedActivationFunction
    if name not in Bend.__members__:
        raise node.unsupported(f"its activation is {name}", "use tanh or ReLU")
    attributes = Rnn(
        Bend[name],
        bool(getattr(options, "timeMajor", False)),
        bool(getattr(options, "backwards", False)),
    )
    return ReadOp(attributes, tuple(range(5)), states=(HIDDEN,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    own = _attributes(op)
    if own.backwards:
        raise ValueError("TFLite has no layer that runs backwards alone")
    options: dict[str, str | bool] = {"fusedActivationFunction": own.bend.value}
    if len(graph.input(op, INPUT).shape) == 2:
        return WrittenOp("RNN", "RNNOptions", options)
    options |= {"timeMajor": own.time_major}
    return WrittenOp("UNIDIRECTIONAL_SEQUENCE_RNN", "SequenceRNNOptions", options)


def _sample(rng: np.random.Generator) -> Graph:
    batches, steps, inputs, units = (int(n) for n in rng.integers(1, (4, 6, 20, 12)))
    time_major = bool(rng.random() < 0.4)
    rows: tuple[int, ...] = (steps, batches) if time_major else (batches, steps)
    if rng.random() < 0.2:
        rows, time_major = (batches,), False
    bends = list(Bend)
    own = Rnn(bends[int(rng.integers(len(bends)))], time_major)
    constants = {"weights": (units, inputs), "recurrent": (units, units), "bias": (units,)}
    state = (batches, units)
    tensors = [Tensor("x", (*rows, inputs), DType.FLOAT32)]
    for name, shape in constants.items():
        data = rng.normal(0, 0.3, shape).astype(np.float32)
        tensors.append(Tensor(name, shape, DType.FLOAT32, None, data))
    tensors += [Tensor(name, state, DType.FLOAT32) for name in ("hidden", "hidden_next")]
    tensors.append(Tensor("y", (*rows, units), DType.FLOAT32))
    names = ("x", *constants, "hidden")
    op = Op("rnn", "rnn", names, ("y", "hidden_next"), own)
    kept = State("hidden", "hidden_next", np.zeros(state, np.float32))
    return Graph.build("sample", tensors, [op], ["x"], ["y"], [kept])


SPEC = OldForm(
    kind="rnn",
    attributes=Rnn,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=_macs,
    aliases=_aliases,
    tflite=TfliteBinding(("UNIDIRECTIONAL_SEQUENCE_RNN", "RNN"), _read, _write),
    dtype=DType.FLOAT32,
    limits="float32, constant weights; tanh, RELU, RELU6, [-1, 1] or none; both directions are two "
    "layers; state is kept from run to run",
)
