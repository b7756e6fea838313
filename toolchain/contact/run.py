"""All steps of a visit, past failures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolchain.contact.document import (
    Access,
    Contact,
    Outcome,
    Pair,
    Result,
    Sample,
)
from toolchain.contact.step import Step
from toolchain.contact.steps import (
    access,
    chip,
    clock,
    memory,
    networks,
    operators,
    pairs,
    silence,
    start,
    switches,
    tools,
)
from toolchain.contact.visit import Desk, Told, Visit, skipped
from toolchain.deployment.measurements import current_build
from toolchain.device.link import BoardFaultError, NoAnswerError
from toolchain.errors import InputError, ThimbleError
from toolchain.files import scratch_folder
from toolchain.files.formats import CONTACT
from toolchain.progress import Report, silent
from toolchain.version import __version__

SECONDS = 600.0
"""That a visit takes at most: a step that is under way ends by limits of its own."""
STEPS: tuple[Step, ...] = (
    *(tools.STEP, start.STEP, chip.STEP, clock.STEP, memory.STEP, access.STEP),
    *(pairs.STEP, switches.STEP, operators.STEP, networks.STEP),
)
"""In their order."""


@dataclass
class _Log:
    folder: Path
    results: list[Result] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)

    def note(self, name: str, title: str, told: Told, seconds: float) -> None:
        took, sentences = round(seconds, 2), tuple(map(self._without_folders, told.sentences))
        self.results.append(Result(name, title, told.outcome, sentences, took, told.values))
        self.samples += told.samples
        self.accesses += told.accesses
        self.pairs += told.pairs

    def _without_folders(self, text: str) -> str:
        """A sentence to send: folders of the user stay at home."""
        return text.replace(f"{self.folder}/", "").replace(str(Path.home()), "~")


def contact(
    desk: Desk, *, only: Sequence[str] = (), seconds: float = SECONDS, report: Report = silent
) -> Contact:
    """Visit a board. `only`: names of the steps to take; `start` is always one, where another needs
    it. Raises InputError for an unknown one, for the host, which is no board, and for a recorder of
    power beside an emulated one; ThimbleError as `Recorder.begin` does.
    """
    if desk.board.is_host:
        raise InputError("the host is no board to visit: name one, or one in QEMU")
    if desk.recorder is not None and desk.board.emulator is not None:
        raise InputError("an emulated board draws no power: --power is for a real one")
    desk.board.check_firmware()
    steps = chosen(only)
    with scratch_folder() as folder:
        log = _Log(folder)
        visit = Visit(desk, folder, seconds, report)
        try:
            if desk.recorder is not None:
                desk.recorder.begin()
            for number, step in enumerate(steps):
                report(step.title, number, len(steps))
                _take(step, visit, log)
        finally:
            visit.leave()
            if desk.recorder is not None:
                desk.recorder.close()
    build = current_build(desk.cmsis_nn_folder)
    board = desk.board
    return Contact(
        format=CONTACT.name,
        version=CONTACT.version,
        thimble=__version__,
        made_at=int(time.time()),
        board=board.name,
        chip=board.chip.name,
        core=board.core.name,
        clock_hz=board.clock_hz,
        emulated=board.emulator is not None,
        compiler=build.compiler if build else "",
        cmsis_nn=build.cmsis_nn if build else "",
        results=tuple(log.results),
        samples=tuple(log.samples),
        accesses=tuple(log.accesses),
        pairs=tuple(log.pairs),
    )


def chosen(only: Sequence[str]) -> tuple[Step, ...]:
    """The steps of these names, and those that they need. Raises InputError for an unknown name."""
    known = {step.name: step for step in STEPS}
    for name in only:
        if name not in known:
            raise InputError(f"there is no step {name!r}; there are: {', '.join(known)}")
    if not only:
        return STEPS
    asked = [step for step in STEPS if step.name in only]
    starts = any(step.asks_contact for step in asked)
    return tuple(s for s in STEPS if s in asked or (starts and s is start.STEP))


def _take(step: Step, visit: Visit, log: _Log) -> None:
    began = visit.desk.clock()
    lost: NoAnswerError | None = None
    try:
        told = _tried(step, visit)
    except NoAnswerError as error:
        lost, told = error, Told(Outcome.FINDING, (str(error),))
        visit.leave()
    except BoardFaultError as error:
        told = Told(Outcome.FINDING, (str(error),))
        visit.recover()
    except ThimbleError as error:
        told = Told(Outcome.FINDING, (str(error),))
        visit.recover()
    log.note(step.name, step.title, told, visit.desk.clock() - began)
    if lost is not None:
        began = visit.desk.clock()
        log.note("silence", silence.TITLE, silence.told(visit, lost), visit.desk.clock() - began)


def _tried(step: Step, visit: Visit) -> Told:
    if visit.left_seconds <= 0:
        return skipped("the time of the visit was over")
    if step.asks_contact and visit.session is None:
        return skipped("no contact firmware answers")
    if step.own_firmware and visit.firmware is not None and not visit.reached:
        return skipped("the board did not answer with the contact firmware")
    return step.run(visit)
