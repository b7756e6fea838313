"""The calls of a plan as functions: blocks of one operator share one, with a table of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

import numpy as np
from numpy.typing import NDArray

from toolchain.codegen.calls import Column, share
from toolchain.codegen.environment import environment
from toolchain.codegen.layout import LINE_WIDTH, wrap
from toolchain.codegen.places import Places
from toolchain.codegen.writer import Call
from toolchain.ir import ArenaPlan, Tensor

_INDENT = "    "


@dataclass(frozen=True)
class Operand:
    """A line of a function's comment: the operand of all its calls in turn."""

    direction: str
    type: str
    place: str
    name: str


@dataclass(frozen=True)
class Function:
    """A function of the generated file. `operator` is the number that hooks get.

    `columns` and `rows`: the table of its blocks; without columns every call is the same.
    """

    operator: int
    symbol: str
    calls: tuple[Call, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    body: str

    @property
    def first(self) -> Call:
        return self.calls[0]

    @property
    def table(self) -> str:
        """The rows as C, several on a line."""
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        cells = [
            "{" + ", ".join(v.rjust(w) for v, w in zip(row, widths, strict=True)) + "},"
            for row in self.rows
        ]
        per_line = max((LINE_WIDTH - len(_INDENT)) // (len(cells[0]) + 1), 1)
        lines = (cells[at : at + per_line] for at in range(0, len(cells), per_line))
        return "\n".join(_INDENT + " ".join(line) for line in lines)


@dataclass(frozen=True)
class Step:
    """One call: the function by its place in the list, and the row of its table."""

    function: int
    row: int


@dataclass(frozen=True)
class Code:
    """`numbers`: of each operator, the graph's operators that are its blocks.

    `steps` are in the order of the schedule, parallel to `calls`, indices in the graph.
    """

    functions: tuple[Function, ...]
    numbers: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    calls: tuple[int, ...]

    @property
    def in_blocks(self) -> bool:
        """Whether some operator is called more than once."""
        return len(self.steps) > len(self.numbers)

    @property
    def step_arrays(self) -> Mapping[str, NDArray[np.generic]]:
        """The steps as C arrays: functions, and the blocks that they run."""
        return {
            "functions": _smallest([step.function for step in self.steps]),
            "blocks": _smallest([step.row for step in self.steps]),
        }


def code(operators: Sequence[Sequence[Call]], order: Sequence[int], prefix: str) -> Code:
    """Functions for the calls of each operator. `prefix`: of their symbols."""
    functions: list[Function] = []
    step_of: dict[int, Step] = {}
    for index, calls in enumerate(operators):
        symbol = f"{prefix}_op{index}_{calls[0].op.kind}"
        for variant, (group, columns, text) in enumerate(_shared(calls)):
            rows = tuple(zip(*(column.values for column in columns), strict=True))
            distinct = {row: at for at, row in enumerate(dict.fromkeys(rows))}
            for place, call in enumerate(group):
                row = distinct[rows[place]] if rows else 0
                step_of[call.number] = Step(len(functions), row)
            functions.append(
                Function(
                    operator=index,
                    symbol=symbol if not variant else f"{symbol}_{variant + 1}",
                    calls=tuple(group),
                    columns=columns,
                    rows=tuple(distinct),
                    body=wrap(indent(text.strip("\n"), _INDENT)),
                )
            )
    ran = tuple(number for number in order if number in step_of)
    return Code(
        functions=tuple(functions),
        numbers=tuple(tuple(call.number for call in calls) for calls in operators),
        steps=tuple(step_of[number] for number in ran),
        calls=ran,
    )


def _smallest(numbers: Sequence[int]) -> NDArray[np.generic]:
    return np.array(numbers, np.uint8 if max(numbers) < 256 else np.uint16)


def _shared(calls: Sequence[Call]) -> Iterable[tuple[Sequence[Call], tuple[Column, ...], str]]:
    """The calls whose trees differ in leaves alone, what differs, and the text for them all."""
    for copies_only in (False, True):
        alike = [call for call in calls if call.copies_only is copies_only]
        for places, columns, body in share([call.body for call in alike]):
            text = environment().get_template("ops/body.c.j2").render(calls=body)
            yield [alike[place] for place in places], columns, text


def operands(function: Function, places: Places, arena: ArenaPlan) -> tuple[Operand, ...]:
    """The inputs and outputs of a function, for its comment."""
    found = []
    for direction in ("in", "out"):
        each = [call.inputs if direction == "in" else call.outputs for call in function.calls]
        for tensors in zip(*each, strict=False):
            found.append(
                Operand(
                    direction,
                    f"{tensors[0].dtype.value} [{_dims(tensors)}]",
                    _place(tensors, places, arena),
                    tensors[0].name,
                )
            )
    return tuple(found)


def _dims(tensors: Sequence[Tensor]) -> str:
    """`1x4..6x32x8`; of tensors of several ranks only the first."""
    shapes = [tensor.shape for tensor in tensors if len(tensor.shape) == len(tensors[0].shape)]
    spans = [(min(sizes), max(sizes)) for sizes in zip(*shapes, strict=True)]
    return "x".join(str(a) if a == b else f"{a}..{b}" for a, b in spans) or "1"


def _place(tensors: Sequence[Tensor], places: Places, arena: ArenaPlan) -> str:
    if tensors[0].is_constant:
        return "flash"
    offsets = {arena.offsets[tensor.name] for tensor in tensors if tensor.name in arena.offsets}
    label = f"at {places.label(min(offsets))}"
    return label if len(offsets) == 1 else f"{label} .. {places.label(max(offsets))}"
