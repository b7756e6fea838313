"""The calls of a plan as C functions. Blocks of one operator share a function and a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from textwrap import indent

import numpy as np
from numpy.typing import NDArray

from toolchain.codegen.calls import Column, named, share, size_column, symbols
from toolchain.codegen.constants import ConstantArray
from toolchain.codegen.environment import environment
from toolchain.codegen.layout import LINE_WIDTH, wrap
from toolchain.codegen.writer import Call, Writer
from toolchain.ir import Tensor
from toolchain.kernels.c_sources import CTree, parameter_names

_INDENT = "    "


_PACKED, _IN_CODE = "packed", "in the code"
"""Where a constant operand is that is no array of its own: in another array, or in arguments."""
_CALLERS = "the caller's"
"""Where an input is that arrives by rows."""
_FEW_ARRAYS = 6
"""Packed constants of one function that its comment lists."""


@dataclass(frozen=True)
class Operand:
    """A line of a function's comment: one operand, over all calls of the function."""

    direction: str
    type: str
    place: str
    name: str
    others: int = 0
    array: ConstantArray | None = None


@dataclass(frozen=True)
class Function:
    """A function of the generated file. `operator` is the number that profiling hooks get.

    `columns` and `rows` are the table of its blocks. Without columns all its calls are the same.
    `takes_rows`: there is the table alone, of blocks of rows that the caller brings. `can_fail`: it
    returns a status, which is not 0 where it failed; others return nothing.
    """

    operator: int
    symbol: str
    calls: tuple[Call, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    body: str
    takes_rows: bool = False
    can_fail: bool = False

    @property
    def first(self) -> Call:
        return self.calls[0]

    @property
    def table(self) -> str:
        """The rows of the table as C, several on a line."""
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
    """One call: the number of the function, and of the row of its table."""

    function: int
    row: int


@dataclass(frozen=True)
class Code:
    """The functions of a model and the order of their calls.

    `numbers` lists, for each operator, the graph's operators that are its blocks. `steps` follow
    the schedule and are parallel to `calls`, which holds indices in the graph.
    """

    functions: tuple[Function, ...]
    numbers: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    calls: tuple[int, ...]

    @property
    def in_blocks(self) -> bool:
        """Whether the calls have numbers of blocks: some operator is called more than once, or
        the calls wait for rows.
        """
        return len(self.steps) > len(self.numbers) or self.taker is not None

    @property
    def taker(self) -> Function | None:
        """The table of the rows that the caller brings; None where no input arrives by rows."""
        return next((function for function in self.functions if function.takes_rows), None)

    @property
    def can_fail(self) -> bool:
        """Whether some function returns a status."""
        return any(function.can_fail for function in self.functions)

    @property
    def all_can_fail(self) -> bool:
        """Whether each function returns a status, so that one table holds them."""
        return all(function.can_fail or function.takes_rows for function in self.functions)

    @property
    def step_arrays(self) -> Mapping[str, NDArray[np.generic]]:
        """The steps as C arrays: the functions, and the blocks that they compute."""
        return {
            "functions": _smallest([step.function for step in self.steps]),
            "blocks": _smallest([step.row for step in self.steps]),
        }


def code(
    operators: Sequence[Sequence[Call]], order: Sequence[int], prefix: str, trees: Sequence[CTree]
) -> Code:
    """The functions for the calls of each operator. `prefix` begins their symbols; `trees` declare
    the kernels that they call.
    """
    functions: list[Function] = []
    step_of: dict[int, Step] = {}
    for index, calls in enumerate(operators):
        symbol = f"{prefix}_op{index}_{calls[0].op.kind}"
        if calls[0].rows is not None:
            for row, call in enumerate(calls):
                step_of[call.number] = Step(len(functions), row)
            functions.append(_taker(index, symbol, calls))
            continue
        for variant, (group, columns, text) in enumerate(_shared(calls, trees)):
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
                    can_fail=any(printed.status for printed in group[0].body),
                )
            )
    ran = tuple(number for number in order if number in step_of)
    return Code(
        functions=tuple(functions),
        numbers=tuple(tuple(call.number for call in calls) for calls in operators),
        steps=tuple(step_of[number] for number in ran),
        calls=ran,
    )


