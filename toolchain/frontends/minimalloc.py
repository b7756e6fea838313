"""MiniMalloc's CSV files: buffers with lifetimes and sizes to read, offsets to read and write.

Columns `id` (or `buffer`, `buffer_id`), `lower` (`begin`, `start`), `upper`, `size`, and perhaps
`alignment` and `offset`, in any order. Lifetimes are half-open; a column `end` instead of `upper`
counts the last step in. (Moffitt, "MiniMalloc", ASPLOS 2023; its README and converter.)
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.model_file import read_model_file
from toolchain.ir import ArenaProblem
from toolchain.ir.arena import Block

_SYNONYMS = {"buffer": "id", "buffer_id": "id", "begin": "lower", "start": "lower", "end": "upper"}
_REQUIRED = ("id", "lower", "upper", "size")
_KNOWN = (*_REQUIRED, "alignment", "offset", "gaps")
_MOST = 1 << 48


@dataclass(frozen=True)
class BufferFile:
    """The buffers of a file, and their offsets in bytes if the file has any."""

    problem: ArenaProblem
    offsets: tuple[int, ...] | None


def read_buffers(path: Path) -> BufferFile:
    """Read a file. Raises InputError naming the line, UnsupportedError for gaps in lifetimes."""
    raw = read_model_file(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not text: not a CSV file") from error
    try:
        lines = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise InputError(f"{path}: {error}: not a CSV file") from error
    numbers, rows = _rows(lines)
    if not rows:
        raise InputError(f"{path} is empty: it needs a header {','.join(_REQUIRED)}")
    header = [cell.strip() for cell in rows[0]]
    columns = _columns(path, header)
    for line, row in zip(numbers, rows, strict=True):
        if len(row) != len(columns):
            raise InputError(
                f"{path}, line {line}: {len(row)} fields where the header has {len(columns)}"
            )
    cells = dict(zip(columns, zip(*rows[1:], strict=True), strict=False))
    table = _Table(path, numbers[1:], {name: cells.get(name, ()) for name in columns})
    names = table.names()
    starts, uppers = table.numbers("lower"), table.numbers("upper")
    ends = [upper + 1 for upper in uppers] if "end" in header else uppers
    for line, name, start, end in zip(table.lines, names, starts, ends, strict=True):
        if end <= start:
            raise InputError(f"{path}, line {line}: {name!r} lives in [{start}, {end}): never")
    sizes = table.numbers("size", least=0)
    units = table.numbers("alignment", least=1) if "alignment" in columns else [1] * len(names)
    offsets = tuple(table.numbers("offset", least=0)) if "offset" in columns else None
    return BufferFile(ArenaProblem(tuple(map(Block, names, starts, ends, sizes, units))), offsets)


def _rows(lines: Sequence[Sequence[str]]) -> tuple[list[int], list[Sequence[str]]]:
    """The rows that hold anything, and the number of each one's line."""
    numbers = [number for number, row in enumerate(lines, 1) if any(row)]
    return numbers, [lines[number - 1] for number in numbers]


def offsets_csv(problem: ArenaProblem, offsets: Sequence[int]) -> str:
    """MiniMalloc's output format, which its validator reads: the input's columns and `offset`."""
    aligned = any(block.alignment_bytes != 1 for block in problem.blocks)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*_REQUIRED, *(["alignment"] if aligned else []), "offset"))
    for block, offset in zip(problem.blocks, offsets, strict=True):
        unit = [block.alignment_bytes] if aligned else []
        writer.writerow((block.name, block.start, block.end, block.size_bytes, *unit, offset))
    return out.getvalue()


def _columns(path: Path, header: Sequence[str]) -> list[str]:
    columns = [_SYNONYMS.get(name, name) for name in header]
    missing = [name for name in _REQUIRED if name not in columns]
    if missing:
        raise InputError(
            f"{path}, line 1: no column {', '.join(missing)}; the header is {','.join(_REQUIRED)}, "
            "perhaps with alignment and offset"
        )
    for name in columns:
        if columns.count(name) > 1:
            raise InputError(f"{path}, line 1: two columns give {name!r}")
        if name not in _KNOWN:
            raise InputError(f"{path}, line 1: unknown column {name!r}; known: {', '.join(_KNOWN)}")
    return columns


@dataclass(frozen=True)
class _Table:
    """The cells of a file by column; `lines` has the number of each row's line."""

    path: Path
    lines: Sequence[int]
    cells: Mapping[str, Sequence[str]]

    def names(self) -> list[str]:
        """Names of the buffers. Raises InputError where two are alike, UnsupportedError for a
        lifetime with gaps."""
        names = [cell.strip() for cell in self.cells["id"]]
        if len(set(names)) != len(names):
            seen: dict[str, int] = {}
            for line, name in zip(self.lines, names, strict=True):
                if name in seen:
                    raise InputError(
                        f"{self.path}, line {line}: buffer {name!r} is on line {seen[name]} too"
                    )
                seen[name] = line
        for place, gaps in enumerate(self.cells.get("gaps", ())):
            if gaps.strip():
                line, name = self.lines[place], names[place]
                raise UnsupportedError(
                    f"{self.path}, line {line}: buffer {name!r} has gaps in its lifetime; "
                    "split it into one buffer per stretch, or leave the column out to keep it whole"
                )
        return names

    def numbers(self, column: str, least: int = -_MOST) -> list[int]:
        """The whole numbers of a column, from `least` to _MOST."""
        cells = self.cells[column]
        try:
            values = list(map(int, cells))
        except ValueError:
            place, cell = next((i, c) for i, c in enumerate(cells) if not _whole(c))
            raise InputError(
                f"{self.path}, line {self.lines[place]}: {column} is {cell.strip()[:40]!r}, "
                "no whole number"
            ) from None
        if values and not least <= min(values) <= max(values) <= _MOST:
            outside = (i for i, v in enumerate(values) if not least <= v <= _MOST)
            place = next(outside)
            value = values[place]
            raise InputError(
                f"{self.path}, line {self.lines[place]}: {column} is {_brief(value)}; "
                f"it must lie between {least} and {_MOST}"
            )
        return values


def _whole(cell: str) -> bool:
    try:
        int(cell)
    except ValueError:
        return False
    return True


def _brief(value: int) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:20]}... ({len(text)} digits)"
