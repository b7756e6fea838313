"""Cases on several processes, each of which may die or hang without ending the run."""

from __future__ import annotations

import gc
import itertools
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from benchmarks.fuzz.outcome import DEATH, HANG, Outcome, Tally, limit_memory

Serve = Callable[[Sequence[int], Callable[[int], None]], Iterator[Outcome]]
"""A chunk of numbers to their outcomes; the callable is told which number is begun."""
Begin = Callable[[], Serve]
"""Called once in each process."""


_GARBAGE = (50_000, 20, 100)
"""Thresholds of the collector: graphs are freed by their counts, and seeds stay."""
_ALONE_SECONDS = 5.0
"""How often a process looks whether the one that started it is still there."""


@dataclass
class _Worker:
    process: BaseProcess
    line: Connection
    waiting: list[int] = field(default_factory=list)
    busy: bool = False
    at: int | None = None
    heard: float = 0.0


class FuzzerError(Exception):
    """The fuzzer itself failed in one of its processes; the text is the traceback there."""


def _work(begin: Begin, line: Connection) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    limit_memory()
    gc.set_threshold(*_GARBAGE)
    parent = os.getppid()
    try:
        serve = begin()
        while True:
            while not line.poll(_ALONE_SECONDS):
                if os.getppid() != parent:
                    os._exit(0)
            for outcome in serve(line.recv(), line.send):
                line.send(outcome)
            line.send(None)
    except Exception:
        line.send(FuzzerError(traceback.format_exc()))


class Pool:
    """`jobs` processes that serve chunks of case numbers.

    `silence_seconds`: a process that says nothing for so long is ended, its case counted as hung.
    `run` raises FuzzerError. `method`: how a process is started; one that has threads cannot fork.
    """

    def __init__(
        self, begin: Begin, jobs: int, chunk: int, silence_seconds: float, method: str = "fork"
    ) -> None:
        self._begin, self._jobs, self._chunk = begin, jobs, chunk
        self._silence_seconds = silence_seconds
        self._context = get_context(method)

    def run(
        self, tally: Tally, numbers: Iterator[int], enough: Callable[[Tally], bool]
    ) -> Iterator[Tally]:
        """Serve `numbers` until `enough`; the tally after each message."""
        start = time.monotonic()
        workers = [self._start() for _ in range(self._jobs)]
        again: list[int] = []
        try:
            for worker in workers:
                self._feed(worker, numbers, again)
            while any(worker.busy for worker in workers):
                ready = wait([worker.line for worker in workers], timeout=1.0)
                for index, worker in enumerate(workers):
                    done = worker.line in ready and self._hear(worker, tally)
                    late = time.monotonic() - worker.heard > self._silence_seconds
                    if worker.busy and (done is None or (worker.line not in ready and late)):
                        kind = HANG if done is not None else DEATH
                        workers[index] = worker = self._replace(worker, kind, tally, again)
                        done = True
                    if done and not enough(tally):
                        self._feed(worker, numbers, again)
                    elif done:
                        worker.busy = False
                tally.seconds = time.monotonic() - start
                yield tally
                if enough(tally):
                    return
        finally:
            for worker in workers:
                self._end(worker)

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(self._begin, theirs))
        process.start()
        theirs.close()
        return _Worker(process, ours, heard=time.monotonic())

    def _feed(self, worker: _Worker, numbers: Iterator[int], again: list[int]) -> None:
        chunk, again[:] = again[: self._chunk], again[self._chunk :]
        chunk = chunk or list(itertools.islice(numbers, self._chunk))
        worker.waiting, worker.busy = chunk, bool(chunk)
        worker.at, worker.heard = None, time.monotonic()
        if chunk:
            worker.line.send(chunk)

    def _hear(self, worker: _Worker, tally: Tally) -> bool | None:
        """Whether its chunk is done; None where the process is no more."""
        worker.heard = time.monotonic()
        try:
            while worker.line.poll():
                said = worker.line.recv()
                if said is None:
                    return True
                if isinstance(said, FuzzerError):
                    raise said
                if isinstance(said, Outcome):
                    tally.add(said)
                    worker.waiting.remove(said.number)
                else:
                    worker.at = said
        except (EOFError, OSError):
            return None
        return False

    def _replace(self, worker: _Worker, kind: str, tally: Tally, again: list[int]) -> _Worker:
        """A new process; the case that the old one was at is its finding."""
        worker.process.kill()
        worker.process.join()
        status = worker.process.exitcode
        if worker.waiting:
            blamed = worker.at if worker.at in worker.waiting else worker.waiting[0]
            why = f"the process ended ({status})" if kind == DEATH else ""
            tally.add(Outcome(blamed, kind, why))
            again += [number for number in worker.waiting if number != blamed]
        worker.line.close()
        return self._start()

    def _end(self, worker: _Worker) -> None:
        worker.line.close()
        worker.process.join(0.2)
        if worker.process.is_alive():
            worker.process.terminate()
        worker.process.join()
