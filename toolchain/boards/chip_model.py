"""Chips: what is on the silicon, whichever board it is soldered to.

A chip's file says how its memories wait by the clocks of their buses; `Chip.memories` gives the
banks with the stalls of one clock of the core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from toolchain.boards.clock import ClockTree
from toolchain.boards.core import Core
from toolchain.boards.fields import Line, Name
from toolchain.boards.memory import Cache, Memory, MemoryTiming
from toolchain.errors import InputError

DEV_ID = 0xFFF
"""The low bits of DBGMCU_IDCODE, which tell the chip."""


@dataclass(frozen=True)
class Identity:
    """How a chip is identified: DEV_ID in the register DBGMCU_IDCODE.

    `other_ids`: wrong values that some of its revisions have. `unique_id`: the address of its
    unique number of 96 bits; 0 where that is not known. `registers`: those that tell the cause of
    the last reset and the option bytes, by ST's names.
    """

    device_id: int
    id_register: int
    other_ids: tuple[int, ...] = ()
    unique_id: int = 0
    registers: Mapping[Name, int] = field(default_factory=dict)

    def check(self, where: str) -> None:
        """Check the fields. Raises InputError naming the one that is out of its limits."""
        for value in (self.device_id, *self.other_ids):
            if not 1 <= value <= DEV_ID:
                raise InputError(f"{where}: device_id is 0x{value:X}, not of 12 bits")
        if self.id_register % 4 or not 0 <= self.id_register < 1 << 32:
            raise InputError(f"{where}: id_register is 0x{self.id_register:X}, not of a word")
        if self.unique_id % 4 or not 0 <= self.unique_id < 1 << 32:
            raise InputError(f"{where}: unique_id is 0x{self.unique_id:X}, not of a word")
        for name, address in self.registers.items():
            if address % 4 or not 0 <= address < 1 << 32:
                raise InputError(f"{where}: registers.{name} is 0x{address:X}, not of a word")


@dataclass(frozen=True)
class Switch:
    """`[switches.NAME]` of a chip: `bits` of a `register` that the start-up sets and that may be
    cleared and set again at any time, by ST's name; `title`: the prefetch or cache that they are
    for.
    """

    register: int
    bits: int
    title: Line

    def check(self, where: str) -> None:
        """Check the fields. Raises InputError naming the one that is out of its limits."""
        if self.register % 4 or not 0 <= self.register < 1 << 32:
            raise InputError(f"{where}: register is 0x{self.register:X}, not of a word")
        if not 1 <= self.bits < 1 << 32:
            raise InputError(f"{where}: bits are 0x{self.bits:X}, not of a word")


@dataclass(frozen=True)
class Energy:
    """Current that a chip draws in Run mode, from the front page of its datasheet; `[energy]` of a
    file.

    `run_ua_per_mhz`: supply current in microamperes for each MHz of the core, peripherals off, at
    `supply_volts`. A network's real current depends on its code and memories, so what follows from
    it is an estimate.
    """

    run_ua_per_mhz: float
    supply_volts: float

    def check(self, where: str) -> None:
        """Check the fields. Raises InputError naming one that is not above 0."""
        for name in ("run_ua_per_mhz", "supply_volts"):
            if not getattr(self, name) > 0:
                raise InputError(f"{where}: {name} is {getattr(self, name)}, not above 0")

    def microjoules(self, cycles: float) -> float:
        """Energy of so many cycles, at any clock: time and current change by the same factor."""
        return self.run_ua_per_mhz * self.supply_volts * cycles / 1e6


@dataclass(frozen=True)
class Counter:
    """How inference is counted: `unit` is 'instructions' or 'cycles'.

    `register` is a free-running 32-bit counter; `wide` says that the source can read more bits of
    it. A tick is worth `per_tick` units: 1 on silicon, and tick_ns / 2^icount_shift in QEMU.
    """

    unit: str
    source: str
    register: int
    per_tick: float = 1.0
    counts_down: bool = False
    wide: bool = False

    @property
    def count_bytes(self) -> int:
        """Bytes of RAM for the count of one operator."""
        return 8 if self.wide else 4


@dataclass(frozen=True)
class BusTiming:
    """How long an access takes, in clocks of the memory's bus; `[timing.NAME]` of a file.

    `width_bytes`: bytes that one access delivers. The bus runs at the core's clock divided by
    `divider`, or at `bus_hz` whatever the core does. `wait_state_hz`: the highest clock of the bus
    at which 0, 1, 2, ... wait states do; none: it never waits. `first_clocks`: what a read takes
    longer than one clock, beyond the wait states. `next_clocks`: how long the core waits for each
    further `width_bytes` of a cache line; with `next_waits`, for the wait states too.
    `write_clocks`: what a write takes longer than one clock. `prefetch`: as `MemoryTiming`.
    """

    width_bytes: int
    divider: int = 1
    bus_hz: int = 0
    wait_state_hz: tuple[int, ...] = ()
    first_clocks: int = 0
    next_clocks: int = 0
    next_waits: bool = False
    write_clocks: int = 0
    prefetch: bool = False

    def check(self, where: str) -> None:
        """Check the fields. Raises InputError naming the one that is out of its limits."""
        check_power_of_two("width_bytes", self.width_bytes, where)
        if self.divider < 1 or self.bus_hz < 0 or (self.bus_hz and self.divider > 1):
            raise InputError(
                f"{where}: divider is {self.divider} and bus_hz {self.bus_hz}; a bus runs at the "
                "core's clock divided by 1 or more, or at a clock of its own"
            )
        for name in ("first_clocks", "next_clocks", "write_clocks"):
            if getattr(self, name) < 0:
                raise InputError(f"{where}: {name} is {getattr(self, name)}, not 0 or more")
        if list(self.wait_state_hz) != sorted(set(self.wait_state_hz)):
            raise InputError(f"{where}: wait_state_hz must ascend: {list(self.wait_state_hz)}")

    def wait_states(self, core_hz: int, where: str) -> int:
        """Wait states at a clock of the core. Raises InputError above the last of the table."""
        if not self.wait_state_hz:
            return 0
        clock = self.bus_hz or core_hz / self.divider
        for cycles, most_hz in enumerate(self.wait_state_hz):
            if clock <= most_hz:
                return cycles
        raise InputError(
            f"{where}: wait_state_hz: at {core_hz:,} Hz of the core the bus runs at {clock:,.0f} "
            f"Hz, above {self.wait_state_hz[-1]:,} Hz, where the table ends"
        )

    def at(self, core_hz: int, where: str) -> MemoryTiming:
        """Stalls in cycles of a core at `core_hz`. Raises InputError as `wait_states` does."""
        waits = self.wait_states(core_hz, where)
        bus_hz = self.bus_hz or core_hz

        def cycles(clocks: int) -> int:
            return -(-clocks * core_hz // bus_hz) * self.divider

        return MemoryTiming(
            read_cycles=cycles(waits + self.first_clocks),
            width_bytes=self.width_bytes,
            burst_cycles=cycles(self.next_clocks + waits * self.next_waits),
            write_cycles=cycles(self.write_clocks),
            prefetch=self.prefetch,
        )


@dataclass(frozen=True)
class Bank:
    """A memory, and how it is reached: `timing` is None where that is not known, `caches` names the
    caches before it, and `timing_name` the table of the file.
    """

    memory: Memory
    timing: BusTiming | None = None
    caches: tuple[str, ...] = ()
    timing_name: str = ""

    def at(self, core_hz: int, where: str) -> Memory:
        """The memory with its stalls at a clock of the core. Raises InputError as `BusTiming`."""
        if self.timing is None:
            return self.memory
        where = f"{where} ({self.memory.name})"
        return replace(self.memory, timing=self.timing.at(core_hz, where))


@dataclass(frozen=True)
class ChipUart:
    """`[uarts.NAME]` of a chip: a USART, UART or LPUART.

    `enable`, `enable_bits`: the register and bit of RCC that give it its clock for access. `clock`:
    the bus whose clock it counts bits with, or `source`, the oscillator, which the firmware then
    selects. `brr_factor`: steps of BRR for a clock (256 of an LPUART).
    """

    base: int
    irq: int
    enable: int
    enable_bits: int
    clock: Name
    brr_factor: int = 1


@dataclass(frozen=True)
class Gpio:
    """`[gpio]` of a chip: port A, and each further letter `step` bytes on; `enable`: the register
    of RCC whose bits, from `enable_first_bit`, give ports A, B, ... their clock.
    """

    base: int
    enable: int
    step: int = 0x400
    enable_first_bit: int = 0
    ports: Name = "ABCDEFGHIJK"


@dataclass(frozen=True, eq=False)
class Chip:
    """All that the toolchain knows about a chip; docs/boards.md explains each field of the file.

    `family`: as ST's, `stm32f4`; `header`: ST's that it was checked against, without `.h`, where
    that is not its name and `xx`.

    `most_clock_hz`: of the core, in the voltage scale that the firmware chooses; 0 for this
    computer, which has no banks. Every board with this chip needs `firmware_sources` and `defines`.
    `wait_states_define`: the macro for the wait states of the first bank. `needs`: macros that each
    board has to define, with their meanings.
    """

    name: str
    title: str
    core: Core
    family: str = ""
    header: str = ""
    compiler_flags: tuple[str, ...] = ()
    most_clock_hz: int = 0
    banks: tuple[Bank, ...] = ()
    caches: tuple[Cache, ...] = ()
    identity: Identity | None = None
    counter: Counter | None = None
    energy: Energy | None = None
    clock: ClockTree | None = None
    gpio: Gpio | None = None
    uarts: Mapping[str, ChipUart] = field(default_factory=lambda: MappingProxyType({}))
    switches: Mapping[str, Switch] = field(default_factory=lambda: MappingProxyType({}))
    firmware_sources: tuple[str, ...] = ()
    wait_states_define: str = ""
    needs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    defines: Mapping[str, int | str] = field(default_factory=lambda: MappingProxyType({}))

    def memories(self, clock_hz: int, where: str) -> tuple[Memory, ...]:
        """The chip's banks with their stalls at a clock of the core. Raises InputError naming the
        limit, after `where`, if the chip cannot run at it.
        """
        if self.banks and not 1 <= clock_hz <= self.most_clock_hz:
            raise InputError(
                f"{where}: clock_hz is {clock_hz:,}; {self.name} runs at 1 to "
                f"{self.most_clock_hz:,} Hz"
            )
        return tuple(bank.at(clock_hz, self.name) for bank in self.banks)


def check_power_of_two(name: str, value: int, where: str) -> None:
    """Check a value. Raises InputError if the field `name` is no power of two."""
    if value < 1 or value & (value - 1):
        raise InputError(f"{where}: {name} is {value}, not a power of two")
