"""Options and small fixtures that all tests share."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support.json_page import problems
from toolchain.cli import _output
from toolchain.cli._command import Command
from toolchain.cli._commands import COMMANDS
from toolchain.cli._leaving import RAISE_VARIABLE
from toolchain.cli._output import numbered

settings.register_profile("thimble", max_examples=100, deadline=None)  # a busy machine is no defect
settings.register_profile("long", max_examples=300, deadline=None)
settings.load_profile("thimble")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--litert-runs",
        type=int,
        default=30,
        help="random configurations of each operator kind to compare with LiteRT",
    )
    parser.addoption(
        "--update-goldens", action="store_true", help="rewrite the golden texts under tests/"
    )


@pytest.fixture
def litert_runs(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--litert-runs"))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run share: each puts things there by a rename."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _internal_errors_are_raised() -> Iterator[None]:
    """No test passes over an error that nobody foresaw, in a command of its own process either."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(RAISE_VARIABLE, "1")
        yield


@pytest.fixture(scope="session", autouse=True)
def _documents_are_those_of_the_page() -> Iterator[None]:
    """Every document that --json writes in a test is one that docs/json.md describes."""
    command = "thimble boards"  # the one group that writes, too
    invoke = Command.invoke

    def invoked(self: Command, context: Any) -> Any:
        nonlocal command
        before, command = command, context.command_path
        try:
            return invoke(self, context)
        finally:
            command = before

    def checked(value: Mapping[str, Any]) -> dict[str, Any]:
        document = numbered(value)
        if not value or "json_version" in value:
            return document  # what an error is added to: it was checked
        named = f"thimble {command}" if command in COMMANDS else command
        wrong = problems(named, json.loads(json.dumps(document)))
        assert not wrong, f"docs/json.md, {named}: {'; '.join(wrong)}"
        return document

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Command, "invoke", invoked)
        patch.setattr(_output, "numbered", checked)
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_measurements(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tests neither read nor change what the user has measured. Tables are as wide as in a file."""
    file = tmp_path_factory.mktemp("measurements") / "measurements.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        patch.setenv("THIMBLE_MEASUREMENTS", str(file))
        yield file
