"""Recurrent layers of both directions: BIDIRECTIONAL_SEQUENCE_LSTM and _RNN.

Each becomes a layer that runs forwards and one that runs backwards, as the operators of one
direction are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType, SimpleNamespace

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.tflite.file import FileOp
from toolchain.ir import Op
from toolchain.ops.movement.concat import Concat

_DEPTH = 2


@dataclass(frozen=True)
class _Form:
    """The operator of one direction; which inputs of the file each direction takes in its order;
    the auxiliary input, and the weights for that.
    """

    one_way: str
    options: str
    forwards: tuple[int, ...]
    backwards: tuple[int, ...]
    auxiliary: int
    auxiliary_weights: tuple[int, ...]


_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        "BIDIRECTIONAL_SEQUENCE_LSTM": _Form(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            "fusedActivationFunction cellClip projClip timeMajor asymmetricQuantizeInputs",
            (*range(18), 35, 36),
            (0, *range(18, 35), 37, 38),
            39,
            tuple(range(40, 48)),
        ),
        "BIDIRECTIONAL_SEQUENCE_RNN": _Form(
            "UNIDIRECTIONAL_SEQUENCE_RNN",
            "fusedActivationFunction timeMajor",
            (0, 1, 2, 3, 4),
            (0, 5, 6, 7, 8),
            9,
            (10, 11),
        ),
    }
)
OPERATORS = tuple(_FORMS)


def layers(op: FileOp) -> tuple[FileOp, FileOp]:
    """The layers of both directions, still with the outputs of `op`.

    Raises InputError for an operator whose outputs contradict its options, RefusedError for an
    auxiliary input.
    """
    form, options = _FORMS[op.code], op.needed_options
    if len(op.outputs) != (1 if options.mergeOutputs else 2):
        raise InputError(f"{op} has {len(op.outputs)} outputs, merged: {options.mergeOutputs}")
    given = [*op.inputs, *[-1] * (form.auxiliary_weights[-1] + 1 - len(op.inputs))]
    if any(given[i] != -1 for i in (form.auxiliary, *form.auxiliary_weights)):
        raise RefusedError(
            "it has an auxiliary input", "use two layers, of one direction each, and join them"
        )
    common = {name: getattr(options, name) for name in form.options.split()}

    def layer(places: Sequence[int], *, backwards: bool) -> FileOp:
        one_way = SimpleNamespace(**common, backwards=backwards, diagonalRecurrentTensors=False)
        inputs = tuple(given[place] for place in places)
        return replace(op, code=form.one_way, options=one_way, inputs=inputs)

    return layer(form.forwards, backwards=False), layer(form.backwards, backwards=True)


def joined(op: FileOp, parts: Sequence[Op]) -> Op:
    """The operator that joins the first outputs of both layers; its output is still to be set."""
    names = tuple(part.outputs[0] for part in parts)
    return Op("concat", f"concat_{op.index}", names, ("",), Concat(_DEPTH))
