"""A bench: the boards that hardware-in-the-loop tests run on, as `bench.toml` lists them.

coordinator = "lab:20408"        # labgrid's, where a place is named; else labgrid's own default

[[board]]
board = "netduinoplus2"          # emulated: started here

[[board]]
board = "nucleo-f446re"
port = "/dev/ttyACM0"            # else found by the USB identity in the board's file
probe = "066DFF343334"           # serial number of the debug probe, and of the port found
runner = "openocd"               # else the first that is installed
power_cycle = ["uhubctl", "-a", "cycle", "-l", "1-1", "-p", "2"]   # run where the board hangs

[[board]]
board = "nucleo-h743zi"
place = "h743-2"                 # reserved through labgrid while tests run; its serial port is used

[sticks]
count = 2                        # Coral USB Accelerators that pipelines run on
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from toolchain.bench.power import cycle_power
from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.cycles.memory_system import MemorySystem
from toolchain.device.answers import OtherFirmwareError
from toolchain.device.firmware import Firmware
from toolchain.device.flash import flash
from toolchain.device.places import reserved, serial_port
from toolchain.device.ports import attached_ports, find_port, port_at
from toolchain.device.session import Session, open_board
from toolchain.errors import InputError, LinkError
from toolchain.files.formats import WRITTEN_BY_HAND, versioned_toml
from toolchain.files.records import Form
from toolchain.kernels.cmsis_nn import cache_folder

try:
    import fcntl
except ImportError:  # Windows opens a serial port for one program only
    fcntl = None  # type: ignore[assignment]

_BUSY_SECONDS = 600.0
_MOST_STICKS = 16
_PLUG_SECONDS = 3.0
_POWER_UP_SECONDS = 20.0
"""From the power's return to a port: the ST-LINK enumerates anew."""
_FIELDS = ("board", "port", "probe", "runner", "place", "power_cycle")
_WORD = Form(
    r"[A-Za-z0-9/][A-Za-z0-9_./:\[\]+-]{0,119}",
    "letters, digits and _ . / : + -, a letter, digit or / first, 120 at most",
)
"""Names that a port, probe, place or tool may have: no option, and no parameters of a URL."""


class NotThereError(LinkError):
    """The firmware is not on the board, and cannot be flashed from here."""


@dataclass(frozen=True)
class BenchBoard:
    """One board of a bench. Empty strings stand for what the file leaves out.

    `place` is labgrid's, and `coordinator` is set where labgrid is asked for it. `power_cycle` is a
    command, a word an entry, that takes the board's power away and gives it back.
    """

    board: Board
    label: str
    port: str = ""
    probe: str = ""
    runner: str = ""
    place: str = ""
    power_cycle: tuple[str, ...] = ()
    coordinator: str = ""

    @property
    def name(self) -> str:
        return self.board.name

    @property
    def started_here(self) -> bool:
        """Whether it is an emulator that each session starts anew."""
        return self.board.emulator is not None and not self.port and not self.place

    @property
    def flashed_here(self) -> bool:
        """Whether its debug probe can be reached; one on another machine must be named."""
        away = bool(self.place) or "://" in self.port
        return self.board.emulator is None and (bool(self.probe) or not away)

    def located(self, patience_seconds: float = _PLUG_SECONDS) -> str:
        """The board's port, waited for. Raises InputError if that is ambiguous, LinkError where
        labgrid fails or no port comes."""
        if self.place:
            return serial_port(self.place, self.coordinator)
        return self.port or find_port(self.board, self.probe, patience_seconds=patience_seconds)


