"""A board while it is visited: how it is reached, its open session, the time that is left."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from toolchain.boards import Board
from toolchain.contact.document import Access, Outcome, Pair, Sample
from toolchain.contact.firmware import contact_firmware
from toolchain.contact.power.recorder import Recorder
from toolchain.cycles.memory_system import MemorySystem
from toolchain.device.firmware import Firmware
from toolchain.device.flash import flash as flash_board
from toolchain.device.session import Session, open_board
from toolchain.errors import LinkError
from toolchain.progress import Report, silent

LONGEST_SECONDS = 60.0
"""That one command or inference may take."""


class Opener(Protocol):
    """Opens a session, as `open_board` does."""

    def __call__(
        self,
        source: Firmware,
        port: str | None = None,
        *,
        trace: MemorySystem | None = None,
        limit_seconds: float = ...,
    ) -> Session: ...


class Flasher(Protocol):
    """Writes a firmware to a real board, as `device.flash.flash` does."""

    def __call__(self, firmware: Firmware, wanted: str | None, probe: str) -> None: ...


class Maker(Protocol):
    """Builds the contact firmware, as `contact_firmware` does."""

    def __call__(self, board: Board, folder: Path, *, external: bool) -> Firmware: ...


@dataclass(frozen=True)
class Desk:
    """How a board is reached.

    port, probe, runner  as `thimble run` and `thimble flash` take them
    opener, flasher, maker, clock, sleep  the tools; others in tests
    recorder  of power, as its methods say; None: energy is not measured
    """

    board: Board
    port: str | None = None
    probe: str = ""
    runner: str | None = None
    opener: Opener = open_board
    flasher: Flasher = flash_board
    maker: Maker = contact_firmware
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    recorder: Recorder | None = None
    cmsis_nn_folder: Path | None = None


@dataclass(frozen=True)
class Told:
    """The outcome of a step; as `document.Result`. `samples`: operators that it ran; `accesses`,
    `pairs`: what it timed.
    """

    outcome: Outcome
    sentences: tuple[str, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    accesses: tuple[Access, ...] = ()
    pairs: tuple[Pair, ...] = ()


def told(
    findings: Sequence[str],
    facts: Sequence[str],
    values: Mapping[str, Any],
    samples: Sequence[Sample] = (),
    accesses: Sequence[Access] = (),
    pairs: Sequence[Pair] = (),
) -> Told:
    """The outcome of a step that did something."""
    outcome = Outcome.FINDING if findings else Outcome.OK
    timed = tuple(accesses), tuple(pairs)
    return Told(outcome, (*findings, *facts), values, tuple(samples), *timed)


def skipped(why: str) -> Told:
    """The outcome of a step that tried nothing."""
    return Told(Outcome.SKIPPED, (why,))


class Visit:
    """The board at hand. `firmware`: the one that it was given last; `session`: the line to it,
    None where it is not to be asked; `external`: the memory beside the chip is readable; `reached`:
    some firmware has answered.
    """

    def __init__(self, desk: Desk, folder: Path, seconds: float, report: Report = silent) -> None:
        self.desk, self.folder, self.report = desk, folder, report
        self.board = desk.board
        self.firmware: Firmware | None = None
        self.session: Session | None = None
        self.external = False
        self.reached = False
        self._end = desk.clock() + seconds

    @property
    def left_seconds(self) -> float:
        """Time that is left; below 0 when it is over."""
        return self._end - self.desk.clock()

    def put(self, firmware: Firmware, trace: MemorySystem | None = None) -> Session:
        """Give the board a firmware, and open the line to it: a real one is flashed, an emulated
        one started. Raises as `flash` and `open_board` do.
        """
        self.leave()
        self.firmware = firmware
        if self.board.emulator is None:
            self.desk.flasher(firmware, self.desk.runner, self.desk.probe)
        limit = min(LONGEST_SECONDS, max(self.left_seconds, 1.0))
        self.session = self.desk.opener(firmware, self.desk.port, trace=trace, limit_seconds=limit)
        self.reached = True
        return self.session

    def leave(self) -> None:
        """Close the line."""
        if self.session is not None:
            with contextlib.suppress(LinkError):
                self.session.close()
        self.session = None

    def recover(self) -> None:
        """Greet a board that was reset, or leave it where it does not answer."""
        try:
            if self.session is not None:
                self.session.greet()
        except LinkError:
            self.leave()
