"""Numbers and pointers in rendered C that differ between the blocks of one operator.

Templates know nothing of blocks. What they are given is marked, rendered, and found again: equal
texts but for their holes become one function, and the holes' values the columns of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import gcd
from typing import Any

_OPEN, _AFTER_NAME, _AFTER_FORM, _CLOSE = "\x02", "\x03", "\x04", "\x05"
OFFSET = "offset"
"""The form of a mark: bytes from the start of an arena."""
SIZE = "size"
"""The form of a mark: a size_t."""
_HOLE = re.compile(
    f"{_OPEN}(?P<name>[^{_AFTER_NAME}]*){_AFTER_NAME}(?P<form>[^{_AFTER_FORM}]*){_AFTER_FORM}"
    f"(?P<marked>[^{_CLOSE}]*){_CLOSE}"
    r"|(?<![\w.\[])(?P<number>-?\d+)(?![\w.])"
)
_FIELD = re.compile(r"\.(\w+) = $")
_OWNER = re.compile(r"(\w+)(?:\[\])? = $")
_PLAIN_OWNERS = ("shape", "params", "requant", "loops")
_DEEPEST = 3
_BLOCK = "block"
"""The row of the table, in the function's body."""
_STATIC = re.compile(r"static const [^=;]*?(?P<name>\w+)(?:\[\])? = (?P<value>[^;]*);")


def mark(value: int | str, name: str, form: str = "") -> str:
    """`value` in rendered text, found again as a hole of this name.

    `form`: OFFSET, SIZE, '' for an int32_t, or the C type of a pointer.
    """
    return f"{_OPEN}{name}{_AFTER_NAME}{form}{_AFTER_FORM}{value}{_CLOSE}"


def plain(text: str) -> str:
    """The text with its marks replaced by their values."""
    return _HOLE.sub(lambda found: found["marked"] or found["number"] or "", text)


@dataclass(frozen=True)
class Hole:
    name: str
    form: str
    value: str


@dataclass(frozen=True)
class Frame:
    """A text cut at its holes: `pieces` is one longer than `holes`."""

    pieces: tuple[str, ...]
    holes: tuple[Hole, ...]


def cut(text: str, known: Mapping[str, Any]) -> Frame:
    """`known`: the numbers that the template was given, for the names of holes."""
    pieces, holes, at = [], [], 0
    names = None
    for found in _HOLE.finditer(text):
        before = text[at : found.start()]
        pieces.append(before)
        at = found.end()
        if found["number"] is None:
            holes.append(Hole(found["name"], found["form"], found["marked"]))
            continue
        name = _field_name(text[: found.start()])
        if not name:
            names = names if names is not None else _names(known)
            name = names.get(int(found["number"]), "count")
        holes.append(Hole(name, "", found["number"]))
    pieces.append(text[at:])
    return Frame(tuple(pieces), tuple(holes))


def _field_name(before: str) -> str:
    """Of a number in an initialiser: `input_dims_h` in `input_dims = {.n = 1, .h = `."""
    last = _FIELD.search(before)
    if last is None:
        return ""
    names, depth = [last[1]], 0
    for position in range(len(before) - 1, -1, -1):
        character = before[position]
        if character == ";":
            break
        depth += (character == "}") - (character == "{")
        if depth < 0:
            depth = 0
            owner = _OWNER.search(before[:position])
            if owner is not None and owner[1] not in _PLAIN_OWNERS:
                names.insert(0, owner[1])
    return "_".join(names)


def _names(known: Any, name: str = "", depth: int = 0) -> dict[int, str]:
    """Numbers among the fields of a lowering to the innermost name that leads to them."""
    if isinstance(known, bool) or depth > _DEEPEST:
        return {}
    if isinstance(known, int):
        return {known: name} if name else {}
    parts: Iterable[tuple[str, Any]] = ()
    if isinstance(known, Mapping):
        parts = known.items()
    elif is_dataclass(known) and not isinstance(known, type):
        parts = ((f.name, getattr(known, f.name)) for f in fields(known))
    elif isinstance(known, list | tuple):
        parts = ((name, part) for part in known)
    found: dict[int, str] = {}
    for own, part in parts:
        for value, leaf in _names(part, own, depth + 1).items():
            found.setdefault(value, leaf)
    return found


@dataclass(frozen=True)
class Column:
    """A member of a block's struct. `values` are C literals; `unit`: they count so many bytes."""

    name: str
    c_type: str
    width_bytes: int
    values: tuple[str, ...]
    unit: int = 1

    @property
    def declaration(self) -> str:
        return f"{self.c_type}{'' if self.c_type.endswith('*') else ' '}{self.name}"

    @property
    def expression(self) -> str:
        """What stands in the function's body."""
        member = f"{_BLOCK}->{self.name}"
        return f"{self.unit} * {member}" if self.unit > 1 else member


def columns_of(frames: Sequence[Frame]) -> tuple[tuple[Column, ...], str]:
    """What differs between frames of equal pieces, and the text with that in place.

    Equal columns are one. A `static const` object that would hold a hole is not static.
    """
    found: dict[tuple[str, tuple[str, ...]], Column] = {}
    taken: set[str] = set()
    values: list[str] = []
    for index, hole in enumerate(frames[0].holes):
        row = tuple(frame.holes[index].value for frame in frames)
        if len(set(row)) == 1:
            values.append(row[0])
            continue
        form = "" if hole.form == SIZE else hole.form
        column = found.get((form, row))
        if column is None:
            column = _column(_free(hole.name, taken), hole.form, row)
            found[form, row] = column
        values.append(column.expression)
    pairs = zip(frames[0].pieces, (*values, ""), strict=True)
    text = _automatic("".join(part for pair in pairs for part in pair))
    ordered = sorted(found.values(), key=lambda column: -column.width_bytes)
    return tuple(ordered), text


def _free(name: str, taken: set[str]) -> str:
    free, count = name, 1
    while free in taken:
        count += 1
        free = f"{name}_{count}"
    taken.add(free)
    return free


def _column(name: str, form: str, row: tuple[str, ...]) -> Column:
    if form not in ("", OFFSET, SIZE):
        return Column(name, f"const {form} *", 4, row)
    numbers = [int(value) for value in row]
    unit = gcd(*numbers) if form == OFFSET else 1
    if unit > 1 and _width(numbers, form) == _width([n // unit for n in numbers], form):
        unit = 1
    numbers = [n // unit for n in numbers]
    width = _width(numbers, form)
    signed = min(numbers) < 0 or (width == 4 and form == "")
    c_type = f"{'' if signed else 'u'}int{8 * width}_t"
    return Column(name, c_type, width, tuple(map(str, numbers)), unit)


def _width(numbers: Sequence[int], form: str) -> int:
    """Bytes of the smallest type that holds them all."""
    low, high = min(numbers), max(numbers)
    for width in (1, 2):
        values = 256**width
        if (low >= 0 and high < values) or (low >= -values // 2 and high < values // 2):
            return width
    return 4


def _automatic(text: str) -> str:
    """Without `static` where an object depends on a block, by itself or through another one."""
    names = [_BLOCK]
    while True:
        pattern = re.compile(rf"\b({'|'.join(names)})\b")
        found = next((s for s in _STATIC.finditer(text) if pattern.search(s["value"])), None)
        if found is None:
            return text
        names.append(found["name"])
        text = text[: found.start()] + text[found.start() + len("static ") :]
