"""Constants outside of the code: a blob with a header that says which code it is for.

The header has 64 bytes, all numbers little-endian:

    0   magic "THWB"; 4: format, uint16; 6: bytes of the header, uint16
    8   bytes of the blob, uint32; 12: CRC-32 (IEEE) of all from byte 16, uint32
    16  digest of the layout, 16 bytes; 32: digest of the constants, 16 bytes
    48  version of Thimble, text, 16 bytes

The constants follow, each at a multiple of 8 bytes, then the numbers (int32) that depend on scales.
`runtime_c/source/support/thimble_check_weights.c` reads it.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toolchain.codegen.constants import ConstantTable
from toolchain.codegen.header import Accessor
from toolchain.codegen.library import with_headers
from toolchain.codegen.operators import Code
from toolchain.codegen.writer import Reset
from toolchain.files.formats import WEIGHTS
from toolchain.ir import BLOB_ALIGNMENT_BYTES
from toolchain.memory.plan import Plan
from toolchain.version import __version__

MAGIC, HEADER_BYTES = b"THWB", 64
DIGEST_BYTES = 16
_HEAD = struct.Struct("<4sHHII16s16s16s")
_CHECKED_FROM = 16
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


@dataclass(frozen=True)
class Layout:
    """The layout that code expects of a blob, and all else that it takes for granted: parts, each
    with a label for people, and a digest or a value.
    """

    parts: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(json.dumps(self.parts).encode()).digest()[:DIGEST_BYTES]

    def differences(self, other: Layout) -> tuple[str, ...]:
        """The parts in which the two layouts differ, for people."""
        mine, theirs = dict(self.parts), dict(other.parts)
        return tuple(
            part
            if len(mine.get(part, "")) == len(theirs.get(part, "")) == 2 * DIGEST_BYTES
            else f"{part}: {mine.get(part, 'none')} in the code, {theirs.get(part, 'none')} here"
            for part in dict.fromkeys((*mine, *theirs))
            if mine.get(part) != theirs.get(part)
        )


@dataclass(frozen=True)
class Head:
    """The header of a blob."""

    format: int
    size_bytes: int
    crc: int
    layout: str
    content: str
    version: str


def pack(constants: ConstantTable, layout: Layout) -> bytes:
    """The blob of these constants."""
    body = bytearray(constants.numbers_offset)
    for array in constants.arrays:
        raw = array.data.astype(array.data.dtype.newbyteorder("<")).tobytes()
        body[array.offset : array.offset + len(raw)] = raw
    body += np.array(constants.numbers, "<i4").tobytes()
    body += bytes(-len(body) % BLOB_ALIGNMENT_BYTES)
    content = hashlib.sha256(body).digest()[:DIGEST_BYTES]
    version = __version__.encode()[: DIGEST_BYTES - 1]
    size = HEADER_BYTES + len(body)

    def head(crc: int) -> bytes:
        given = (MAGIC, WEIGHTS.version, HEADER_BYTES, size, crc, layout.digest, content, version)
        return _HEAD.pack(*given)

    return head(zlib.crc32(head(0)[_CHECKED_FROM:] + body)) + bytes(body)


def read_head(data: bytes) -> Head | None:
    """The header of a blob; None where the data are no blob."""
    if len(data) < HEADER_BYTES or data[: len(MAGIC)] != MAGIC:
        return None
    _, version, _, size, crc, layout, content, tool = _HEAD.unpack(data[:HEADER_BYTES])
    text = tool.rstrip(b"\0").decode("ascii", "backslashreplace")
    return Head(version, size, crc, layout.hex(), content.hex(), text)


def is_intact(data: bytes) -> bool:
    """Whether the checksum of a blob is that of its bytes."""
    head = read_head(data)
    return head is not None and zlib.crc32(data[_CHECKED_FROM : head.size_bytes]) == head.crc


def layout_of(
    plan: Plan,
    code: Code,
    constants: ConstantTable,
    resets: Sequence[Reset],
    ends: Iterable[Accessor],
    kernels: Iterable[Path],
) -> Layout:
    """The layout that generated code takes for granted, without names that it does not depend on.

    `kernels`: the C files that it calls; another version of one may read its constants otherwise.
    """
    parts = [
        ("core", plan.lowered.core.name),
        ("arena", f"{plan.arena.size_bytes} bytes"),
        ("banks of the arena", _digest([asdict(part) for part in plan.arena.parts])),
        ("state", _digest([(reset.address, reset.symbol) for reset in resets])),
        ("order of the calls", _digest([asdict(step) for step in code.steps])),
    ]
    for end in ends:
        label = f"{end.direction} {end.identifier!r}"
        parts += [
            (f"{label}, type", f"{end.tensor.dtype.value}{list(end.tensor.shape)}"),
            (f"{label}, quantisation", _quantisation(end)),
            (f"{label}, conversion", f"{end.model_form} {end.uint8_shift} {end.halves_to_even}"),
            (f"{label}, place", end.symbol or end.address),
        ]
    for function in code.functions:
        body = _COMMENT.sub("", function.body).split()
        columns = [column.declaration for column in function.columns]
        label = f"operator {function.operator} ({function.first.op.kind})"
        variant = function.symbol.partition(f"_{function.first.op.kind}")[2]
        parts.append((f"{label}{variant}, its code", _digest([body, columns, function.rows])))
    for array in constants.arrays:
        label = f"constant {array.symbol} at {array.offset:,}"
        parts.append((label, f"{array.data.dtype.name}[{array.data.size}]"))
    fetches = [[call.fetch.offset, call.fetch.to] for f in code.functions for call in f.calls]
    parts.append(("places of fetched constants", _digest(fetches)))
    parts.append(("numbers that depend on scales", f"{len(constants.numbers)}"))
    texts = {path.name: path.read_text(encoding="utf-8", errors="replace") for path in kernels}
    for name, text in with_headers(texts, {}).items():
        kept = _COMMENT.sub("", text).split()
        parts.append((f"kernel {name}", _digest(kept)))
    return Layout(tuple(parts))


def _quantisation(end: Accessor) -> str:
    q = end.tensor.quantisation
    return "none" if q is None else f"scale {list(q.scales)}, zero point {list(q.zero_points)}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[: 2 * DIGEST_BYTES]
