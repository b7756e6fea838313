"""What a family's start-up is held against: the values that it writes to simulated registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tests.support.registers import Registers
from toolchain.boards import Board

MHZ = 1_000_000
APB = {0: 1, 4: 2, 5: 4, 6: 8, 7: 16}
"""What an APB is divided by, by the bits of its prescaler (3 bits, or 4)."""


@dataclass(frozen=True)
class Started:
    """All writes in order, as address and value, and what each register holds at last."""

    chip: Registers
    lines: tuple[str, ...]
    first: Mapping[int, int]

    @cached_property
    def writes(self) -> tuple[tuple[int, int], ...]:
        pairs = (line.split() for line in self.lines if line[0] != "#")
        return tuple((int(address, 16), int(value, 16)) for address, value in pairs)

    @cached_property
    def final(self) -> Mapping[int, int]:
        return {**self.first, **dict(self.writes)}

    @property
    def clock_hz(self) -> int:
        """The core's clock as the firmware reads it back from the registers, for HELLO."""
        return int(self._told("clock")[0])

    @property
    def beside(self) -> int:
        """What the start-up says of the memory beside the chip; 0: it can be read."""
        return int(self._told("beside")[0])

    @property
    def identity(self) -> int:
        """The JEDEC identity of the memory beside the chip."""
        return int(self._told("beside")[1], 16)

    @property
    def waits_for(self) -> tuple[int, ...]:
        """Of the record for a debug probe: magic, address, mask, value, and what was held."""
        return tuple(int(word, 16) for word in self._told("start"))

    def _told(self, what: str) -> list[str]:
        (line,) = (line for line in self.lines if line.startswith(f"# {what} "))
        return line.split()[2:]

    def register(self, name: str) -> int:
        return self.final.get(self.chip.addresses[name], 0)

    def field(self, name: str) -> int:
        """The last value of a field, such as 'RCC_PLLCFGR_PLLN'."""
        address, mask = self.chip.fields[name]
        return (self.final.get(address, 0) & mask) >> (mask & -mask).bit_length() - 1

    def values(self, name: str) -> list[int]:
        """What was written to a register, in order."""
        address = self.chip.addresses[name]
        return [value for at, value in self.writes if at == address]

    def when(self, test: Callable[[int, int], bool]) -> int:
        """The number of the first write for which `test` of its address and value holds."""
        return next(i for i, write in enumerate(self.writes) if test(*write))

    def when_set(self, name: str) -> int:
        """The number of the first write that sets all bits of a field."""
        at, mask = self.chip.fields[name]
        return self.when(lambda address, value: address == at and value & mask == mask)


Follows = Sequence[tuple[str, str]]
"""Pairs of fields: the hardware sets the second while the first is set; '' is always."""


@dataclass(frozen=True)
class Family:
    """`names`: of the chips' families. `follows`: what the hardware does. `clocks`: the clocks that
    the written values mean by the manual's formulas, in Hz, under the names of `Board.clocks_hz`,
    and `usart`; it asserts what else the manual asks for. `first`: what registers hold after a
    reset, where that is not 0. `switch`: the fields that choose the core's clock and tell which it
    is; `prescaler`: that of the clock of the flash's bus (a pattern; '' where
    there is no flash). `quickened`: the number of
    the write that makes the core fast, where that is not the first that chooses the PLL.
    `debugged_asleep`: the field that lets a probe reach a sleeping core (what it begins with); ''
    where the chips need none.
    """

    names: Sequence[str]
    follows: Callable[[Board], Follows]
    clocks: Callable[[Started, Board], Mapping[str, float]]
    first: Callable[[Board], Mapping[str, int]] = lambda _: {}
    switch: tuple[str, str] = ("RCC_CFGR_SW", "RCC_CFGR_SWS")
    prescaler: str = "RCC_CFGR_HPRE"
    quickened: Callable[[Started], int] | None = None
    debugged_asleep: str = "DBGMCU_CR_DBG_SLEEP"
