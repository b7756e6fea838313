"""The recorder that a visit asks for power: a file that someone exports, or ST's LPM01A."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from toolchain.contact.power.lpm01a import Lpm01a
from toolchain.contact.power.recording import Recording, read_recording
from toolchain.errors import InputError
from toolchain.progress import Report, silent

LPM01A = "lpm01a:"
"""The beginning of a source that names the port of ST's X-NUCLEO-LPM01A."""
_PATIENCE_SECONDS = 300.0
_POLL_SECONDS = 0.5


class Recorder(Protocol):
    """Records power. `begin` comes before the board gets its first firmware, `start` before the
    first burst, `finish` after the last; `close` whatever happened. Each but `close` raises
    ThimbleError.
    """

    def begin(self) -> None: ...

    def start(self) -> None: ...

    def finish(self, report: Report = silent) -> Recording: ...

    def close(self) -> None: ...


class ExportedFile:
    """A CSV file that is recorded by another program during the visit, and exported after the last
    burst. An older file of that name is not read.
    """

    def __init__(
        self,
        file: Path,
        volts: float,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._file, self._volts, self._now, self._sleep = file, volts, now, sleep
        self._began = 0.0

    def begin(self) -> None:
        self._began = self._now()

    def start(self) -> None:
        """Nothing: the program records since before the visit."""

    def finish(self, report: Report = silent) -> Recording:
        """Wait for the file, and for its end. Raises InputError where it does not come."""
        report(f"stop recording power, and export it to {self._file}")
        before, deadline = -1, self._now() + _PATIENCE_SECONDS
        while self._now() < deadline:
            size = self._new_bytes()
            if size and size == before:
                return read_recording(self._file, self._volts)
            before = size
            self._sleep(_POLL_SECONDS)
        raise InputError(
            f"{self._file.name} was not written within {_PATIENCE_SECONDS:g} s after the last run: "
            "record power from before the visit on, and export it there when asked to"
        )

    def _new_bytes(self) -> int:
        """Bytes of the file, 0 where it is not there or older than the visit."""
        try:
            status = self._file.stat()
        except OSError:
            return 0
        return status.st_size if status.st_mtime >= int(self._began) else 0

    def close(self) -> None:
        """Nothing is open."""


def recorder_of(source: str, volts: float) -> Recorder:
    """The recorder that `source` names: a CSV file, or `lpm01a:PORT`."""
    if source.startswith(LPM01A):
        return Lpm01a(source.removeprefix(LPM01A), volts)
    return ExportedFile(Path(source), volts)
