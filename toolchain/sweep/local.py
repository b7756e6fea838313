"""Processes of this machine as workers: each runs one job at a time, and a dead one is replaced."""

from __future__ import annotations

import contextlib
import multiprocessing
import platform
import signal
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Self

from toolchain.errors import InputError
from toolchain.sweep.jobs import End, Ended, Job

_PATIENCE_SECONDS = 1.0
_LEAVING_SECONDS = 2.0


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    line: Connection
    key: str = ""
    """The job that it runs; '' while it is idle."""


class LocalPool:
    """`count` worker processes, started when there is work for them. Use as a context manager."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise InputError(f"{count} worker processes: there must be at least one")
        self._count = count
        self._context = multiprocessing.get_context("spawn")  # nothing of the parent is shared
        self._workers: list[_Worker] = []
        self._idle: deque[_Worker] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.line.close()  # one that is idle leaves by itself
            if worker.key:
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join(_LEAVING_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers.clear()
        self._idle.clear()

    def slots(self) -> int:
        return self._count

    def submit(self, job: Job) -> None:
        while self._idle:
            worker = self._idle.popleft()
            if self._given(worker, job):
                return
            self._forget(worker)  # died while it was idle
        worker = self._started()
        if not self._given(worker, job):
            self._forget(worker)
            raise InputError("worker processes end as soon as they start")

    def wait(self) -> Sequence[Ended]:
        busy = {worker.line: worker for worker in self._workers if worker.key}
        return [self._heard(busy[line]) for line in wait(list(busy), _PATIENCE_SECONDS)]  # type: ignore[index]

    def _given(self, worker: _Worker, job: Job) -> bool:
        try:
            worker.line.send((job.call, job.arguments))
        except OSError:
            return False
        worker.key = job.key
        return True

    def _heard(self, worker: _Worker) -> Ended:
        """The end of a worker's job; the line of a dead worker is at its end."""
        key, where = worker.key, f"{platform.node()}:{worker.process.pid}"
        try:
            value = worker.line.recv()
        except (EOFError, OSError):
            self._forget(worker)
            return Ended(key, End.DIED, where=where)
        worker.key = ""
        self._idle.append(worker)
        return Ended(key, End.DONE, value, where)

    def _started(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs,), daemon=False)
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _forget(self, worker: _Worker) -> None:
        worker.line.close()
        worker.process.join(_LEAVING_SECONDS)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        self._workers.remove(worker)


def _work(line: Connection) -> None:
    """A worker: calls and answers, until the line is closed. Ctrl-C is the parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):
        while True:
            call, arguments = line.recv()
            line.send(call(*arguments))
