"""The dispatcher: jobs to workers, each once, with resources that only one job may hold at a time.

A pool runs jobs and says how each ended. A worker that dies costs its job alone, which is begun
again on another, a few times; then the job is what kills workers, and that is its result. Where
all workers are lost at once (the scheduler of a cluster went down), nothing is held against a job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

MOST_DEATHS = 3
"""Workers that one job may cost."""


@dataclass(frozen=True)
class Job:
    """One call, which depends on nothing but its arguments. All of it can be pickled.

    `key` names it; two jobs of one key are the same. `needs`: the name of a resource, of which it
    holds one unit while it runs, as the last argument of the call; '' for none.
    """

    key: str
    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    needs: str = ""


@dataclass(frozen=True)
class Shared:
    """Bytes that many jobs have among their arguments, as those of a model file; `key`: a hash."""

    key: str
    data: bytes


class End(Enum):
    """How a job ended: with a value; its worker died; or it was lost through no fault of its
    own.
    """

    DONE = "done"
    DIED = "died"
    LOST = "lost"


@dataclass(frozen=True)
class Ended:
    """`value`: of a job that is done. `where`: the worker. `deaths`: workers that it cost now."""

    key: str
    end: End
    value: Any = None
    where: str = ""
    deaths: int = 1


class Pool(Protocol):
    """Workers. A job is submitted only while fewer than `slots()` are under way."""

    def slots(self) -> int:
        """Jobs that may be under way now: enough to keep each worker busy."""

    def submit(self, job: Job) -> None: ...

    def wait(self) -> Sequence[Ended]:
        """Jobs that ended since the last call; waits until one has, or a moment where none does."""


@dataclass(frozen=True)
class Result:
    """A job that is over. `died`: every worker that began it died."""

    job: Job
    value: Any
    where: str
    died: bool = False


class Dispatcher:
    """The jobs that wait, those under way, and the units of resources that nobody holds.

    Each event takes the same time, however many jobs and workers there are.
    """

    def __init__(self, jobs: Iterable[Job], units: Mapping[str, Sequence[Any]]) -> None:
        self._free = {name: deque(held) for name, held in units.items()}
        self._waiting: dict[str, deque[Job]] = {}
        self._turn: deque[str] = deque()
        """The resources of which a unit is free and for which a job waits; '' needs none."""
        self._running: dict[str, tuple[Job, Any]] = {}
        self._deaths: dict[str, int] = {}
        for job in jobs:
            self._add(job)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def is_over(self) -> bool:
        return not self._running and not any(self._waiting.values())

    def begin(self) -> Job | None:
        """The next job, with its unit among the arguments; None while none can begin."""
        if not self._turn:
            return None
        name = self._turn.popleft()
        job = self._waiting[name].popleft()
        unit = self._free[name].popleft() if name else None
        self._running[job.key] = (job, unit)
        self._offer(name)
        if not name:
            return job
        return Job(job.key, job.call, (*job.arguments, unit), name)

    def end(self, ended: Ended) -> Result | None:
        """Take note of it. None where the job is to begin again, or is not under way."""
        running = self._running.pop(ended.key, None)
        if running is None:
            return None
        job, unit = running
        if job.needs:
            self._free[job.needs].append(unit)
        result: Result | None = None
        if ended.end is End.DONE:
            result = Result(job, ended.value, ended.where)
        elif ended.end is End.DIED:
            deaths = self._deaths[job.key] = self._deaths.get(job.key, 0) + ended.deaths
            if deaths >= MOST_DEATHS:
                result = Result(job, None, ended.where, died=True)
        if result is None:
            self._waiting[job.needs].appendleft(job)
        self._offer(job.needs)
        return result

    def _add(self, job: Job) -> None:
        self._waiting.setdefault(job.needs, deque()).append(job)
        self._offer(job.needs)

    def _offer(self, name: str) -> None:
        if self._waiting[name] and (not name or self._free[name]) and name not in self._turn:
            self._turn.append(name)


def run(
    jobs: Iterable[Job], pool: Pool, units: Mapping[str, Sequence[Any]] | None = None
) -> Iterator[Result]:
    """The results as they come. `units`: of each resource that a job needs, at least one."""
    dispatcher = Dispatcher(jobs, units or {})
    while not dispatcher.is_over:
        slots = pool.slots()
        while dispatcher.running < slots and (job := dispatcher.begin()) is not None:
            pool.submit(job)
        for ended in pool.wait():
            result = dispatcher.end(ended)
            if result is not None:
                yield result
