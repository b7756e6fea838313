"""ST's X-NUCLEO-LPM01A over its serial port (UM2269: lines of ASCII, answered by `ack` or `error`).

It supplies the board, and sends the energy of each millisecond. Nobody has run this on one.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable

import numpy as np

from toolchain.contact.power.recording import Recording
from toolchain.device.link import Transport, open_transport
from toolchain.errors import InputError, LinkError
from toolchain.progress import Report, silent

_BAUD = 3_686_400
"""The speed of a USB port that has none."""
_HZ, _FREQUENCY = 1000, "1k"
_VOLTS = (1.8, 3.3)
_PROMPT = "PowerShield > "
_ANSWER_SECONDS = 5.0
_SETTLE_SECONDS = 0.5
"""After the board got its supply."""
_SAMPLE = re.compile(r"\d{4}[+-]\d{2}")
_POLL_SECONDS = 0.1


class Lpm01a:
    """A recorder (`recorder.Recorder`). `volts`: what the board is supplied with."""

    def __init__(
        self,
        port: str,
        volts: float,
        opener: Callable[[str, int], Transport] = open_transport,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        low, high = _VOLTS
        if not low <= volts <= high:
            raise InputError(f"an LPM01A supplies {low} to {high} V, not {volts:g}")
        self._port, self._volts = port, volts
        self._opener, self._sleep = opener, sleep
        self._line: Transport | None = None
        self._rest = ""
        self._pending: list[str] = []
        self._samples: list[float] = []
        self._reader: threading.Thread | None = None
        self._completed = threading.Event()
        self._ends = threading.Event()
        self._lost: LinkError | None = None

    def begin(self) -> None:
        """Take control, set it up, and supply the board. Raises LinkError."""
        self._line = self._opener(self._port, _BAUD)
        for command in (
            "htc",
            "acqmode dyn",
            f"volt {round(self._volts * 1000)}m",
            "acqtime inf",
            "trigsrc sw",
            "trigdelay 0",
            "output energy",
            "format ascii_dec",
            f"freq {_FREQUENCY}",
            "pwrend on",
            "pwr on nostatus",
        ):
            self._ask(command)
        self._sleep(_SETTLE_SECONDS)

    def start(self) -> None:
        """Begin to measure; samples are read beside what the visit does."""
        self._ask("start")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def finish(self, report: Report = silent) -> Recording:
        """Stop. Raises LinkError where the shield does not end or has sent no samples."""
        assert self._line is not None
        self._line.write(b"stop\r\n")
        ended = self._completed.wait(_ANSWER_SECONDS)
        self._end_reader()
        if self._lost is not None:
            raise self._lost
        if not ended or len(self._samples) < 2:
            raise LinkError(
                f"the LPM01A at {self._port} sent {len(self._samples)} samples and "
                f"{'ended' if ended else 'did not end'}: it measures up to 50 mA in dynamic mode, "
                "and stops above that"
            )
        joules = np.array(self._samples)
        return Recording(np.arange(len(joules)) / _HZ, joules * _HZ)

    def close(self) -> None:
        """Give control back; the board keeps its supply."""
        self._end_reader()
        if self._line is not None:
            try:
                self._line.write(b"hrc\r\n")
                self._line.close()
            except LinkError:
                pass
        self._line = None

    def _end_reader(self) -> None:
        self._ends.set()
        if self._reader is not None:
            self._reader.join()
        self._reader = None

    def _ask(self, command: str) -> None:
        """One command. Raises LinkError where it is refused or not answered."""
        assert self._line is not None
        self._line.write(f"{command}\r\n".encode())
        deadline = time.monotonic() + _ANSWER_SECONDS
        while time.monotonic() < deadline:
            answer = self._next_line().removeprefix(_PROMPT)
            if answer.startswith("ack") and command in answer:
                return
            if answer.lower().startswith("err"):
                raise LinkError(f"the LPM01A at {self._port} refused {command!r}: {answer}")
        raise LinkError(
            f"the LPM01A at {self._port} did not answer {command!r}: is it that port, and is no "
            "other program on it?"
        )

    def _next_line(self) -> str:
        """The next line; '' where none has come. A NUL comes before some samples."""
        assert self._line is not None
        if not self._pending:
            self._rest += self._line.read(_POLL_SECONDS).decode("ascii", errors="replace")
            *lines, self._rest = self._rest.split("\n")
            self._pending = [line.strip("\0\r ") for line in lines]
        return self._pending.pop(0) if self._pending else ""

    def _read(self) -> None:
        try:
            while not self._ends.is_set() and not self._completed.is_set():
                self._take(self._next_line())
        except LinkError as error:
            self._lost = error

    def _take(self, line: str) -> None:
        if "Acquisition completed" in line:
            self._completed.set()
        elif _SAMPLE.fullmatch(line):
            self._samples.append(float(f"{line[:4]}e{line[4:]}"))
        elif line.removeprefix(_PROMPT).lower().startswith("err"):
            self._lost = LinkError(f"the LPM01A at {self._port}: {line}")
