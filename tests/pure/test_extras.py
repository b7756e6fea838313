"""A plain installation: what it lacks is named with the extra that brings it, and nothing fails."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from toolchain.packages import APART, EXTRAS, SOLVER
from toolchain.version import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
DIGITS_ONNX = ROOT / "examples" / "digits" / "digits_qdq.onnx"
OF_EXTRAS = sorted({package for extra in EXTRAS for package in extra.packages})
MODULES = {"pyelftools": "elftools", "pyserial": "serial", "vl-convert-python": "vl_convert"} | {
    "pillow": "PIL"
}
"""Of distributions that are named otherwise than their module."""
OF_TESTS = {"pytest"}


def plain(
    *arguments: str | Path, lacking: list[str] = OF_EXTRAS, folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """A command line where these packages are not found."""
    text = f"""
import sys

class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {lacking!r}:
            return self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(Hiding, sys.meta_path)
from toolchain.cli import run
sys.exit(run({[str(argument) for argument in arguments]!r}))
"""
    return subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "extra"),
    [
        (("plan", DIGITS_ONNX), "onnx"),
        (("verify", DIGITS, "--board", "host"), "verify"),
        (("quantize", DIGITS_ONNX, "--data", "x.npy", "-o", "y.onnx"), "quantize"),
        (("edgetpu", "split", DIGITS, "--stages", "2", "-o", "stages"), "edgetpu"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_command_names_the_extra_that_it_lacks(
    line: tuple[str | Path, ...], extra: str, tmp_path: Path
) -> None:
    done = plain(*line, folder=tmp_path)
    assert done.returncode == 2
    assert re.fullmatch(
        rf"error: the package \w+ is missing \(.+\): pip install 'thimble-nn\[{extra}\]'\n",
        done.stderr,
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_plan_is_the_same_without_extras() -> None:
    found = [
        json.loads(
            plain("plan", DIGITS, "-b", "netduinoplus2", "--json", "-", lacking=lacking).stdout
        )
        for lacking in (OF_EXTRAS, [])
    ]
    for each in found:
        del each["seconds"]
    assert found[0] == found[1]


@pytest.mark.slow
def test_doctor_lists_the_extras() -> None:
    findings = json.loads(plain("doctor", "--json", "-").stdout)["findings"]
    there = {finding["what"]: finding["found"] for finding in findings}
    assert {there[f"extra [{extra.name}]"] for extra in EXTRAS} == {None}
    findings = json.loads(plain("doctor", "--json", "-", lacking=["onnx"]).stdout)["findings"]
    lacks = [f for f in findings if f["what"].startswith("extra ") and f["found"] is None]
    assert [f["what"] for f in lacks] == ["extra [onnx]", "extra [quantize]"]
    assert lacks[0]["remedy"] == "pip install 'thimble-nn[onnx]'"


def _modules(requirements: list[str]) -> set[str]:
    """The modules that requirements bring."""
    names = [re.split(r"[<>=;\[ ]", requirement)[0] for requirement in requirements]
    return {MODULES.get(name, name.replace("-", "_")) for name in names}


def test_the_extras_are_those_of_the_project() -> None:
    declared = PROJECT["project"]["optional-dependencies"]
    names = [extra.name for extra in EXTRAS]
    others = [extra.name for extra in APART]
    assert set(declared) == {*names, *others, "all", "docs", "dev"}
    for extra in (*EXTRAS, *APART):
        assert set(extra.packages) == _modules(declared[extra.name]) - {"flatbuffers"}
    assert declared["all"] == [f"thimble-nn[{','.join(names)}]"]
    assert "thimble-nn[all]" in declared["dev"]


@pytest.mark.slow
def test_everything_that_is_imported_is_declared() -> None:
    declared = _modules(PROJECT["project"]["dependencies"])
    for extra in (*EXTRAS, *APART):
        declared |= _modules(PROJECT["project"]["optional-dependencies"][extra.name])
    imported = set()
    for file in (ROOT / "toolchain").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
    ours = {"toolchain", "thimble"}
    assert imported - sys.stdlib_module_names - ours - OF_TESTS <= declared


def test_no_link_of_the_wheel_s_readme_leads_into_the_checkout() -> None:
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = "".join(
        (ROOT / part["path"]).read_text(encoding="utf-8") if "path" in part else part["text"]
        for part in hook["fragments"]
    )
    assert "](docs/architecture.md)" in text
    for change in hook["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    assert "architecture and map (docs/architecture.md)" in text
    assert not [link for link in re.findall(r"\]\((.*?)\)", text) if "://" not in link]
    assert ".svg" not in text


def test_the_changes_of_this_version_are_listed() -> None:
    assert f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_cp_sat_is_left_alone_behind_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the process by a signal there; imported first, it works."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "ortools"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorflow", ModuleType("tensorflow"))
    assert SOLVER.missing == ("ortools",)
    assert SOLVER.absence == "is not used behind tensorflow: import ortools before it"
    monkeypatch.setitem(sys.modules, "ortools", ModuleType("ortools"))
    assert not SOLVER.missing
