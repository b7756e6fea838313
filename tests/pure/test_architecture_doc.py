"""docs/architecture.md: its examples run, its C is what is generated, its files register."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from toolchain.boards import board
from toolchain.codegen import generate
from toolchain.kernels import cmsis_nn
from toolchain.planner import plan_model

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ADDED = re.findall(
    r"^`([^`\n]+)`:\n\n```(?:python|toml)\n(.*?)^```\n\n```\n\$ thimble (.*?)\n```",
    TEXT,
    re.MULTILINE | re.DOTALL,
)
LIKE = "nucleo-f446re"


def test_the_examples_print_what_they_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", TEXT, re.DOTALL))
    parsed = doctest.DocTestParser().get_doctest(examples, {}, "architecture.md", None, 0)
    assert len(parsed.examples) > 30
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(parsed, out=told.append).failed == 0, "".join(told)


def test_the_c_is_what_is_generated() -> None:
    (shown,) = re.findall(r"```c\n(.*?)```", TEXT, re.DOTALL)
    plan = plan_model(ROOT / "examples" / "digits" / "digits_int8.tflite", board="netduinoplus2")
    made = generate(plan, board("netduinoplus2").core, cmsis_nn.find())
    assert shown in made.files["digits_int8.c"]


def test_the_rows_are_the_contract() -> None:
    rows = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| \d+ \| (.*?) \|", TEXT, re.M)]
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = contract["tool"]["importlinter"]["contracts"]
    (layers,) = (c["layers"] for c in contracts if c["containers"] == ["toolchain"])
    assert rows == [re.split(r" [|:] ", layer) for layer in layers]


def test_nothing_but_its_file_knows_the_operator_that_was_added() -> None:
    folders = [ROOT / name for name in ("toolchain", "templates", "runtime_c")]
    files = [f for folder in folders for f in folder.rglob("*") if f.suffix in (".py", ".j2", ".c")]
    known = {
        str(f.relative_to(ROOT))
        for f in files
        if "gather_nd" in f.read_text(encoding="utf-8").lower()
    }
    assert known == {
        "runtime_c/source/movement/thimble_gather_nd.c",
        "toolchain/ops/movement/gather.py",
        "toolchain/ops/movement/gather_nd.py",
        "toolchain/ops/movement/scatter_nd.py",
        "toolchain/frontends/tflite/shapes.py",
        "toolchain/frontends/tflite/versions.py",
    }


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout as far as commands need it."""
    copy = tmp_path / "checkout"
    for name in ("toolchain", "boards"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("templates", "runtime_c", "examples"):
        (copy / name).symlink_to(ROOT / name)
    return copy


def exit_codes(checkout: Path) -> list[int]:
    """Of all commands that are shown, run by the copy of the checkout."""
    commands = [shlex.split(command) for _, _, command in ADDED]
    code = (
        f"import json\nfrom toolchain.cli import run\nprint(json.dumps(list(map(run, {commands}))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: list[int] = json.loads(done.stdout.splitlines()[-1])
    return found


def whole(name: str, shown: str) -> str:
    """The text of a file; of a board the one that it is like, with the lines that differ."""
    if not name.endswith(".toml"):
        return shown
    text = (ROOT / "boards" / LIKE / "board.toml").read_text(encoding="utf-8")
    for line in shown.splitlines():
        key = line.partition(" = ")[0]
        section = text.index("[uart]") if key == "name" else 0
        rest, found = re.subn(rf"^{key} = .*$", line, text[section:], count=1, flags=re.M)
        assert found, f"{LIKE} has no line {key}"
        text = text[:section] + rest
    return text


@pytest.mark.slow
def test_the_presence_of_a_file_registers_it(checkout: Path) -> None:
    assert len(ADDED) == 5
    assert exit_codes(checkout) == [2] * 5
    for name, shown, _ in ADDED:
        file = checkout / name
        assert not file.exists()
        file.parent.mkdir(exist_ok=True)
        file.write_text(whole(name, shown), encoding="utf-8")
    assert exit_codes(checkout) == [0] * 5
    assert "| 0.00% | 2,368 B |" in (checkout / "front.md").read_text(encoding="utf-8")
