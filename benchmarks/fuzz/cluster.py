"""Chunks of cases on the workers of a Dask cluster, by the engine of `thimble sweep`.

In a worker each chunk has a process of its own, so that a case that dies or hangs ends that process
and not the worker. Workers that a nanny started may have none: `dask worker --no-nanny`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.fuzz.outcome import Tally
from benchmarks.fuzz.pool import Pool, Serve
from toolchain.sweep import jobs
from toolchain.sweep.jobs import Job

_AHEAD = 4
"""Chunks for each slot of the workers, in a round."""
_LONGER = 5
"""Times the chunk of a process here: each begins with a new process."""


def chunk_tally(
    serve: Callable[..., Serve],
    tally: Tally,
    place: dict[str, str],
    numbers: range,
    silence_seconds: float,
) -> Tally:
    """On a worker: the cases of these numbers, counted in `tally`."""
    pool = Pool(partial(serve, tally.seed, **place), 1, len(numbers), silence_seconds, "spawn")
    for _ in pool.run(tally, iter(numbers), lambda _: False):
        pass
    return tally


def run(
    serve: Callable[..., Serve],
    tally: Tally,
    place: dict[str, str],
    numbers: Iterator[int],
    chunk: int,
    silence_seconds: float,
    workers: jobs.Pool,
    enough: Callable[[Tally], bool],
) -> Iterator[Tally]:
    """As `pool.Pool.run`. A chunk whose workers all died is begun again by none: RuntimeError."""
    begin = time.monotonic()
    first, chunk = next(numbers), _LONGER * chunk
    for number in itertools.count():
        made = []
        for _ in range(_AHEAD * workers.slots()):
            given = (serve, Tally(tally.level, tally.seed), place, range(first, first + chunk))
            key = f"fuzz-{tally.level}-{tally.seed}-{first}-{chunk}-{number}"
            made.append(Job(key, chunk_tally, (*given, silence_seconds)))
            first += chunk
        for result in jobs.run(made, workers):
            if result.died:
                raise RuntimeError(f"the workers died over {result.job.key}")
            tally.merge(result.value)
            tally.seconds = time.monotonic() - begin
            yield tally
            if enough(tally):
                return
