"""A fixed share of the fuzzer: what it must never find, and what it once found."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks.fuzz.__main__ import fuzz
from benchmarks.fuzz.cases import Case, case
from benchmarks.fuzz.invented import learned
from benchmarks.fuzz.minimise import minimised
from benchmarks.fuzz.outcome import (
    ACCEPTED,
    ANSWERED,
    EQUAL,
    FINDINGS,
    PLANNED,
    REFUSED,
    TRACEBACK,
    WRONG,
    Outcome,
    Tally,
)
from benchmarks.fuzz.pool import FuzzerError, Pool, Serve
from benchmarks.fuzz.reading import read_outcome
from benchmarks.fuzz.running import outcomes_in_c

CORPUS = sorted((Path(__file__).resolve().parents[1] / "corpus").glob("*.*"))
CORPUS_BYTES = 300_000

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def found(tally: Tally) -> str:
    return "\n".join(f"{f.kind}: {f.where}: {f.numbers}" for f in tally.findings.values())


@pytest.mark.parametrize(
    ("level", "cases", "kind"),
    [
        ("read", 400, ACCEPTED),
        ("plan", 40, PLANNED),
        ("c", 30, EQUAL),
        ("split", 5, EQUAL),
        pytest.param("read", 30_000, ACCEPTED, marks=pytest.mark.long),
        pytest.param("plan", 1000, PLANNED, marks=pytest.mark.long),
        pytest.param("c", 300, EQUAL, marks=pytest.mark.long),
    ],
)
def test_nothing_is_found(level: str, cases: int, kind: str) -> None:
    tally = fuzz(level, seed=1, cases=cases)
    assert not tally.failed, found(tally)
    assert tally.counts[kind] >= cases // 5
    assert tally.counts[REFUSED] >= cases // 5 or level == "split"


@pytest.mark.parametrize(("level", "cases"), [("devices", 1000), ("files", 60)])
def test_lies_and_damage_end_in_a_message(level: str, cases: int) -> None:
    tally = fuzz(level, seed=1, cases=cases)
    assert not tally.failed, found(tally)
    assert tally.counts[ANSWERED] == cases
    assert len(tally.reasons) > 10


def test_files_get_the_names_that_passes_invent() -> None:
    """A dead channel's constant, a part of a rewritten convolution, a block of a split one."""
    names = {name for i in (2, 3, 30) for way in (0, 1) for name in learned(f"network/{i}", way)}
    assert any(" of conv2d" in name for name in names)
    assert any("/part" in name for name in names)
    assert any("[" in name for name in names)


def test_past_finds_end_well() -> None:
    """Each is refused, or its C gives the reference's bytes."""
    cases = [Case(i, p.name, p.suffix, p.read_bytes()) for i, p in enumerate(CORPUS)]
    assert sum(len(case.data) for case in cases) < CORPUS_BYTES
    bad = [(c.start, o) for c, o in zip(cases, outcomes_in_c(cases), strict=True)]
    assert not [pair for pair in bad if pair[1].kind in FINDINGS]


def test_a_case_is_the_same_file_every_time() -> None:
    for number in range(0, 300, 7):
        assert case(3, number) == case(3, number)
    assert case(3, 1).data != case(4, 1).data
    assert len({case(3, number).start for number in range(200)}) > 100


def pool_of(outcomes: dict[int, str]) -> Tally:
    """A run of twelve cases, some of which end their process, hang, or raise."""

    def begin() -> Serve:
        def serve(numbers: Sequence[int], begun: Callable[[int], None]) -> Iterator[Outcome]:
            for number in numbers:
                begun(number)
                how = outcomes.get(number, "")
                if how == "death":
                    os.kill(os.getpid(), signal.SIGKILL)
                if how == "hang":
                    signal.pause()
                if how == "broken":
                    raise KeyError(number)
                yield Outcome(number, how or ACCEPTED)

        return serve

    tally = Tally("test", 0)
    pool = Pool(begin, jobs=2, chunk=3, silence_seconds=5.0)
    for _ in pool.run(tally, iter(range(12)), lambda tally: tally.cases >= 12):
        pass
    return tally


def test_deaths_and_hangs_are_told_and_the_rest_goes_on() -> None:
    tally = pool_of({4: "death", 8: "hang", 9: TRACEBACK, 10: WRONG})
    assert tally.cases == 12 and tally.counts[ACCEPTED] == 8
    numbers = {kind: finding.numbers for (kind, _), finding in tally.findings.items()}
    assert numbers == {"death": [4], "hang": [8], "traceback": [9], "wrong": [10]}


def test_a_failure_of_the_fuzzer_is_no_find() -> None:
    with pytest.raises(FuzzerError, match="KeyError"):
        pool_of({5: "broken"})


def test_minimised_files_end_the_same_way_and_are_smaller() -> None:
    """Of cases that are refused for one operator among several."""
    done = 0
    for number in range(400):
        start = case(5, number)
        outcome, _ = read_outcome(start)
        if outcome.kind != REFUSED or "has N scales" not in outcome.where:
            continue
        smaller = minimised(
            start.data,
            start.suffix,
            lambda data, start=start: read_outcome(Case(0, "x", start.suffix, data))[0],
        )
        again, _ = read_outcome(Case(0, "x", start.suffix, smaller))
        assert (again.kind, again.where) == (outcome.kind, outcome.where)
        assert len(smaller) <= len(start.data)
        done += len(smaller) < len(start.data)
        if done == 2:
            return
    pytest.fail("no such case")
