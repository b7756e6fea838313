"""MiniMalloc's CSV files: buffers with lifetimes and sizes to read, offsets to read and write.

Columns `id` (or `buffer`, `buffer_id`), `lower` (`begin`, `start`), `upper`, `size`, and perhaps
`alignment` and `offset`, in any order. Lifetimes are half-open; a column `end` instead of `upper`
counts the last step in. (Moffitt, "MiniMalloc", ASPLOS 2023; its README and converter.)
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends import read_model_file
from toolchain.ir import ArenaProblem
from toolchain.ir.arena import Block

_SYNONYMS = {"buffer": "id", "buffer_id": "id", "begin": "lower", "start": "lower", "end": "upper"}
_REQUIRED = ("id", "lower", "upper", "size")
_KNOWN = (*_REQUIRED, "alignment", "offset", "gaps")
_MOST = 1 << 48


@dataclass(frozen=True)
class BufferFile:
    """The buffers of a file, and the offsets it gives them in bytes, if it does."""

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
    rows = [(n, [c.strip() for c in row]) for n, row in enumerate(lines, 1) if any(row)]
    if not rows:
        raise InputError(f"{path} is empty: it needs a header {','.join(_REQUIRED)}")
    columns = _columns(path, rows[0][1])
    last_counts = "end" in rows[0][1]
    blocks, offsets, seen = [], [], dict[str, int]()
    for line, row in rows[1:]:
        if len(row) != len(columns):
            raise InputError(
                f"{path}, line {line}: {len(row)} fields where the header has {len(columns)}"
            )
        fields = dict(zip(columns, row, strict=True))
        name = fields["id"]
        if name in seen:
            raise InputError(f"{path}, line {line}: buffer {name!r} is on line {seen[name]} too")
        seen[name] = line
        if fields.get("gaps"):
            raise UnsupportedError(
                f"{path}, line {line}: buffer {name!r} has gaps in its lifetime; "
                "split it into one buffer per stretch, or leave the column out to keep it whole"
            )
        number = _Numbers(path, line, fields)
        start, end = number("lower"), number("upper") + last_counts
        if end <= start:
            raise InputError(f"{path}, line {line}: {name!r} lives in [{start}, {end}): never")
        alignment = number("alignment", least=1) if "alignment" in fields else 1
        blocks.append(Block(name, start, end, number("size", least=0), alignment))
        if "offset" in fields:
            offsets.append(number("offset", least=0))
    return BufferFile(ArenaProblem(tuple(blocks)), tuple(offsets) if "offset" in columns else None)


def offsets_csv(problem: ArenaProblem, offsets: Sequence[int]) -> str:
    """What MiniMalloc writes, and its validator reads: the columns of the input and `offset`."""
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
class _Numbers:
    """The whole numbers of one line."""

    path: Path
    line: int
    fields: dict[str, str]

    def __call__(self, name: str, least: int = -_MOST) -> int:
        try:
            value = int(self.fields[name])
        except ValueError:
            raise InputError(
                f"{self.path}, line {self.line}: {name} is {self.fields[name]!r}, no whole number"
            ) from None
        if not least <= value <= _MOST:
            raise InputError(
                f"{self.path}, line {self.line}: {name} is {value}; "
                f"it must lie between {least} and {_MOST}"
            )
        return value
