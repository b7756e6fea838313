"""What `thimble sweep` gains from workers and costs for each task, and what a thousand would do.

    .venv/bin/python -m benchmarks.workers [--tasks 48] [--workers 1 2 4] [--dask] [--json FILE]

`speed-up`: plans of the digits model in several budgets of RAM, which need a core each, and tasks
that wait half a second, as those that run on boards do. `overhead`: tasks that do nothing, through
the dispatcher, a pool and the file of rows. `--dask` does the same on a cluster of processes of
this machine, over TCP. `candidates`: networks that `thimble.evaluate` estimates in a second on one
core: float MobileNetV2s of other widths. `simulated`: the dispatcher with a thousand workers by a
clock that is only counted; what it costs itself for a task is what was measured, alone and with the
last pool of Dask, and one worker in a thousand tasks dies.
"""

from __future__ import annotations

import argparse
import heapq
import random
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._results import json_option, write_results  # noqa: E402
from benchmarks.zoo_mobile import mobilenet_v2  # noqa: E402
from benchmarks.zoo_network import in_float  # noqa: E402
from toolchain.planning.options import PlanOptions  # noqa: E402
from toolchain.sweep.candidates import evaluate  # noqa: E402
from toolchain.sweep.cluster import DaskPool  # noqa: E402
from toolchain.sweep.jobs import End, Ended, Job, Pool, run  # noqa: E402
from toolchain.sweep.local import LocalPool  # noqa: E402
from toolchain.sweep.store import Store  # noqa: E402
from toolchain.sweep.sweep import Request, planned, sweep  # noqa: E402
from toolchain.sweep.work import Done  # noqa: E402

SMALLEST = ("--tasks 2 --workers 1",)
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
BOARD = "nucleo-u575zi-q"
PORT = 8796
_WAIT_SECONDS = 0.5
_NOTHINGS = 1000
_THOUSAND, _DEATHS = 1000, 0.001
_TASK_SECONDS = (0.05, 0.5, 5.0, 60.0)


def waited(seconds: float) -> None:
    time.sleep(seconds)


def nothing() -> None:
    """A task without work."""


@dataclass(frozen=True)
class Speed:
    """Seconds of the same tasks on so many workers."""

    pool: str
    workers: int
    plans_seconds: float
    waiting_seconds: float
    overhead_ms: float


def seconds_of(pool: Pool, jobs: Sequence[Job]) -> float:
    """Of all of them, workers that have been started beforehand."""
    begin = time.perf_counter()
    done = sum(not result.died for result in run(jobs, pool))
    assert done == len(jobs)
    return time.perf_counter() - begin


