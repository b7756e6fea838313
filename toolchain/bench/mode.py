"""Bench mode: what a run of pytest with `--bench` does beside its tests."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from toolchain.bench.bench_file import Bench
from toolchain.errors import ThimbleError


class BenchMode:
    """The bench, its places while tests run, and whether anything has run."""

    def __init__(self, read: Bench) -> None:
        self.bench = read
        self.ran = 0
        self._places = ExitStack()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Places are reserved by the main process, for workers too."""
        if session.config.option.collectonly or hasattr(session.config, "workerinput"):
            return
        try:
            self._places.enter_context(self.bench.reserved())
        except ThimbleError as error:
            raise pytest.UsageError(str(error)) from error

    def pytest_unconfigure(self) -> None:
        self._places.close()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.ran += report.when == "call" and report.outcome != "skipped"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self.ran and not session.config.option.collectonly:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.ran:
            terminalreporter.write_line("nothing ran on the bench: that is a failure", red=True)
