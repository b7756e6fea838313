"""What became of a case, and what a run of many cases found."""

from __future__ import annotations

import contextlib
import re
import resource
import signal
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.fuzz.seeds import ROOT
from toolchain.errors import InputError, ThimbleError

ACCEPTED, REFUSED, PLANNED = "accepted", "refused", "planned"
TRACEBACK, HANG, DEATH = "traceback", "hang", "death"
SANITIZER, WRONG, BUILD, SILENT, FAILED = "sanitizer", "wrong", "build", "silent", "failed"
FINDINGS = (TRACEBACK, HANG, DEATH, SANITIZER, WRONG, BUILD, SILENT, FAILED)
"""The outcomes that must not be. SILENT: refused without a word. FAILED: the C returned an error.
BUILD: the compiler warns of the C."""
EQUAL, CIRCULAR, UNJUDGED, LARGE = "equal", "circular", "unjudged", "large"
UNDEFINED = "undefined"
"""Of C that ran: its bytes are those of another's reference; of our own, no other taking the file;
the reference crashed or raised. LARGE: left out, too slow to run. UNDEFINED: the bytes differ, and
the reference's C++ leaves them undefined for these inputs."""
UNSPLIT, ANSWERED = "unsplit", "answered"
"""No way was found to split the network for its budget; the firmware answered the frame."""
_MEMORY_BYTES = 6 << 30
_SHOWN_NUMBERS = 20


@dataclass(frozen=True)
class Outcome:
    """`kind`: one of those above, or what a level adds. `where`: alike ones have it alike."""

    number: int
    kind: str
    where: str = ""
    message: str = ""


@dataclass
class Finding:
    """Alike outcomes that must not be."""

    kind: str
    where: str
    message: str
    count: int = 0
    numbers: list[int] = field(default_factory=list)


@dataclass
class Tally:
    """Of one level."""

    level: str
    seed: int
    seconds: float = 0.0
    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        self.cases += 1
        self.counts[outcome.kind] += 1
        if outcome.kind not in FINDINGS:
            if outcome.where:
                self.reasons[outcome.where] += 1
            return
        key = (outcome.kind, outcome.where)
        found = self.findings.setdefault(key, Finding(*key, outcome.message))
        found.count += 1
        if len(found.numbers) < _SHOWN_NUMBERS:
            found.numbers.append(outcome.number)

    def merge(self, other: Tally) -> None:
        """Count what another tally of this level has counted."""
        self.cases += other.cases
        self.counts += other.counts
        self.reasons += other.reasons
        for key, found in other.findings.items():
            own = self.findings.setdefault(key, Finding(*key, found.message))
            own.count += found.count
            own.numbers += found.numbers[: _SHOWN_NUMBERS - len(own.numbers)]

    @property
    def failed(self) -> bool:
        return bool(self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "cases": self.cases,
            "counts": dict(self.counts),
            "reasons": dict(self.reasons.most_common(200)),
            "findings": [asdict(found) for found in self.findings.values()],
        }


class HangError(BaseException):
    """The time for a case is over. No `Exception`, so that nothing takes it for its own."""


def _over(number: int, frame: FrameType | None) -> None:
    raise HangError


@contextlib.contextmanager
def time_limit(seconds: float, *, of_the_clock: bool = False) -> Iterator[None]:
    """Raise HangError after so much time of the processor, or of the clock."""
    kind, alarm = signal.ITIMER_PROF, signal.SIGPROF
    if of_the_clock:
        kind, alarm = signal.ITIMER_REAL, signal.SIGALRM
    before = signal.signal(alarm, _over)
    signal.setitimer(kind, seconds)
    try:
        yield
    finally:
        signal.setitimer(kind, 0)
        signal.signal(alarm, before)


def limit_memory(size_bytes: int = _MEMORY_BYTES) -> None:
    """An allocation beyond any that a sound file needs raises MemoryError."""
    resource.setrlimit(resource.RLIMIT_AS, (size_bytes, resource.RLIM_INFINITY))


def place_of(error: BaseException) -> str:
    """The error's type and the innermost frame of the toolchain."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if Path(f.filename).is_relative_to(ROOT / "toolchain")]
    if not ours:
        return f"{type(error).__name__} outside the toolchain"
    path = Path(ours[-1].filename).relative_to(ROOT).as_posix()
    return f"{type(error).__name__} at {path}:{ours[-1].lineno} ({ours[-1].name})"


def of_error(number: int, error: BaseException) -> Outcome:
    """The outcome where an error ended the case."""
    if isinstance(error, InputError):
        text = str(error).strip()
        return Outcome(number, REFUSED, reason(text)) if text else Outcome(number, SILENT)
    kind = HANG if isinstance(error, HangError) else TRACEBACK
    return Outcome(number, kind, place_of(error), f"{type(error).__name__}: {error}"[:300])


def refused(number: int, error: ThimbleError) -> Outcome:
    """Of an error that stands for a plan that cannot be, beside those of `of_error`."""
    return Outcome(number, REFUSED, reason(str(error)))


def reason(text: str) -> str:
    """A refusal without names and numbers, so that alike ones count as one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = lines[1] if len(lines) > 1 and "not supported" in lines[0] else lines[0]
    return re.sub(r"-?\d[\d.,e+-]*", "N", re.sub(r"'[^']*'", "...", line))[:100]
