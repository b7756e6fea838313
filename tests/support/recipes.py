"""The recipes of docs/architecture.md, and copies of the checkout in which they are followed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
COPIED = ("toolchain", "templates", "runtime_c", "boards", "docs")
LINKED = ("examples", "tests", "LICENSE")
_SHOWN = re.compile(
    r"^`(?P<file>[^`\n]+)`"
    r"(?:, behind `(?P<behind>[^`\n]+)`|, which is `(?P<like>[^`\n]+)` but for these lines)?"
    r":\n\n```\w+\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_REPLACED = re.compile(
    r"^`(?P<file>[^`\n]+)`: `(?P<old>[^`\n]+)` becomes `(?P<text>[^`\n]+)`\.$", re.MULTILINE
)
_COMMANDS = re.compile(r"^```\n((?:\$ .*\n)+)```$", re.MULTILINE)


@dataclass(frozen=True)
class Change:
    """A file of a recipe: new with `text`, but for the other fields.

    behind  the line of an existing file behind which `text` stands; behind an opening parenthesis
            `text` is an item, and a comma follows
    old     the text of an existing file that becomes `text`
    like    the TOML file that the new one is like, but for the lines of `text`
    """

    file: str
    text: str
    behind: str = ""
    old: str = ""
    like: str = ""

    @property
    def is_new(self) -> bool:
        return not (self.behind or self.old)

    def make(self, checkout: Path) -> None:
        file = checkout / self.file
        assert file.exists() is not self.is_new, self.file
        file.parent.mkdir(exist_ok=True)
        file.write_text(self._whole(checkout), encoding="utf-8")

    def _whole(self, checkout: Path) -> str:
        if self.like:
            return _merged((checkout / self.like).read_text(encoding="utf-8"), self.text)
        if self.is_new:
            return self.text
        text = (checkout / self.file).read_text(encoding="utf-8")
        before = self.old or f"{self.behind}\n"
        assert text.count(before) == 1, f"{self.file} has {text.count(before)} times {before}"
        item = f"{self.text.rstrip()},\n" if self.behind.endswith("(") else self.text
        return text.replace(before, item if self.old else before + item)


def _merged(base: str, lines: str) -> str:
    """`base` with each entry of `lines` in place of its own in the same section."""
    begin = 0
    for line in lines.splitlines():
        if line.startswith("["):
            begin = base.index(f"{line}\n")
        elif line:
            key = line.partition(" = ")[0]
            rest, found = re.subn(rf"^{key} = .*$", line, base[begin:], count=1, flags=re.M)
            assert found, f"no line {key}"
            base = base[:begin] + rest
    return base


@dataclass(frozen=True)
class Recipe:
    """`section`: all of its text. The first command is refused without the changes."""

    title: str
    section: str
    changes: tuple[Change, ...]
    commands: tuple[tuple[str, ...], ...]

    @property
    def files(self) -> frozenset[str]:
        """Files that the recipe changes, those that its commands write included."""
        named = re.findall(r"--markdown (\S+)", " ".join(map(shlex.join, self.commands)))
        return frozenset((*(change.file for change in self.changes), *named))

    @property
    def needs_arm(self) -> bool:
        """Whether a compiler for Arm builds what it adds."""
        return any("compile" in command and "host" not in command for command in self.commands)


def _recipes() -> Iterator[Recipe]:
    _, _, adding = PAGE.partition("\n## Adding a thing\n")
    for section in adding.split("\n### ")[1:]:
        found = [*_SHOWN.finditer(section), *_REPLACED.finditer(section)]
        changes = tuple(
            Change(**{name: text or "" for name, text in match.groupdict().items()})
            for match in found
        )
        lines = "".join(_COMMANDS.findall(section)).splitlines()
        commands = tuple(tuple(shlex.split(line[2:])) for line in lines)
        if changes:
            yield Recipe(section.partition("\n")[0], section, changes, commands)


RECIPES = tuple(_recipes())


def copy_of_the_checkout(folder: Path, recipes: Iterable[Recipe] = ()) -> Path:
    """A copy in which the recipes were followed, as far as models are read, compiled and run."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    for recipe in recipes:
        for change in recipe.changes:
            change.make(folder)
    return folder


def differing(one: Path, other: Path) -> frozenset[str]:
    """Paths of the files of a copy that another copy has not, or has otherwise."""
    copied = (file for name in COPIED for file in (one / name).rglob("*") if file.is_file())
    pairs = ((file, other / file.relative_to(one)) for file in copied)
    return frozenset(
        file.relative_to(one).as_posix()
        for file, twin in pairs
        if file.parent.name != "__pycache__"
        and not (twin.is_file() and twin.read_bytes() == file.read_bytes())
    )


def run_python(checkout: Path, program: str) -> list[str]:
    """The lines that a program prints which imports the copy."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def exit_codes(checkout: Path, commands: Sequence[Sequence[str]]) -> list[int]:
    """Codes of commands that run in the copy one by one: of `thimble`, by its code; of `make`."""
    program = (
        "import json, subprocess, toolchain.cli\n"
        "def code(command):\n"
        "    if command[0] == 'thimble':\n"
        "        return toolchain.cli.run(command[1:])\n"
        "    return subprocess.run(command, stdout=subprocess.DEVNULL).returncode\n"
        f"print(json.dumps([code(one) for one in {[list(one) for one in commands]}]))"
    )
    found: list[int] = json.loads(run_python(checkout, program)[-1])
    return found
