"""The models that these tests run. The plugin itself comes with the installed package."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.bench.pytest_plugin import BENCH_MODE
from toolchain.resources import EXAMPLES

SUFFIXES = (".tflite", ".onnx")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--models",
        type=Path,
        default=EXAMPLES,
        metavar="DIR",
        help="every model file below it is run on every board that it fits",
    )


def _sticks(config: pytest.Config) -> int:
    mode = config.pluginmanager.get_plugin(BENCH_MODE)
    return int(mode.bench.sticks) if mode is not None else 0


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A bench without sticks has no tests of them, skipped ones included."""
    return True if collection_path.name == "test_sticks.py" and not _sticks(config) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "sticks" in metafunc.fixturenames:
        count = _sticks(metafunc.config)
        metafunc.parametrize("sticks", [count], ids=[f"sticks-{count}"])
    if "model" in metafunc.fixturenames:
        folder: Path = metafunc.config.getoption("--models")
        files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
        metafunc.parametrize("model", files, ids=lambda path: str(path.stem))
