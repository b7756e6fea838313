"""Offsets of the arena as C expressions, and for people."""

from __future__ import annotations

from toolchain.ir import ArenaPlan


class Places:
    """How generated code says where something lies.

    An arena in one piece comes as `uint8_t *arena`; one in several banks as a pointer to a struct
    with a pointer to each part.
    """

    def __init__(self, arena: ArenaPlan, prefix: str) -> None:
        self._arena = arena
        self._struct = f"const {prefix}_banks *" if arena.parts else ""

    @property
    def writable(self) -> str:
        """The type of the parameter `arena`, up to its name."""
        return self._struct or "uint8_t *"

    @property
    def readable(self) -> str:
        """The same where nothing is written."""
        return self._struct or "const uint8_t *"

    @property
    def pointers(self) -> tuple[str, ...]:
        """What points to the arena, or to each of its parts."""
        return tuple(f"arena->{part.member}" for part in self._arena.parts) or ("arena",)

    def split(self, offset: int) -> tuple[str, int]:
        """The pointer to the part of the arena that holds this offset, and the rest of it."""
        if not self._arena.parts:
            return "arena", offset
        part = self._arena.part_of(offset)
        return f"arena->{part.member}", offset - part.start_bytes

    def address(self, offset: int) -> str:
        """A `uint8_t *` to the byte at this offset."""
        base, start = self.split(offset)
        return f"{base} + {start}"

    def label(self, offset: int) -> str:
        """`1,024`, or `dtcm 1,024`."""
        if not self._arena.parts:
            return f"{offset:,}"
        part = self._arena.part_of(offset)
        return f"{part.member} {offset - part.start_bytes:,}"