def _taker(index: int, symbol: str, calls: Sequence[Call]) -> Function:
    """The table of rows that the caller brings: their first byte, the first row, how many.

    Raises ValueError where the schedule does not take them one behind the other.
    """
    taken = [call.rows for call in calls if call.rows is not None]
    if any(rows.begin != sum(r.rows for r in taken[:at]) for at, rows in enumerate(taken)):
        raise ValueError(f"the schedule takes rows of {calls[0].inputs[0].name!r} out of order")
    columns = (
        size_column("target", [rows.target for rows in taken]),
        size_column("begin", [rows.begin for rows in taken]),
        size_column("rows", [rows.rows for rows in taken]),
    )
    table = tuple((str(rows.target), str(rows.begin), str(rows.rows)) for rows in taken)
    return Function(index, symbol, tuple(calls), columns, table, "", takes_rows=True)


def _smallest(numbers: Sequence[int]) -> NDArray[np.generic]:
    return np.array(numbers, np.uint8 if max(numbers) < 256 else np.uint16)


def _shared(
    calls: Sequence[Call], trees: Sequence[CTree]
) -> Iterable[tuple[Sequence[Call], tuple[Column, ...], str]]:
    """A function for calls whose trees differ in leaves alone: a table of these leaves, and one
    text.
    """

    def parameters(function: str) -> Sequence[str]:
        return next(filter(None, (parameter_names(function, tree) for tree in trees)), ())

    for copies_only in (False, True):
        alike = [call for call in calls if call.copies_only is copies_only]
        for places, columns, body in share([call.body for call in alike]):
            template = environment().get_template("ops/body.c.j2")
            text = template.render(calls=named(body, parameters))
            yield [alike[place] for place in places], columns, text


def operands(function: Function, writer: Writer) -> tuple[Operand, ...]:
    """The inputs and outputs of a function, for its comment."""
    calls = function.calls
    constants = writer.constants
    read = [constants[s] for s in dict.fromkeys(chain(*(symbols(call.body) for call in calls)))]
    emitted = {array.symbol for array in read}
    inputs = {tensor.name: tensor for call in calls for tensor in call.inputs if tensor.is_constant}
    stored_as = {name: constants.find(tensor) for name, tensor in inputs.items()}
    packed = [array for array in read if array.symbol not in stored_as.values()]
    lines = []
    for direction in ("in", "out"):
        each = [call.inputs if direction == "in" else call.outputs for call in calls]
        for tensors in zip(*each, strict=False):
            name = tensors[0].name
            stored = name not in stored_as or stored_as[name] in emitted
            lines.append(
                Operand(
                    direction,
                    f"{tensors[0].dtype.value} [{_dims(tensors)}]",
                    _place(tensors, writer, stored_as)
                    if stored
                    else _PACKED
                    if packed
                    else _IN_CODE,
                    name,
                    len({tensor.name for tensor in tensors}) - 1,
                )
            )
    shown = packed if len(packed) <= _FEW_ARRAYS else packed[: _FEW_ARRAYS - 1]
    lines += [
        Operand(
            "const",
            f"{array.data.dtype.name} [{array.elements}]",
            _home(array, writer),
            array.symbol,
            array=array,
        )
        for array in shown
    ]
    if len(shown) < len(packed):
        rest = packed[len(shown) :]
        lines.append(Operand("const", f"{len(rest)} more", "flash", "as the code names them"))
    working = [call for call in calls if call.scratch_bytes]
    if working:
        sizes = sorted(call.scratch_bytes for call in working)
        size = " .. ".join(f"{bytes_:,}" for bytes_ in dict.fromkeys((sizes[0], sizes[-1])))
        at = _span({call.scratch_offset for call in working}, writer)
        lines.append(Operand("scratch", f"{size} bytes", at, ""))
    return tuple(lines)


def _dims(tensors: Sequence[Tensor]) -> str:
    """`1x4..6x32x8`; of tensors of several ranks only the first."""
    shapes = [tensor.shape for tensor in tensors if len(tensor.shape) == len(tensors[0].shape)]
    spans = [(min(sizes), max(sizes)) for sizes in zip(*shapes, strict=True)]
    return "x".join(str(a) if a == b else f"{a}..{b}" for a, b in spans) or "1"


def _home(array: ConstantArray, writer: Writer) -> str:
    if writer.constants.external:
        return f"blob {array.offset:,}"
    return f"{array.bank}, copied" if array.bank else "flash"


def _place(tensors: Sequence[Tensor], writer: Writer, arrays: Mapping[str, str]) -> str:
    if tensors[0].is_constant:
        return _home(writer.constants[arrays[tensors[0].name]], writer)
    offsets = writer.plan.arena.offsets
    places = {offsets[tensor.name] for tensor in tensors if tensor.name in offsets}
    return _span(places, writer) if places else _CALLERS


def _span(offsets: Set[int], writer: Writer) -> str:
    label = f"at {writer.places.label(min(offsets))}"
    return label if len(offsets) == 1 else f"{label} .. {writer.places.label(max(offsets))}"