def speed(name: str, pool: Pool, workers: int, tasks: int) -> Speed:
    """`tasks` plans and as many tasks that wait, and a thousand that do nothing."""
    warm = [Job(f"warm {n}", waited, (1.0,)) for n in range(workers)]
    seconds_of(pool, warm)
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "rows.sqlite") as store:
        budgets = [
            (PlanOptions(ram_bytes=6000 + n), (("ram", str(6000 + n)),)) for n in range(tasks)
        ]
        wanted = planned(Request((DIGITS,), (BOARD,), ("plan",), tuple(budgets)))
        for_warmth = planned(Request((DIGITS,), (BOARD,), ("plan",), ((PlanOptions(), ()),)))
        for _ in range(workers):
            sweep(for_warmth, store, pool, again=True)
        swept = sweep(wanted, store, pool)
        assert not swept.failed
        waits = [Job(f"wait {n}", waited, (_WAIT_SECONDS,)) for n in range(tasks)]
        waiting = seconds_of(pool, waits)
        case, done = wanted.cases[0], Done({}, None, final=True, seconds=0.0)
        begin = time.perf_counter()
        for _ in run([Job(f"none {n}", nothing, ()) for n in range(_NOTHINGS)], pool):
            store.put(case, done)
        overhead = time.perf_counter() - begin
    return Speed(name, workers, swept.seconds, waiting, 1000 * overhead / _NOTHINGS)


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """A Dask scheduler and so many worker processes here."""
    address = f"tcp://127.0.0.1:{PORT}"
    dask, quiet = [sys.executable, "-m", "dask"], subprocess.DEVNULL
    lines = [["scheduler", "--host", "127.0.0.1", "--port", str(PORT), "--no-dashboard"]]
    lines += [["worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]] * workers
    started = [
        subprocess.Popen(dask + line, cwd=ROOT, stdout=quiet, stderr=quiet) for line in lines
    ]
    try:
        yield address
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def overhead_here() -> float:
    """Seconds of the dispatcher and the file of rows for a task, whatever the pool costs."""

    class Instant:
        def __init__(self) -> None:
            self._jobs: list[str] = []

        def slots(self) -> int:
            return 2 * _THOUSAND

        def submit(self, job: Job) -> None:
            self._jobs.append(job.key)

        def wait(self) -> Sequence[Ended]:
            ended, self._jobs = [Ended(key, End.DONE) for key in self._jobs], []
            return ended

    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "rows.sqlite") as store:
        (case,) = planned(Request((DIGITS,), (BOARD,), ("plan",), ((PlanOptions(), ()),))).cases
        jobs = [Job(str(n), nothing, ()) for n in range(_NOTHINGS)]
        begin = time.perf_counter()
        for _ in run(jobs, Instant()):
            store.put(case, Done({}, None, final=True, seconds=0.0))
        return (time.perf_counter() - begin) / _NOTHINGS


@dataclass(frozen=True)
class Simulated:
    """A thousand workers: the share of their time that is work, and tasks a second."""

    task_seconds: float
    own_ms: float
    busy_share: float
    tasks_a_second: float


class Counted:
    """A pool of workers by a clock that is counted. What the scheduler's side does for a task takes
    `own_seconds` of it, one task after another.
    """

    def __init__(self, workers: int, task_seconds: float, own_seconds: float, seed: int) -> None:
        self._rng = random.Random(seed)
        self._workers, self._idle = workers, workers
        self._task_seconds, self._own_seconds = task_seconds, own_seconds
        self._queue: deque[Job] = deque()
        self._ends: list[tuple[float, int, Job]] = []
        self._number = 0
        self.now = 0.0

    def slots(self) -> int:
        return 2 * self._workers

    def submit(self, job: Job) -> None:
        self._queue.append(job)
        self._begin()

    def wait(self) -> Sequence[Ended]:
        at, _, job = heapq.heappop(self._ends)
        self.now = max(self.now, at) + self._own_seconds
        self._idle += 1
        self._begin(at)
        end = End.DIED if self._rng.random() < _DEATHS else End.DONE
        return [Ended(job.key, end)]

    def _begin(self, at: float | None = None) -> None:
        """A worker that is idle takes what waits for it, at once."""
        if self._idle and self._queue:
            self._idle -= 1
            self._number += 1
            seconds = self._task_seconds * self._rng.lognormvariate(-0.125, 0.5)  # of mean 1
            begun = self.now if at is None else at
            heapq.heappush(self._ends, (begun + seconds, self._number, self._queue.popleft()))


def simulated(task_seconds: float, own_seconds: float) -> Simulated:
    """Twenty tasks for each of a thousand workers."""
    tasks = 20 * _THOUSAND
    pool = Counted(_THOUSAND, task_seconds, own_seconds, seed=1)
    done = sum(
        not result.died for result in run([Job(str(n), nothing, ()) for n in range(tasks)], pool)
    )
    rate = done / pool.now
    return Simulated(task_seconds, 1000 * own_seconds, rate * task_seconds / _THOUSAND, rate)


def candidates(width: float, size: int, count: int) -> tuple[float, float]:
    """A second, on one core: float networks whose widths differ, and as many after them. The first
    of them share few layers with what was estimated before.
    """
    rng = random.Random(0)
    networks = [
        in_float(mobilenet_v2(f"n{n}", width * rng.uniform(0.8, 1.2), size, 10))
        for n in range(2 * count)
    ]
    rates = []
    for some in (networks[:count], networks[count:]):
        begin = time.process_time()
        for network in some:
            evaluate(network, BOARD)
        rates.append(count / (time.process_time() - begin))
    return rates[0], rates[1]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=48)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--dask", action="store_true")
    json_option(parser)
    given = parser.parse_args()
    speeds = []
    for workers in given.workers:
        with LocalPool(workers) as pool:
            speeds.append(speed("processes", pool, workers, given.tasks))
    for workers in given.workers if given.dask else ():
        with ExitStack() as stack:
            address = stack.enter_context(cluster(workers))
            cluster_pool = stack.enter_context(DaskPool(address))
            speeds.append(speed("Dask", cluster_pool, workers, given.tasks))
    own = overhead_here()
    sides = [own, *(one.overhead_ms / 1000 for one in speeds[-1:] if given.dask)]
    thousand = [simulated(seconds, side) for side in sides for seconds in _TASK_SECONDS]
    sizes = ((0.35, 96), (0.5, 128), (1.0, 224))
    rates = {f"{w:g}, {s}x{s}": candidates(w, s, max(2, given.tasks)) for w, s in sizes}
    _print(speeds, thousand, rates)
    found = {"speeds": speeds, "simulated": thousand, "candidates": rates}
    write_results(given.json, found)
    return 0


def _print(
    speeds: Sequence[Speed], thousand: Sequence[Simulated], rates: dict[str, tuple[float, float]]
) -> None:
    console = Console(width=120)
    table = Table("pool", "workers", "plans, s", "waiting, s", "overhead a task, ms")
    for one in speeds:
        seconds = (one.plans_seconds, one.waiting_seconds, one.overhead_ms)
        table.add_row(one.pool, str(one.workers), *(f"{value:,.2f}" for value in seconds))
    console.print(table)
    table = Table("MobileNetV2", "first candidates a second", "later ones")
    for name, (first, later) in rates.items():
        table.add_row(name, f"{first:,.1f}", f"{later:,.1f}")
    console.print(table)
    table = Table("a task takes, s", "our side, ms", "1,000 workers are busy", "tasks a second")
    for each in thousand:
        share, rate = f"{each.busy_share:.1%}", f"{each.tasks_a_second:,.0f}"
        table.add_row(f"{each.task_seconds:g}", f"{each.own_ms:.2f}", share, rate)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
