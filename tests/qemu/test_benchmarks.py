"""Every command under `benchmarks/` starts, in the smallest forms that it names itself.

A command has a constant `SMALLEST`: command lines of a few seconds each, together through as much
of it as that allows. `{shared}` stands for the folder of models beside the checkout, `{scratch}`
for an empty folder.
"""

from __future__ import annotations

import ast
import importlib
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
FILES = tuple(sorted((ROOT / "benchmarks").rglob("*.py")))
CONSTANT = "SMALLEST"
TOOLS = ("brevitas", "keras", "litert_torch", "tensorflow", "tf2onnx", "tf_keras", "torch")
"""Those of `benchmarks/ecosystem/`, which have environments of their own."""


def module(file: Path) -> str:
    """Its dotted name."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def is_command(file: Path) -> bool:
    """Does it do something when it is started?"""
    return any(
        isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"
        for node in ast.parse(file.read_text(encoding="utf-8")).body
    )


def smallest(file: Path) -> Sequence[str]:
    """The value of its constant; none where it has none."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == CONSTANT:
            return tuple(ast.literal_eval(node.value))
    return ()


def private_names(file: Path) -> list[str]:
    """The underscore modules and names of `toolchain` that it imports."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [alias.name for alias in getattr(node, "names", ()) if hasattr(alias, "name")]
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        found += [n for n in names if n.startswith("toolchain.") and "._" in n]
    return found


COMMANDS = tuple(filter(is_command, FILES))
FORMS = [(file, form) for file in COMMANDS for form in smallest(file)]
KEPT = ("arena", "edgetpu", "verify", "zoo")
"""The quickest, one or two forms of each: planning, a board, and what is read from papers."""
STARTED = [
    pytest.param(file, form, marks=() if file.stem in KEPT else pytest.mark.long)
    for file, form in FORMS
]


@pytest.mark.parametrize("file", COMMANDS, ids=module)
def test_each_command_names_its_smallest_form(file: Path) -> None:
    assert smallest(file), f"{file.relative_to(ROOT)} has no constant {CONSTANT}"


@pytest.mark.parametrize("file", FILES, ids=module)
def test_no_private_name_of_the_toolchain_is_taken(file: Path) -> None:
    assert not private_names(file)


def test_a_private_name_is_found(tmp_path: Path) -> None:
    file = tmp_path / "taken.py"
    file.write_text("def f():\n    from toolchain.files import _folders, write_file\n")
    assert private_names(file) == ["toolchain.files._folders"]


@pytest.mark.parametrize(("file", "form"), STARTED, ids=[f"{module(f)} {o}" for f, o in FORMS])
def test_each_command_starts(file: Path, form: str, tmp_path: Path) -> None:
    if "{shared}" in form and not SHARED.is_dir():
        pytest.skip("no folder of models beside the checkout")
    options = shlex.split(form.format(shared=SHARED, scratch=tmp_path))
    name = module(file).removesuffix(".__main__")
    done = subprocess.run(
        [sys.executable, "-m", name, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", [f for f in FILES if f not in COMMANDS], ids=module)
def test_what_commands_share_can_be_imported(file: Path) -> None:
    try:
        importlib.import_module(module(file).removesuffix(".__init__"))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in TOOLS:
            raise
        pytest.skip(f"{error.name} is not installed")
