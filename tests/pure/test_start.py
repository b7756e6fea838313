"""What is imported at start, by the modules that a child process has loaded. Nothing is timed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.cli import _commands

ROOT = Path(__file__).resolve().parents[2]
CLI = ROOT / "toolchain" / "cli"
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
LIGHT = {"toolchain", "thimble"}
OF_COMMANDS = {"typer", "annotated_doc", "shellingham"}
OF_TABLES = {"rich", "pygments", "markdown_it", "mdurl", "unicodedata2", "attr"}
OF_OPTIONS = {"pydantic", "pydantic_core", "typing_extensions", "typing_inspection"} | {
    "annotated_types"
}
"""What typer needs to read the options of a command line."""
OF_NUMBERS = {"numpy"}
OF_PYTEST = {"pytest", "_pytest", "pluggy", "iniconfig", "packaging", "py"}
RUN = "from toolchain.cli import run\nassert run({!r}) == 0\n"
EVERY_MODULE = """
import importlib, pkgutil, toolchain
for module in pkgutil.walk_packages(toolchain.__path__, "toolchain."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def loaded(code: str) -> tuple[set[str], set[str]]:
    """Packages of others, and our modules, that Python loads for `code` and not by itself."""
    text = f"""
import sys
before = set(sys.modules)
{code}
import json
print("\\n" + json.dumps(sorted(set(sys.modules) - before)))
"""
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=True,
    )
    names = json.loads(done.stdout.splitlines()[-1])
    packages = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    others = {name for name in packages - LIGHT if not name.startswith("_") or name == "_pytest"}
    return others, {name for name in names if name.partition(".")[0] in LIGHT}


def test_the_package_is_light() -> None:
    packages, ours = loaded("import thimble")
    assert not packages
    assert ours == {"thimble", "toolchain", "toolchain.version"}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_is_light(option: str) -> None:
    packages, ours = loaded(RUN.format([option]))
    assert packages <= OF_COMMANDS | OF_TABLES | OF_OPTIONS
    assert not [
        name for name in ours if name.count(".") > 1 and not name.startswith("toolchain.cli._")
    ]


@pytest.mark.slow
def test_a_plan_is_light() -> None:
    packages, ours = loaded(RUN.format(["plan", str(DIGITS), "-b", "netduinoplus2"]))
    assert packages <= OF_COMMANDS | OF_TABLES | OF_OPTIONS | OF_NUMBERS
    assert "toolchain.planner" in ours
    assert not [name for name in ours if name.startswith(("toolchain.edgetpu", "toolchain.cli.co"))]


@pytest.mark.slow
def test_help_of_plan_needs_no_planner() -> None:
    packages, ours = loaded(RUN.format(["plan", "--help"]))
    assert packages <= OF_COMMANDS | OF_TABLES | OF_OPTIONS | OF_NUMBERS
    assert "toolchain.planning.options" in ours
    assert not ours & {"toolchain.planner", "toolchain.passes", "toolchain.codegen"}


def test_the_pytest_plugin_is_light() -> None:
    packages, ours = loaded("import toolchain.bench.pytest_plugin")
    assert packages <= OF_PYTEST | {"pygments"}
    assert {name for name in ours if name.count(".")} == {
        "toolchain.bench",
        "toolchain.bench.pytest_plugin",
        "toolchain.version",
    }


@pytest.mark.slow
def test_no_module_imports_a_heavy_package_at_start() -> None:
    """Not even one that only some command needs: its `--help` is to be quick, too."""
    packages, _ = loaded(EVERY_MODULE)
    assert packages <= OF_COMMANDS | OF_TABLES | OF_OPTIONS | OF_NUMBERS | OF_PYTEST


def test_the_list_of_commands_is_that_of_the_files() -> None:
    files = {file.stem for file in CLI.glob("*.py") if not file.stem.startswith("_")}
    assert list(_commands.COMMANDS) == sorted(files)


@pytest.mark.parametrize("name", _commands.COMMANDS)
def test_the_list_of_commands_says_what_each_says(name: str) -> None:
    """Help shows a command by the first line of its own help."""
    assert _commands.load(name).help.splitlines()[0] == _commands.COMMANDS[name]
