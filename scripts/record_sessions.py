#!/usr/bin/env python3
"""Records docs/sessions.md: runs the commands of its `console` blocks, and writes what they print.

    scripts/record_sessions.py [--check] [SESSION ...]

A session is a heading of the page, named by its number. Its commands run one after another in a
folder of its own, which has the checkout's `docs` and `examples`, and `resnet.tflite` where it is
named. `--check` writes nothing: it ends with 1 where a command does not end with 0 (or `echo $?`
does not follow it), or prints other lines than the page has, but for what varies (`VARIES`).
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PAGE = ROOT / "docs" / "sessions.md"
VARIES = (
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:s|seconds)\b(?: \(\d+:\d\d:\d\d\))?"), "<seconds>"),
    (re.compile(r"\b\d+ skipped, \d+ warnings?\b"), "<skipped>"),
)
"""What differs from run to run, and the word for it."""
SECONDS_OF_A_COMMAND = 900
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## (?=\d+\. )", re.MULTILINE)


class Step(NamedTuple):
    """A command as it is typed, lines after a `\\` included, and the lines that it prints."""

    command: str
    output: str


def steps(block: str) -> list[Step]:
    """The commands of a block. Raises ValueError for a line of output before the first one."""
    found: list[Step] = []
    continued = False
    for line in block.splitlines():
        if continued or line.startswith("$ "):
            text = line.removeprefix("> ") if continued else line.removeprefix("$ ")
            if continued:
                found[-1] = Step(f"{found[-1].command}\n{text}", "")
            else:
                found.append(Step(text, ""))
            continued = text.endswith("\\")
        elif found:
            found[-1] = Step(found[-1].command, f"{found[-1].output}{line}\n")
        else:
            raise ValueError(f"no command printed this: {line!r}")
    return found


def block(written: Sequence[Step]) -> str:
    """Steps as a block of the page, without its fences."""
    typed = (step.command.replace("\\\n", "\\\n> ") for step in written)
    return "".join(f"$ {line}\n{step.output}" for line, step in zip(typed, written, strict=True))


def sessions(page: str) -> dict[str, list[Step]]:
    """The steps of all blocks of each session, by its number."""
    return {
        part.partition(".")[0]: [step for text in _BLOCK.findall(part) for step in steps(text)]
        for part in _HEADING.split(page)[1:]
    }


def stable(text: str) -> str:
    """`text` with words for what varies."""
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return text


def large_network() -> bytes:
    """A residual network of 18 MiB, with seeded weights: more than two Edge TPUs cache."""
    from tests.support.tflite_writer import tflite_bytes
    from toolchain.contact.network import Network
    from toolchain.ops.arithmetic.activation import Activation

    net = Network("resnet", (1, 160, 160, 3))
    relu = Activation.RELU
    x = net.conv(net.input, 64, 7, 4, relu)
    for channels, blocks in ((128, 1), (256, 4), (448, 4)):
        for number in range(blocks):
            stride = 1 if number else 2
            y = net.conv(net.conv(x, channels, 3, stride, relu), channels, 3)
            x = net.add(y, x if number else net.conv(x, channels, 1, stride), relu)
    return tflite_bytes(net.classifier(x, 1000))


def surroundings(commands: Path) -> dict[str, str]:
    """The environment of a session, whose `thimble` and `python` are put into `commands`.

    The user's measurements are left out: plans are those of a first visit.
    """
    for name, words in (("thimble", "-m toolchain.cli "), ("python", "")):
        file = commands / name
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        file.chmod(0o755)
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return {
        **outside,
        "COLUMNS": "132",
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "THIMBLE_MEASUREMENTS": str(commands / "measurements.sqlite"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
    }


def run(session: list[Step], say: Callable[[str], None]) -> list[Step]:
    """The same commands with what they print now, standard error included.

    Raises RuntimeError for a command that does not end with 0 where `echo $?` does not follow it.
    """
    with tempfile.TemporaryDirectory() as outside:
        folder, commands = Path(outside) / "session", Path(outside) / "commands"
        folder.mkdir()
        commands.mkdir()
        for name in ("docs", "examples"):
            (folder / name).symlink_to(ROOT / name)
        if any("resnet.tflite" in step.command for step in session):
            (folder / "resnet.tflite").write_bytes(large_network())
        environment = surroundings(commands)
        found, status = [], 0
        for step, after in zip(session, [*session[1:], Step("", "")], strict=True):
            say(f"$ {step.command}")
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", f"(exit {status})\n{step.command}"],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS_OF_A_COMMAND,
                check=False,
            )
            status = done.returncode
            if status and after.command != "echo $?":
                raise RuntimeError(f"{step.command} ended with {status}:\n{done.stdout}")
            text = done.stdout.replace(f"{folder}/", "").replace(str(ROOT), "~/thimble")
            lines = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
            found.append(Step(step.command, lines))
        return found


def differences(written: list[Step], found: list[Step]) -> str:
    """How the stable lines of these steps differ; empty where they do not."""
    return "\n".join(
        difflib.unified_diff(
            stable(block(written)).splitlines(),
            stable(block(found)).splitlines(),
            "docs/sessions.md",
            "now",
            lineterm="",
        )
    )


def rewritten(page: str, found: dict[str, list[Step]]) -> str:
    """`page` with these steps in the blocks of their sessions."""
    before, *parts = _HEADING.split(page)
    texts = [before]
    for part in parts:
        rest = iter(found.get(part.partition(".")[0], ()))

        def filled(match: re.Match[str], rest: Iterator[Step] = rest) -> str:
            own = [next(rest, step) for step in steps(match[1])]
            return f"```console\n{block(own)}```"

        texts.append("## " + _BLOCK.sub(filled, part))
    return "".join(texts)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("session", nargs="*", help="numbers of sessions; default: all")
    arguments = parser.parse_args()
    written = sessions(PAGE.read_text(encoding="utf-8"))
    differ = False
    for number in arguments.session or written:
        found = run(written[number], lambda text: print(text, flush=True))
        if arguments.check:
            told = differences(written[number], found)
            differ |= bool(told)
            print(told)
        else:
            page = PAGE.read_text(encoding="utf-8")
            PAGE.write_text(rewritten(page, {number: found}), encoding="utf-8")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
