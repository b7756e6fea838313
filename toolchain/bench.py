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

import json
import shutil
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.device.firmware import Firmware
from toolchain.device.flash import flash
from toolchain.device.ports import find_port
from toolchain.device.session import Session, open_board
from toolchain.errors import InputError, LinkError, MissingToolError

_CLIENT = "labgrid-client"
_LABGRID_SECONDS = 60.0
_FIELDS = {"board", "port", "probe", "runner", "place"}


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
    place: str = ""

    @property
    def name(self) -> str:
        return self.board.name

    @property
    def started_here(self) -> bool:
        """Whether it is an emulator that each session starts anew."""
        return self.board.emulator is not None and not self.port and not self.place


@dataclass(frozen=True)
class Bench:
    """All boards of a `bench.toml`, and the address of labgrid's coordinator, if any."""

    boards: tuple[BenchBoard, ...]
    coordinator: str = ""


def read_bench(file: Path) -> Bench:
    """Raises InputError naming the entry and field at fault."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{file}: {error}") from error
    entries = data.get("board", [])
    unknown = set(data) - {"board", "coordinator"}
    if unknown or not isinstance(entries, list) or not entries:
        what = f"unknown field {sorted(unknown)[0]!r}" if unknown else "no [[board]]"
        raise InputError(f"{file}: {what}")
    boards: list[BenchBoard] = []
    for number, entry in enumerate(entries):
        boards.append(_bench_board(f"{file}: board {number}", entry, boards))
    coordinator = data.get("coordinator", "")
    if not isinstance(coordinator, str):
        raise InputError(f"{file}: coordinator is no text")
    return Bench(tuple(boards), coordinator)


def _bench_board(where: str, entry: Any, others: list[BenchBoard]) -> BenchBoard:
    if not isinstance(entry, dict) or not all(isinstance(v, str) for v in entry.values()):
        raise InputError(f"{where}: every field is a text")
    if set(entry) - _FIELDS or "board" not in entry:
        raise InputError(f"{where}: takes board, and any of port, probe, runner, place")
    if "port" in entry and "place" in entry:
        raise InputError(f"{where}: a place has its own port")
    board = find_board(entry["board"])
    if board.is_host:
        raise InputError(f"{where}: the host is no board of a bench")
    same = sum(other.name == board.name for other in others)
    label = entry.get("place") or (f"{board.name}-{same + 1}" if same else board.name)
    given = {key: value for key, value in entry.items() if key != "board"}
    return BenchBoard(board, label, **given)


def start(board: BenchBoard, firmware: Firmware, port: str) -> Session:
    """A session with `firmware` on `board`: started in QEMU, or flashed where it is not on yet.

    `port` is that of a reserved place, '' for the bench's own. Raises NotThereError for an
    emulator elsewhere that runs another firmware; otherwise as `flash` and `open_board`.
    """
    if board.started_here:
        return open_board(firmware)
    at = port or board.port or find_port(board.board, board.probe)
    try:
        return open_board(firmware, at)
    except LinkError as error:
        if board.board.emulator is not None:
            raise NotThereError(f"{board.label} cannot be flashed from here: {error}") from error
    flash(firmware, board.runner or None, board.probe)
    return open_board(firmware, at)


@contextmanager
def reserved(board: BenchBoard, coordinator: str) -> Iterator[str]:
    """The serial port of the board's place, held through labgrid; '' for a board without one.

    Raises MissingToolError without labgrid's client, LinkError where the place is taken.
    """
    if not board.place:
        yield ""
        return
    labgrid = _Labgrid(board.place, coordinator)
    labgrid.run("acquire")
    try:
        yield labgrid.port()
    finally:
        labgrid.run("release")


@dataclass(frozen=True)
class _Labgrid:
    """labgrid's own client, run as a program."""

    place: str
    coordinator: str

    def command(self, *words: str) -> list[str]:
        client = shutil.which(_CLIENT)
        if client is None:
            raise MissingToolError(f"{_CLIENT} is not installed; run: pip install labgrid")
        at = ["-x", self.coordinator] if self.coordinator else []
        return [client, *at, "-p", self.place, *words]

    def run(self, *words: str) -> str:
        try:
            done = subprocess.run(
                self.command(*words),
                capture_output=True,
                text=True,
                check=False,
                timeout=_LABGRID_SECONDS,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as error:
            raise LinkError(f"labgrid does not answer in {_LABGRID_SECONDS:g} s") from error
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise LinkError(f"labgrid cannot {words[0]} the place {self.place!r}: {said[-1]}")
        return done.stdout

    def port(self) -> str:
        """What `labgrid-client export` says of the place's serial port, as a pyserial URL."""
        with tempfile.TemporaryDirectory(prefix="thimble-") as folder:
            file = Path(folder) / "place.json"
            command = self.command("export", "--format", "json", str(file))
            with subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            ) as exporting:
                try:
                    data = _when_written(file, exporting)
                finally:
                    exporting.terminate()
                    exporting.wait(_LABGRID_SECONDS)
        return _serial_url(data, self.place)


def _when_written(file: Path, process: subprocess.Popen[bytes]) -> Any:
    deadline = time.monotonic() + _LABGRID_SECONDS
    while time.monotonic() < deadline:
        if file.exists():
            try:
                return json.loads(file.read_text(encoding="utf-8"))
            except ValueError:
                pass  # not whole yet
        if process.poll() is not None and not file.exists():
            assert process.stderr is not None
            said = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
            raise LinkError(f"labgrid cannot export the place: {(said or ['no reason given'])[-1]}")
        time.sleep(0.05)
    raise LinkError("labgrid does not say where the place's serial port is")


def _serial_url(data: Any, place: str) -> str:
    """`socket://` or `rfc2217://` from the variables that labgrid exports."""
    flat = (
        {str(key).upper(): value for key, value in data.items()} if isinstance(data, dict) else {}
    )
    for key, number in flat.items():
        if key.endswith("__PORT") and "SERIAL" in key:
            stem = key[: -len("PORT")]
            host = flat.get(f"{stem}HOST", "")
            scheme = "socket" if flat.get(f"{stem}PROTOCOL", "rfc2217") == "raw" else "rfc2217"
            return f"{scheme}://{host}:{number}"
    raise LinkError(f"the place {place!r} has no serial port")
