"""The bytes that a kernel's calls touch in operands, constants and scratch.

Every kernel's `extents` computes them from the numbers that its calls get, and from nothing else:
not from the tensors' shapes. `codegen.bounds` compares them with the tensors. On the host every
sanitized test program may touch only these bytes (`tests/support/host.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Extent:
    """Bytes [begin, end) of an operand, counted from its pointer.

    An image with gaps between its rows (a strided view) is `lines` such runs, each `pitch` bytes
    after the one before. The kernel may read bytes of a gap, as the rest of a word, but never
    writes them. `touched` is the number of bytes touched, if some may be skipped.
    """

    begin: int
    end: int
    pitch: int = 0
    lines: int = 1
    touched: int | None = None

    @property
    def last(self) -> int:
        """One past the last byte of the last line."""
        return (self.lines - 1) * self.pitch + self.end

    @property
    def whole(self) -> bool:
        """Whether it is one run without gaps from the start of the operand."""
        gapless = self.lines == 1 or self.pitch == self.end - self.begin
        return self.begin == 0 and gapless and self.touched in (None, self.last)


@dataclass(frozen=True)
class Extents:
    """The bytes that one call touches. Operands and constants that are not listed are not touched.

    `inputs` and `outputs` are by operand number. `constants` holds bytes read, by the constant's
    key; `scratch` is in bytes. `largest` bounds every index, step and product that the kernel
    computes in int32 on its way.
    """

    inputs: Mapping[int, Extent] = field(default_factory=lambda: MappingProxyType({}))
    outputs: Mapping[int, Extent] = field(default_factory=lambda: MappingProxyType({}))
    constants: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    scratch: int = 0
    largest: int = 0


@dataclass(frozen=True)
class Pointer:
    """An operand as a call sees it: the bytes that its pointer steps by, and the bytes from one
    line of an image to the next if lines have gaps (else 0).
    """

    element_bytes: int
    line: int = 0


def whole(elements: int, element_bytes: int = 1) -> Extent:
    """The extent of `elements` elements from the operand's start."""
    return Extent(0, elements * element_bytes)


def joined(extents: Iterable[tuple[int, Extent]]) -> dict[int, Extent]:
    """One extent per operand that contains all of its extents; the bytes touched are added up."""
    joined: dict[int, Extent] = {}
    for index, extent in extents:
        other = joined.get(index, extent)
        count = (
            extent.touched if index not in joined else (extent.touched or 0) + (other.touched or 0)
        )
        joined[index] = Extent(
            min(extent.begin, other.begin), max(extent.last, other.last), touched=count
        )
    # Bytes that are filled first and written over count once.
    return {
        index: Extent(e.begin, e.end, touched=None if e.touched is None else min(e.touched, e.end))
        for index, e in joined.items()
    }


def round_up(value: int, multiple: int) -> int:
    """The least multiple of `multiple` that is at least `value`."""
    return -(-value // multiple) * multiple
