"""The tests of `toolchain/bench/hil`, started from Python: what passed on which board."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.bench.bench_file import read_bench
from toolchain.errors import InputError
from toolchain.packages import BENCH, lazy
from toolchain.resources import EXAMPLES

if TYPE_CHECKING:
    import pytest
else:
    pytest = lazy("pytest", BENCH)

_TESTS = Path(__file__).with_name("hil")
_PLUGIN = "toolchain.bench.pytest_plugin"


@dataclass(frozen=True)
class BenchTest:
    """One test on one board. `outcome`: passed, failed or skipped; `why`: the last line of it."""

    name: str
    board: str
    outcome: str
    seconds: float
    why: str


@dataclass(frozen=True)
class BenchRun:
    """All tests of one run, in their order."""

    tests: tuple[BenchTest, ...]

    def count(self, outcome: str, board: str | None = None) -> int:
        """Tests that ended so, on one board or on all."""
        return sum(t.outcome == outcome and board in (None, t.board) for t in self.tests)

    @property
    def boards(self) -> tuple[str, ...]:
        """The labels of the boards, in the order of the bench."""
        return tuple(dict.fromkeys(test.board for test in self.tests))

    @property
    def passed(self) -> bool:
        """Whether something ran and nothing failed. A skipped test did not run."""
        return not self.count("failed") and bool(self.count("passed"))


@dataclass
class _Collector:
    """A plugin that keeps the worst report of each test: its set-up, its call, its clean-up."""

    boards: dict[str, str] = field(default_factory=dict)
    reports: dict[str, BenchTest] = field(default_factory=dict)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            params = getattr(getattr(item, "callspec", None), "params", {})
            self.boards[item.nodeid] = getattr(params.get("board"), "label", "")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        known = self.reports.get(report.nodeid)
        if known is not None and report.outcome == "passed":
            return
        if report.when != "call" and report.outcome == "passed":
            return
        said = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        lines = said.strip().splitlines()
        self.reports[report.nodeid] = BenchTest(
            report.nodeid.rpartition("::")[2],
            self.boards.get(report.nodeid, ""),
            report.outcome,
            round(report.duration, 3),
            lines[-1] if lines else "",
        )


def run_bench(
    bench: Path,
    *,
    models: Path = EXAMPLES,
    soak: int | None = None,
    select: str = "",
    junit: Path | None = None,
) -> BenchRun:
    """Run the tests of the line, of the firmware and of model files on every board of a bench.

    `models`: every .tflite and .onnx file below it runs on every board that it fits. `soak`:
    inferences of the soak test. `select`: pytest's `-k`. `junit`: a JUnit XML file to write.
    pytest tells its progress on standard error. Raises InputError for a bench file that is wrong
    or a selection without tests, MissingToolError without pytest.
    """
    read_bench(bench)
    if not models.exists():
        raise InputError(f"{models}: no such folder of models")
    collector = _Collector()
    arguments = [str(_TESTS), "--bench", str(bench.resolve()), "--models", str(models.resolve())]
    arguments += [
        "-q",
        "-rfs",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(_TESTS),
        "-c",
        os.devnull,
        "-o",
        "junit_family=xunit1",  # whose cases have properties
    ]
    arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # this command imported them
    arguments += [f"--soak={soak}"] if soak is not None else []
    arguments += ["-k", select] if select else []
    arguments += [f"--junitxml={junit.resolve()}"] if junit is not None else []
    if not _is_registered():
        arguments += ["-p", _PLUGIN]
    with contextlib.redirect_stdout(sys.stderr):
        status = pytest.main(arguments, plugins=[collector])
    if status == pytest.ExitCode.NO_TESTS_COLLECTED or not collector.reports:
        raise InputError(f"{bench}: no test was run" + (f" by {select!r}" if select else ""))
    return BenchRun(tuple(collector.reports.values()))


def _is_registered() -> bool:
    """Whether pytest loads the plugin by itself: an installed package has its entry point."""
    return any(entry.value == _PLUGIN for entry in entry_points(group="pytest11"))