@dataclass(frozen=True)
class Bench:
    """All boards of a `bench.toml`, and how many Coral USB Accelerators pipelines run on."""

    boards: tuple[BenchBoard, ...]
    sticks: int = 0

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Hold every place that the bench names, all or none. Raises LinkError,
        MissingToolError.
        """
        with ExitStack() as stack:
            for board in self.boards:
                if board.place:
                    stack.enter_context(reserved(board.place, board.coordinator))
            yield


def read_bench(file: Path) -> Bench:
    """Read a `bench.toml`. Raises InputError naming the invalid entry and field."""
    data = versioned_toml(file, WRITTEN_BY_HAND)
    entries = data.get("board", [])
    coordinator = data.get("coordinator", "")
    sticks = _sticks(data.get("sticks", {}), f"{file}: sticks")
    unknown = set(data) - {"board", "coordinator", "sticks"}
    if not isinstance(coordinator, str):
        raise InputError(f"{file}: coordinator is labgrid's host:port, as a text")
    if coordinator:
        _WORD.check(coordinator, f"{file}: coordinator")
    if unknown or not isinstance(entries, list) or not (entries or sticks):
        problem = f"unknown field {sorted(unknown)[0]!r}" if unknown else "no [[board]] or [sticks]"
        raise InputError(f"{file}: {problem}")
    boards: list[BenchBoard] = []
    for number, entry in enumerate(entries):
        read = _bench_board(f"{file}: board {number}", entry, boards)
        boards.append(replace(read, coordinator=coordinator))
    return Bench(tuple(boards), sticks)


def _sticks(entry: object, where: str) -> int:
    if not isinstance(entry, dict) or set(entry) - {"count"}:
        raise InputError(f"{where}: it takes count, the number of USB Accelerators")
    count = entry.get("count", 0)
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _MOST_STICKS:
        raise InputError(f"{where}: count is a number from 0 to {_MOST_STICKS}, not {count!r}")
    return count


def _bench_board(where: str, entry: Any, others: list[BenchBoard]) -> BenchBoard:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: every field is a text")
    power = _command(f"{where}: power_cycle", entry.get("power_cycle", []))
    texts = {key: value for key, value in entry.items() if key != "power_cycle"}
    if not all(isinstance(value, str) for value in texts.values()):
        raise InputError(f"{where}: every field is a text")
    unknown = [name for name in entry if name not in _FIELDS]
    if unknown or "board" not in entry:
        problem = f"unknown field {unknown[0]!r}" if unknown else "the field 'board' is missing"
        raise InputError(f"{where}: {problem}; it takes {', '.join(_FIELDS)}")
    if "port" in entry and "place" in entry:
        raise InputError(f"{where}: port and place are both given; labgrid tells a place's port")
    for name, text in texts.items():
        if name != "board" and text:
            _WORD.check(text, f"{where}: {name}")
    board = find_board(entry["board"])
    if board.is_host:
        raise InputError(f"{where}: the host is no board of a bench")
    same = sum(other.name == board.name for other in others)
    label = f"{board.name}-{same + 1}" if same else board.name
    given = {key: value for key, value in texts.items() if key != "board"}
    return BenchBoard(board, label, power_cycle=power, **given)


def _command(where: str, given: object) -> tuple[str, ...]:
    """A command of the bench's owner: a list of texts, so that no shell reads it."""
    if not isinstance(given, list) or not all(isinstance(word, str) and word for word in given):
        raise InputError(
            f'{where}: a command is a list of texts, as ["uhubctl", "-a", "cycle", "-l", "1-1"]'
        )
    return tuple(given)


@contextmanager
def held(board: BenchBoard) -> Iterator[str]:
    """The port of a real board, held exclusively: other tests and benches on this machine wait for
    it.

    '' for an emulated board, since each session starts its own. Raises LinkError if it stays busy,
    and otherwise as `BenchBoard.located` does.
    """
    if board.started_here:
        yield ""
        return
    port = board.located()
    known = port_at(port, attached_ports)  # which may get another name when it is flashed
    lock = f"{known.serial_number}-{known.interface}" if known and known.serial_number else port
    name = "".join(c if c.isalnum() else "-" for c in lock)
    locks = cache_folder() / "ports"
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / name).open("w") as file:
        _lock(file, port)
        yield port


def _lock(file: IO[str], port: str) -> None:
    """The kernel opens the lock when its holder ends, however that is."""
    if fcntl is None:
        return
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise LinkError(f"another bench holds {port} for longer than 10 minutes") from error
            time.sleep(0.1)


def start(
    board: BenchBoard, firmware: Firmware, at: str, trace: MemorySystem | None = None
) -> Session:
    """A session with `firmware` on `board`: started in QEMU, or flashed if it is not on the board
    yet. A board that fails and has a `power_cycle` is tried once more after it.

    `at` is the port that `held` gives; `trace` is that of `open_board`, for an emulated board.
    Raises NotThereError if the board has another firmware and cannot be flashed from here;
    otherwise as `flash`, `open_board` and `cycle_power` do.
    """
    if board.started_here:
        return open_board(firmware, trace=trace)
    try:
        return _put(board, firmware, at)
    except LinkError as error:
        if not board.power_cycle or isinstance(error.__cause__, OtherFirmwareError):
            raise
        warnings.warn(f"{board.label}: its power was cycled, since {error}", stacklevel=2)
    cycle_power(board.label, board.power_cycle)
    deadline = time.monotonic() + _POWER_UP_SECONDS
    while True:
        try:
            return _put(board, firmware, board.located(_POWER_UP_SECONDS))
        except LinkError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _put(board: BenchBoard, firmware: Firmware, at: str) -> Session:
    """A session with `firmware` on a real board, flashed where another firmware answers or none."""
    try:
        return open_board(firmware, at)
    except LinkError as error:
        if not board.flashed_here:
            raise NotThereError(f"{board.label} cannot be flashed from here: {error}") from error
    flash(firmware, board.runner or None, board.probe)
    return open_board(firmware, board.located())  # a probe that was reset may have a new port
