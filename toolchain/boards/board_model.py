"""Boards: parts that are soldered around a chip, and settings that were chosen for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from toolchain.boards.chip_model import Chip, Counter
from toolchain.boards.core import Core
from toolchain.boards.fields import Line, Name, Word
from toolchain.boards.memory import Cache, Memory, MemoryKind
from toolchain.errors import InputError


@dataclass(frozen=True)
class Uart:
    """The serial port that the firmware uses; `tx` and `rx` are pins, as PA2, and `function` their
    alternate function (`rx_function`: that of `rx` where it is another); empty where there are none
    (QEMU).
    """

    name: Name
    baud: int
    tx: Line = ""
    rx: Line = ""
    function: int = 0
    rx_function: int | None = None

    @property
    def functions(self) -> tuple[int, int]:
        """Alternate functions of `tx` and `rx`."""
        rx = self.function if self.rx_function is None else self.rx_function
        return self.function, rx


@dataclass(frozen=True)
class Emulator:
    """QEMU machine, and the N of `-icount shift=N`: an instruction takes 2^N virtual ns.

    `stands_for`: a chip with the same core, as which what ran here may be read; empty: none.
    """

    machine: Word
    icount_shift: int
    stands_for: Word = ""


@dataclass(frozen=True)
class External:
    """Memory beside the chip that firmware must make readable first.

    `bank`: its name. `sources`: the C that does it, below `runtime_c/firmware`. `pins`: of each
    signal (as ST's pin data calls it) the pin and its alternate function.
    """

    bank: str
    sources: tuple[str, ...]
    pins: Mapping[str, tuple[str, int]]


@dataclass(frozen=True, eq=False)
class Board:
    """All that the toolchain knows about a board; docs/boards.md explains each field of the file.

    `memories` are those of the chip and those beside it, with their stalls at `clock_hz`, and
    `caches` those before them. `firmware_sources` are below `runtime_c/firmware`. `flash_runners`
    name classes of `device/runners.py`, preferred first, with the options each one needs. `usb_ids`
    are those of the USB serial port on the board, as `vendor:product` in lower case. `clocks_hz`:
    the core's and the buses' where the chip's clock tree is known. `external`: None where all
    memory can be read as it is. `assumed`: for a core without a board (`bare_core`), what nobody
    said of its memories and clock, in words; None for a board or a chip.
    """

    name: str
    title: str
    chip: Chip
    clock_hz: int
    memories: tuple[Memory, ...]
    caches: tuple[Cache, ...]
    uart: Uart | None
    counter: Counter | None
    firmware_sources: tuple[str, ...]
    defines: Mapping[str, str]
    emulator: Emulator | None = None
    flash_runners: Mapping[str, Mapping[str, str]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    ran_on_hardware: bool = False
    usb_ids: tuple[str, ...] = ()
    clocks_hz: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    external: External | None = None
    assumed: tuple[str, ...] | None = None

    @property
    def core(self) -> Core:
        return self.chip.core

    @property
    def compiler_flags(self) -> tuple[str, ...]:
        return self.chip.compiler_flags

    @property
    def is_host(self) -> bool:
        return not self.memories

    @property
    def is_core(self) -> bool:
        """Whether it is a core without a board."""
        return self.assumed is not None

    def check_firmware(self) -> None:
        """Check that firmware can run here. Raises InputError for a core or a chip without a board,
        which has no serial port."""
        if self.is_core:
            raise InputError(
                f"{self.name} is a core without a board: firmware needs start-up code, a clock "
                "and a serial port, which are a board's",
                remedies=[
                    "`thimble compile --library` for the C alone",
                    "`thimble export --for cmake` (or another build system) for a package",
                    "`thimble verify`, which runs the C in QEMU",
                    "a --board (`thimble boards` lists them)",
                ],
            )
        if self.uart is None and not self.is_host:
            raise InputError(
                f"{self.name} is a chip without a board: firmware needs to know its clock and the "
                "pins of its serial port",
                remedies=[
                    "--library for the C alone",
                    f"`thimble boards new NAME --chip {self.chip.name}` for a board of yours",
                    "another --board",
                ],
            )

    @property
    def chip_flash_bytes(self) -> int:
        """The flash of the chip that the firmware may use."""
        flash = (m for m in self.memories if m.kind is MemoryKind.FLASH and m.holds)
        return sum(m.size_bytes for m in flash if not m.beside)

    @property
    def ram_bytes(self) -> int:
        """All RAM that the firmware may use; 0 for the host, which has no limit."""
        ram = (m for m in self.memories if m.kind is MemoryKind.RAM)
        return sum(m.size_bytes for m in ram if m.holds)

    @property
    def flash_bytes(self) -> int:
        """All flash that the firmware may use."""
        flash = (m for m in self.memories if m.kind is MemoryKind.FLASH)
        return sum(m.size_bytes for m in flash if m.holds)
