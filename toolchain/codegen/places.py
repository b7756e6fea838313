"""Offsets in the arena as C expressions, and as labels for people."""

from __future__ import annotations

from toolchain.ir import ArenaPlan


class Places:
    """How generated code addresses the arena.

    An arena in one piece is passed as `uint8_t *arena`. One that is spread over several memory
    banks is passed as a pointer to a struct, with a pointer to each part.
    """

    def __init__(self, arena: ArenaPlan, prefix: str) -> None:
        self.prefix = prefix
        self._arena = arena
        self._struct = f"const {prefix}_banks *" if arena.parts else ""

    @property
    def writable(self) -> str:
        """The C type of the parameter `arena`, up to its name."""
        return self._struct or "uint8_t *"

    @property
    def readable(self) -> str:
        """As `writable`, for a function that writes nothing."""
        return self._struct or "const uint8_t *"

    @property
    def pointers(self) -> tuple[str, ...]:
        """The expressions that point to the arena, or to each of its parts."""
        return tuple(f"arena->{part.member}" for part in self._arena.parts) or ("arena",)

    def split(self, offset: int) -> tuple[str, int]:
        """The pointer to the part of the arena that holds this offset, and the offset within that
        part.
        """
        if not self._arena.parts:
            return "arena", offset
        part = self._arena.part_of(offset)
        return f"arena->{part.member}", offset - part.start_bytes

    def part(self, offset: int) -> tuple[int, int]:
        """The number of that part, 0 of an arena in one piece, and the offset within it."""
        if not self._arena.parts:
            return 0, offset
        part = self._arena.part_of(offset)
        return self._arena.parts.index(part), offset - part.start_bytes

    @property
    def sizes(self) -> str:
        """Further parameters of a C function: the bytes of the arena, or of each of its parts."""
        names = [f"{part.member}_bytes" for part in self._arena.parts] or ["bytes"]
        return "".join(f", size_t {name}" for name in names)

    def address(self, offset: int) -> str:
        """A `uint8_t *` expression for the byte at this offset."""
        base, start = self.split(offset)
        return f"{base} + {start}" if start else base

    def label(self, offset: int) -> str:
        """The offset for people: `1,024`, or `dtcm 1,024` if there are several banks."""
        if not self._arena.parts:
            return f"{offset:,}"
        part = self._arena.part_of(offset)
        return f"{part.member} {offset - part.start_bytes:,}"
