"""What a release is checked for, and the files that tell of it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from toolchain.cli._commands import load
from toolchain.version import DATE, DISTRIBUTION, __version__

ROOT = Path(__file__).resolve().parents[2]
release = import_module("scripts.release")
CHANGES = f"# Changes\n\n## {__version__} ({DATE})\n\n- All.\n"
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
TAGS = [f"v{__version__}", "another"]


def test_a_release_lacks_nothing_where_all_is_there() -> None:
    assert release.missing(CHANGES, CITATION, "", TAGS) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ((CHANGES.replace(DATE, "not yet released"), CITATION, "", TAGS), "CHANGELOG.md has no"),
        ((CHANGES, CITATION.replace(__version__, "0.0"), "", TAGS), f"say 'version: {__version__}"),
        ((CHANGES, CITATION, " M README.md\n?? x\n", TAGS), "2 files are not as committed, among"),
        ((CHANGES, CITATION, "", ["another"]), f"the commit has no tag v{__version__}"),
    ],
)
def test_a_release_says_what_it_lacks(changed: tuple[str, str, str, list[str]], said: str) -> None:
    (lack,) = release.missing(*changed)
    assert said in lack


def test_the_commands_of_the_readme_are_ones_that_thimble_takes() -> None:
    lines = release.commands((ROOT / "README.md").read_text(encoding="utf-8"))
    names = [line.split()[1] for line in lines]
    assert {"plan", "compile", "verify", "boards", "export", "edgetpu"} <= set(names)
    for line, name in zip(lines, names, strict=True):
        command = load(name)
        if name == "edgetpu":
            command = command.commands[line.split()[2]]
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<= )--?[a-z][\w-]*", line)) <= known, line


def test_sums_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"wheel")
    (tmp_path / "a.tar.gz").write_bytes(b"sdist")
    (tmp_path / release.SUMS).write_text(release.sums(tmp_path), encoding="ascii")
    check = ["sha256sum", "--check", "--strict", release.SUMS]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "a.tar.gz: OK\nb.whl: OK\n"


def test_templates_of_issues_ask_for_the_installation() -> None:
    asked = "thimble --version; thimble doctor --json -"
    forms = [*(ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")]
    texts = [*(ROOT / ".gitlab/issue_templates").glob("*.md")]
    assert [file.stem for file in sorted(forms)] == [file.stem for file in sorted(texts)]
    assert all(asked in file.read_text(encoding="utf-8") for file in (*forms, *texts))


def test_another_package_toolchain_is_named(tmp_path: Path) -> None:
    other = tmp_path / "toolchain"
    other.mkdir()
    (other / "__init__.py").write_text("__version__ = '7'\n")
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import thimble.__main__"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: Thimble's package `toolchain` is hidden by another")
    assert str(other) in last and f"install {DISTRIBUTION} into a virtual environment" in last
