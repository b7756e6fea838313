"""The workers of a Dask cluster that is there: `thimble sweep --dask tcp://scheduler:8786`.

Dask sends a job to a worker, begins it on another when that dies (four times at most), and tells
what became of it. When the
scheduler goes down, what was under way is lost; this pool waits for it (or another one at the same
address) and the jobs are submitted again.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from toolchain.errors import LinkError, MissingToolError
from toolchain.packages import DASK, lazy
from toolchain.progress import Report, silent
from toolchain.sweep.jobs import MOST_DEATHS, End, Ended, Job, Shared

if TYPE_CHECKING:
    import distributed
else:
    distributed = lazy("distributed", DASK)

_IN_ADVANCE = 2
"""Jobs for each thread of the cluster, so that none waits for the next."""
_CONNECT_SECONDS = 10.0
_PATIENCE_SECONDS = 0.5
_ASK_SECONDS = 1.0
_AWAY_SECONDS = 600.0
"""How long a scheduler may be away, and a cluster without workers."""
_LARGE_BYTES = 100_000
_FAILED = "error"


class DaskPool:
    """The cluster at an address. Use as a context manager.

    Raises LinkError where no scheduler answers, or for ten minutes none does any more.
    """

    def __init__(
        self, address: str, report: Report = silent, connect_seconds: float = _CONNECT_SECONDS
    ) -> None:
        self._address = address
        self._report = report
        self._ended: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        self._futures: dict[str, Any] = {}
        self._data: dict[str, Any] = {}
        self._threads, self._answers = 0, True
        self._asked, self._had_workers = 0.0, time.monotonic()
        self._client = self._connected(connect_seconds)
        handlers = logging.getLogger("distributed").handlers
        self._levels = [(handler, handler.level) for handler in handlers]

    def __enter__(self) -> Self:
        for handler, _ in self._levels:  # `_report` tells of a lost scheduler
            handler.setLevel(logging.CRITICAL + 1)
        return self

    def __exit__(self, *_: object) -> None:
        futures, self._futures = list(self._futures.values()), {}
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            self._client.cancel(futures, force=True)
        self._close()
        for handler, level in self._levels:
            handler.setLevel(level)

    def slots(self) -> int:
        """Asks the scheduler for its threads once a second. Raises LinkError where it has had no
        worker for ten minutes.
        """
        while True:
            if time.monotonic() > self._asked + _ASK_SECONDS:
                self._ask()
            if self._threads or self._futures:
                return max(_IN_ADVANCE * self._threads, len(self._futures))
            if self._is_away:
                self._lost()
            self._report("waiting for workers")
            time.sleep(_PATIENCE_SECONDS)

    def submit(self, job: Job) -> None:
        """The job's bytes of a hundred kB and more go to the cluster once, whatever they serve."""
        try:
            arguments = tuple(self._sent(value) for value in job.arguments)
            future = self._client.submit(
                _called, job.call, *arguments, key=f"thimble-{job.key}", pure=False
            )
        except OSError:  # the scheduler is gone: `wait` finds out
            self._futures[job.key] = None
            return
        self._futures[job.key] = future
        future.add_done_callback(lambda done, key=job.key: self._ended.put((key, done)))

    def wait(self) -> Sequence[Ended]:
        try:
            done_jobs = [self._ended.get(timeout=_PATIENCE_SECONDS)]
        except queue.Empty:
            return self._lost() if self._is_away else []
        while not self._ended.empty():
            done_jobs.append(self._ended.get())
        heard = [self._heard(key, done) for key, done in done_jobs]
        return [ended for ended in heard if ended is not None]

    @property
    def _is_away(self) -> bool:
        """Whether the scheduler is gone: the line to it is cut, or it does not answer."""
        return not self._answers or self._client.status != "running"

    def _ask(self) -> None:
        """How many threads the cluster has now, and whether its scheduler answers."""
        self._threads, self._answers = 0, False
        if self._client.status == "running":
            with contextlib.suppress(OSError, TimeoutError):
                threads = self._client.nthreads(callback_timeout=_CONNECT_SECONDS)
                self._threads, self._answers = sum(threads.values()), True
        self._asked = time.monotonic()
        if self._threads:
            self._had_workers = self._asked
        elif self._asked > self._had_workers + _AWAY_SECONDS:
            raise LinkError(f"the Dask scheduler at {self._address} has had no workers for 10 min")

    def _sent(self, value: Any) -> Any:
        """The reference by which workers read a value: large data lie on the scheduler, so that no
        worker's death loses them.
        """
        if not isinstance(value, Shared) or len(value.data) < _LARGE_BYTES:
            return value
        if value.key not in self._data:
            self._data[value.key] = self._client.submit(
                Shared, value.key, value.data, key=f"thimble-data-{value.key}", pure=False
            )
        return self._data[value.key]

    def _heard(self, key: str, done: Any) -> Ended | None:
        if self._futures.get(key, self) is not done:
            return None  # its scheduler is gone
        del self._futures[key]
        if done.status == "finished":
            where, value = done.result()
            return Ended(key, End.DONE, value, where)
        if done.status == _FAILED:
            error = done.exception()
            if not isinstance(error, distributed.scheduler.KilledWorker):
                raise MissingToolError(
                    f"a worker of {self._address} cannot run jobs of this Thimble "
                    f"({type(error).__name__}: {error}): install the same version there"
                ) from error
            return Ended(key, End.DIED, where=error.last_worker.address, deaths=MOST_DEATHS)
        return Ended(key, End.LOST)

    def _lost(self) -> Sequence[Ended]:
        """All jobs that were under way, as lost, once a scheduler is back."""
        self._close()
        self._client = self._connected(_AWAY_SECONDS)
        self._asked, self._answers = 0.0, True
        lost, self._futures, self._data = list(self._futures), {}, {}
        return [Ended(key, End.LOST) for key in lost]

    def _connected(self, seconds: float) -> Any:
        deadline = time.monotonic() + seconds
        while True:
            try:
                return distributed.Client(
                    self._address, timeout=min(seconds, _CONNECT_SECONDS), set_as_default=False
                )
            except (OSError, ValueError) as error:
                if time.monotonic() > deadline or isinstance(error, ValueError):
                    raise LinkError(
                        f"no Dask scheduler answers at {self._address}: {error}"
                    ) from error
            self._report("waiting for the scheduler")
            time.sleep(_PATIENCE_SECONDS)

    def _close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            self._client.close(timeout=_PATIENCE_SECONDS)


def _called(call: Callable[..., Any], *arguments: Any) -> tuple[str, Any]:
    """Run a call on a worker; return the worker's address and the call's result."""
    return distributed.get_worker().address, call(*arguments)
