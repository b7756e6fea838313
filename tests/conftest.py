"""Options and small fixtures that all tests share."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--litert-runs",
        type=int,
        default=60,
        help="random configurations of each operator kind to compare with LiteRT",
    )
    parser.addoption(
        "--update-goldens", action="store_true", help="rewrite the golden texts under tests/"
    )


@pytest.fixture
def litert_runs(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--litert-runs"))
