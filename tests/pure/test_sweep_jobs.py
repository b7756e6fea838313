"""The dispatcher and the pool of processes: each job once, whatever dies."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from toolchain.errors import InputError
from toolchain.sweep.jobs import MOST_DEATHS, Dispatcher, End, Ended, Job, run
from toolchain.sweep.local import LocalPool


def called(number: int, unit: str = "") -> tuple[int, str]:
    return number * number, unit


def job(number: int, needs: str = "") -> Job:
    return Job(f"job {number}", called, (number,), needs)


@pytest.mark.parametrize("seed", range(5))
def test_units_are_held_by_one_job_and_every_job_ends_once(seed: int) -> None:
    """At random: jobs end, their workers die, all workers are lost, and are heard twice."""
    rng = random.Random(seed)
    units = {"a": ["a1"], "b": ["b1", "b2"]}
    jobs = [job(number, rng.choice(["", "a", "b"])) for number in range(60)]
    dispatcher, running, over = Dispatcher(jobs, units), {}, Counter[str]()
    while not dispatcher.is_over:
        while len(running) < 8 and (begun := dispatcher.begin()) is not None:
            assert begun.key not in running
            running[begun.key] = begun
            assert (len(begun.arguments) == 2) == bool(begun.needs)
        held = [each.arguments[1] for each in running.values() if each.needs]
        assert len(held) == len(set(held))
        assert set(held) <= {"a1", "b1", "b2"}
        assert dispatcher.running == len(running)
        if len(running) < 8:  # what waits cannot begin
            waiting = [each for each in jobs if each.key not in running and not over[each.key]]
            free = {each for name in units for each in units[name]} - set(held)
            assert not any(not each.needs or free & set(units[each.needs]) for each in waiting)
        key = rng.choice(list(running))
        del running[key]
        end = rng.choices([End.DONE, End.DIED, End.LOST], [8, 1, 1])[0]
        result = dispatcher.end(Ended(key, end, "value", "here"))
        assert dispatcher.end(Ended(key, End.DONE, "twice")) is None
        if result is not None:
            over[result.job.key] += 1
            assert result.died == (end is End.DIED)
    assert over == Counter(each.key for each in jobs)


def test_a_job_that_kills_workers_is_given_up() -> None:
    dispatcher = Dispatcher([job(1)], {})
    for death in range(1, MOST_DEATHS + 1):
        assert dispatcher.begin() is not None
        result = dispatcher.end(Ended("job 1", End.DIED, where="there"))
        assert (result is None) == (death < MOST_DEATHS)
    assert result is not None
    assert result.died
    assert result.where == "there"
    assert dispatcher.is_over


def test_what_is_lost_is_not_held_against_a_job() -> None:
    dispatcher = Dispatcher([job(1)], {})
    for _ in range(3 * MOST_DEATHS):
        assert dispatcher.begin() is not None
        assert dispatcher.end(Ended("job 1", End.LOST)) is None
    assert dispatcher.begin() is not None
    assert dispatcher.end(Ended("job 1", End.DONE, 1)) is not None


def deadly(file: str, number: int) -> int:
    """Kills its worker the first time; `number` 0 does each time."""
    with Path(file).open("a", encoding="ascii") as marks:
        marks.write(f"{number}\n")
    if number == 0 or (number == 3 and Path(file).read_text(encoding="ascii").count("3\n") == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


@pytest.mark.slow
def test_a_dead_worker_costs_its_job_alone(tmp_path: Path) -> None:
    marks = str(tmp_path / "marks")
    jobs = [Job(str(number), deadly, (marks, number)) for number in range(8)]
    with LocalPool(2) as pool:
        results = {result.job.key: result for result in run(jobs, pool)}
    begun = Counter(Path(marks).read_text(encoding="ascii").split())
    assert begun == {"0": MOST_DEATHS, "3": 2} | {str(n): 1 for n in (1, 2, 4, 5, 6, 7)}
    assert results["0"].died
    values = {key: result.value for key, result in results.items() if not result.died}
    assert values == {str(n): n * n for n in range(1, 8)}


def endless(number: int) -> int:
    """Its worker's process, or never anything."""
    while number:
        signal.pause()
    return os.getpid()


def test_workers_end_with_their_pool() -> None:
    jobs = [Job(str(number), endless, (number,)) for number in range(3)]
    with LocalPool(2) as pool:
        first = next(iter(run(jobs, pool)))
    with pytest.raises(ProcessLookupError):
        os.kill(first.value, 0)


def test_a_pool_has_workers() -> None:
    with pytest.raises(InputError, match="at least one"):
        LocalPool(0)
