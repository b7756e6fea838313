"""Control flow: IF, WHILE, CALL and STABLEHLO_COMPOSITE.

Where its way is known while reading, the operators of a called subgraph take the place of the call.
A loop is unrolled: its condition is computed from constants before each turn (`shapes.folded`), as
the counters of recurrent layers allow. Where the way depends on data, the subgraphs are read as
models of their own (`as_model`), for an operator that holds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.tflite.file import FileModel, FileOp, FileTensor
from toolchain.frontends.tflite.states import OUTSIDE
from toolchain.ir import Tensor
from toolchain.ir.names import Names

_CALLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "CALL": ("subgraph",),
        "CALL_ONCE": ("initSubgraphIndex",),
        "IF": ("thenSubgraphIndex", "elseSubgraphIndex"),
        "STABLEHLO_COMPOSITE": ("decompositionSubgraphIndex",),
        "WHILE": ("condSubgraphIndex", "bodySubgraphIndex"),
    }
)
"""Operators that call subgraphs, and the options that name these."""
OPERATORS = ("CALL", "IF", "STABLEHLO_COMPOSITE", "WHILE")
MOST_OPERATORS = 10_000
"""Operators that loops may unroll to."""


def called_by(op: FileOp) -> tuple[int, ...]:
    """Numbers of the subgraphs that an operator calls, in the order of its options."""
    return tuple(int(getattr(op.needed_options, name)) for name in _CALLS.get(op.code, ()))


def reached(model: FileModel, caller: FileOp | None = None) -> frozenset[int]:
    """Numbers of the subgraphs that the main one calls, directly or not; or that `caller` does."""
    numbers: set[int] = set()
    waiting = list(_called(model.ops if caller is None else [caller]))
    while waiting:
        number = waiting.pop()
        if number not in numbers and 0 < number <= len(model.others):
            numbers.add(number)
            waiting += _called(model.others[number - 1].ops)
    return frozenset(numbers)


def _called(ops: Iterable[FileOp]) -> Iterator[int]:
    return (number for op in ops if op.options is not None for number in called_by(op))


@dataclass(frozen=True)
class Inlined:
    """A called subgraph in the tensors of its caller: its operators, and its results.

    `tensors` are to be added to the caller's, from its number `first` on. `constants` are the new
    numbers of the subgraph's constants, which further calls share.
    """

    first: int
    tensors: tuple[FileTensor, ...]
    ops: tuple[FileOp, ...]
    results: tuple[int, ...]
    constants: Mapping[int, int]


def subgraph(
    subgraphs: Sequence[FileModel], number: int, caller: FileOp, operands: int | None = None
) -> FileModel:
    """Subgraph `number` of a file, called with so many operands; `subgraphs` are all but the main
    one. Raises InputError."""
    if not 0 < number <= len(subgraphs):
        raise InputError(f"{caller} calls subgraph {number}, which does not exist")
    called = subgraphs[number - 1]
    if operands not in (None, len(called.inputs)):
        raise InputError(
            f"{caller} gives {operands} operands to subgraph {number}, which takes "
            f"{len(called.inputs)}"
        )
    return called


def _keeps(number: int, variable: FileTensor) -> RefusedError:
    return RefusedError(f"its subgraph {number} keeps the variable {variable.name!r}", OUTSIDE)


def inlined(
    subgraphs: Sequence[FileModel],
    tensors: Sequence[FileTensor],
    number: int,
    caller: FileOp,
    arguments: Sequence[int],
    *,
    constants: Mapping[int, int],
    first_op: int,
    names: Names,
) -> Inlined:
    """Subgraph `number` of a file, called with `arguments`, numbers of the caller's `tensors`.

    `subgraphs`: those of the file but the main one. `constants`: those of an earlier call of it.
    `first_op`: the number of its first operator.
    `names`: of the caller's tensors. Raises InputError if caller and subgraph contradict each
    other, and RefusedError if the subgraph keeps variables or sees its operands otherwise.
    """
    called = subgraph(subgraphs, number, caller, len(arguments))
    place: dict[int, int] = {}
    for inner, given in zip(called.inputs, arguments, strict=True):
        check_alike(caller, tensors[given], called.tensors[inner])
        place[inner] = given
    first, shared = len(tensors), dict(constants)
    made: list[FileTensor] = []
    for index, inner_tensor in enumerate(called.tensors):
        if index in place:
            continue
        if index in shared:
            place[index] = shared[index]
            continue
        if inner_tensor.variable:
            raise _keeps(number, inner_tensor)
        name = names.fresh(f"{inner_tensor.name}_{first_op}")
        tensor = None if inner_tensor.tensor is None else replace(inner_tensor.tensor, name=name)
        place[index] = first + len(made)
        if tensor is not None and tensor.is_constant:
            shared[index] = place[index]
        made.append(replace(inner_tensor, name=name, tensor=tensor))
    place[-1] = -1
    ops = tuple(
        replace(
            op,
            index=first_op + offset,
            inputs=tuple(place[i] for i in op.inputs),
            outputs=tuple(place[i] for i in op.outputs),
            intermediates=tuple(place[i] for i in op.intermediates),
            caller=caller.index if caller.caller is None else caller.caller,
        )
        for offset, op in enumerate(called.ops)
    )
    results = tuple(place[i] for i in called.outputs)
    return Inlined(first, tuple(made), ops, results, MappingProxyType(shared))


def as_model(
    subgraphs: Sequence[FileModel],
    number: int,
    caller: FileOp,
    given: Sequence[tuple[FileTensor, Tensor | None]],
) -> FileModel:
    """Subgraph `number` as a model, whose inputs have the shapes that the caller gives them.

    `given`: the tensors that the caller passes, each with its value if that is known. A constant
    among them is a constant of the subgraph, and no input. Raises as `inlined`.
    """
    called = subgraph(subgraphs, number, caller, len(given))
    tensors = list(called.tensors)
    for tensor in tensors:
        if tensor.variable or tensor.type_name == "RESOURCE":
            raise _keeps(number, tensor)
    inputs = []
    for inner, (outer, known) in zip(called.inputs, given, strict=True):
        taken = tensors[inner]
        check_alike(caller, outer, taken)
        if known is not None and taken.tensor is not None:
            value = replace(taken.tensor, shape=known.shape, constant=known.constant)
            tensors[inner] = replace(taken, tensor=value, dynamic=False, open_axes=())
        if known is None or not known.is_constant:
            inputs.append(inner)
    place = caller.index if caller.caller is None else caller.caller
    return replace(
        called,
        tensors=tuple(tensors),
        ops=tuple(replace(op, caller=place) for op in called.ops),
        inputs=tuple(inputs),
        others=tuple(subgraphs),
    )


def check_alike(caller: FileOp, given: FileTensor, taken: FileTensor) -> None:
    """Whether a tensor may be passed on as another one, whose bytes it gets.

    Raises InputError if their types differ, and RefusedError if their scales do.
    """
    if given.type_name != taken.type_name:
        raise InputError(
            f"{caller} passes {given.name!r}, which is {given.type_name.lower()}, as "
            f"{taken.name!r}, which is {taken.type_name.lower()}"
        )
    scales = [None if t.tensor is None else t.tensor.quantisation for t in (given, taken)]
    if scales[0] != scales[1]:
        raise RefusedError(
            f"{given.name!r} becomes {taken.name!r}, which is quantised otherwise",
            "requantise inside of the subgraph",
        )
