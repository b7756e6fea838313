"""A bench: the boards that hardware-in-the-loop tests run on, as `bench.toml` lists them.

coordinator = "lab:20408"        # labgrid's, where places are named

[[board]]
board = "netduinoplus2"          # emulated: started here

[[board]]
board = "nucleo-f446re"
port = "/dev/ttyACM0"            # else found by the USB identity in the board's file
probe = "066DFF343334"           # serial number of the debug probe, and of the port found
runner = "openocd"               # else the first that is installed

[[board]]
board = "nucleo-h743zi"
place = "h743-2"                 # reserved through labgrid; its serial port is used
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.device.firmware import Firmware
from toolchain.device.flash import flash
from toolchain.device.ports import find_port
from toolchain.device.session import Session, open_board
from toolchain.errors import InputError, LinkError

_FIELDS = {"board", "port", "probe", "runner"}


class NotThereError(LinkError):
    """The firmware is not on the board, and cannot be put there from here."""


@dataclass(frozen=True)
class BenchBoard:
    """One board of a bench. Empty strings stand for what the file does not say."""

    board: Board
    label: str
    port: str = ""
    probe: str = ""
    runner: str = ""

    @property
    def name(self) -> str:
        return self.board.name

    @property
    def started_here(self) -> bool:
        """Whether it is an emulator that each session starts anew."""
        return self.board.emulator is not None and not self.port


@dataclass(frozen=True)
class Bench:
    """All boards of a `bench.toml`."""

    boards: tuple[BenchBoard, ...]


def read_bench(file: Path) -> Bench:
    """Raises InputError naming the entry and field at fault."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{file}: {error}") from error
    entries = data.get("board", [])
    unknown = set(data) - {"board"}
    if unknown or not isinstance(entries, list) or not entries:
        what = f"unknown field {sorted(unknown)[0]!r}" if unknown else "no [[board]]"
        raise InputError(f"{file}: {what}")
    boards: list[BenchBoard] = []
    for number, entry in enumerate(entries):
        boards.append(_bench_board(f"{file}: board {number}", entry, boards))
    return Bench(tuple(boards))


def _bench_board(where: str, entry: Any, others: list[BenchBoard]) -> BenchBoard:
    if not isinstance(entry, dict) or not all(isinstance(v, str) for v in entry.values()):
        raise InputError(f"{where}: every field is a text")
    if set(entry) - _FIELDS or "board" not in entry:
        raise InputError(f"{where}: takes board, and any of port, probe, runner")
    board = find_board(entry["board"])
    if board.is_host:
        raise InputError(f"{where}: the host is no board of a bench")
    same = sum(other.name == board.name for other in others)
    label = f"{board.name}-{same + 1}" if same else board.name
    given = {key: value for key, value in entry.items() if key != "board"}
    return BenchBoard(board, label, **given)


def start(board: BenchBoard, firmware: Firmware) -> Session:
    """A session with `firmware` on `board`: started in QEMU, or flashed where it is not on yet.

    Raises NotThereError for an
    emulator elsewhere that runs another firmware; otherwise as `flash` and `open_board`.
    """
    if board.started_here:
        return open_board(firmware)
    at = board.port or find_port(board.board, board.probe)
    try:
        return open_board(firmware, at)
    except LinkError as error:
        if board.board.emulator is not None:
            raise NotThereError(f"{board.label} cannot be flashed from here: {error}") from error
    flash(firmware, board.runner or None, board.probe)
    return open_board(firmware, at)
