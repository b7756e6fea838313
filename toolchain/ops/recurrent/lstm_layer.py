"""An LSTM layer of TFLite, whatever it computes in: operands, sizes, reader and writer.

UNIDIRECTIONAL_SEQUENCE_LSTM without peepholes, projection, layer normalisation or coupled gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.ops import kit
from toolchain.ops.hybrid.sums import SYMMETRIC
from toolchain.ops.recurrent.sequence import Sequential, Walk, check_shapes, walk_of

INPUT, INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES, HIDDEN, CELL = 0, 1, 5, 9, 13, 14
GATES = ("input", "forget", "cell", "output")
KEPT_STATES = (18, 19)
"""The places of both states in the file."""
_FILE_ORDER = (*range(9), -1, -1, -1, *range(9, 13), -1, -1, 13, 14, -1, -1, -1, -1)
"""For each input in the file, its index among the operator's; -1 for those that are not supported
(peepholes, projection, layer normalisation).
"""


@dataclass(frozen=True)
class Lstm(Sequential):
    """`cell_clip`: what the cell state does not exceed in magnitude; 0 for none."""

    cell_clip: float = 0.0


def lstm_walk(op: kit.Operator[Lstm], *, backwards: bool = False) -> Walk:
    return walk_of(op, HIDDEN, backwards=backwards)


def of_gates(op: kit.Operator[Lstm], first: int) -> list[kit.Tensor]:
    """The four inputs from index `first` on, one for each gate in the gates' order."""
    return [op.input(first + gate) for gate in range(len(GATES))]


def infer(op: kit.Operator[Lstm]) -> kit.TensorTypes:
    x, hidden, cell = (op.input(index) for index in (INPUT, HIDDEN, CELL))
    if len(x.shape) != 3 or len(hidden.shape) != 2:
        raise ValueError(f"input {x} has no batch, time and depth")
    walk = lstm_walk(op)
    inputs, units, state = walk.inputs, walk.units, (walk.batches, walk.units)
    shapes = {INPUT_WEIGHTS: (units, inputs), RECURRENT_WEIGHTS: (units, units), BIASES: (units,)}
    gates = range(len(GATES))
    of_all = {first + gate: shape for first, shape in shapes.items() for gate in gates}
    check_shapes(op, {**of_all, HIDDEN: state, CELL: state})
    return (
        kit.TensorType((*x.shape[:2], units), x.dtype),
        kit.TensorType(hidden.shape, hidden.dtype),
        kit.TensorType(cell.shape, cell.dtype),
    )


def macs(op: kit.Operator[Lstm]) -> int:
    return lstm_walk(op).macs(len(GATES))


def given_tensors(node: kit.TfliteNode) -> tuple[tuple[int, ...], list[kit.Tensor]]:
    """The inputs that are kept, by their places in the file, and their tensors.

    Raises what `node.unsupported` makes for a layer with parts that no kernel has.
    """
    options, given = node.options, list(node.inputs)
    given += [None] * (len(_FILE_ORDER) - len(given))
    for index, place in enumerate(_FILE_ORDER):
        if place >= 0 and given[index] is None:
            raise node.unsupported(f"input {index} is missing", "an LSTM without coupled gates")
        if place < 0 and given[index] is not None:
            raise node.unsupported(
                "it has peepholes, a projection or layer normalisation", "use a plain LSTM layer"
            )
    kept = tuple(index for index, place in enumerate(_FILE_ORDER) if place >= 0)
    for index in kept[INPUT_WEIGHTS:HIDDEN]:
        node.constant(index)
    if options.fusedActivationFunction != "TANH":
        raise node.unsupported(
            f"its activation is {options.fusedActivationFunction}, not TANH",
            "train the layer with activation='tanh'",
        )
    if options.diagonalRecurrentTensors or options.projClip:
        raise node.unsupported(
            "it has diagonal recurrent weights or a clipped projection", "use a plain LSTM layer"
        )
    return kept, [tensor for index in kept if (tensor := given[index]) is not None]


def check_symmetric(node: kit.TfliteNode, weights: kit.Tensor) -> None:
    """Raise what `node.unsupported` makes unless they have one scale and the zero point 0."""
    if weights.q.per_channel or weights.q.zero_point:
        raise node.unsupported(
            f"weights {weights.name!r} are not per tensor and symmetric", SYMMETRIC
        )


def written(
    op: kit.Operator[Lstm], intermediates: Sequence[kit.Tensor] = (), **options: bool
) -> kit.WrittenOp:
    """The operator in a file, with these options besides those of every layer."""
    return kit.WrittenOp(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "UnidirectionalSequenceLSTMOptions",
        {
            "fusedActivationFunction": "TANH",
            "cellClip": op.attributes.cell_clip,
            "timeMajor": op.attributes.time_major,
            **options,
        },
        order=_FILE_ORDER,
        intermediates=tuple(intermediates),
    )
