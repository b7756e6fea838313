"""docs/sessions.md: its commands are commands; run again, they print what the page shows."""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
from pathlib import Path

import pytest

from toolchain.cli._commands import load

ROOT = Path(__file__).resolve().parents[2]
record = importlib.import_module("scripts.record_sessions")
TEXT = record.PAGE.read_text(encoding="utf-8")
SESSIONS = record.sessions(TEXT)


def commands(step: str) -> list[list[str]]:
    """The words of each `thimble` of a command line."""
    lexer = shlex.shlex(step.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    parts: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|;&>"):
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part[:1] == ["thimble"]]


@pytest.mark.parametrize("number", SESSIONS)
def test_each_command_is_one(number: str) -> None:
    """With options that it has; but where the session shows how a wrong one is answered."""
    session = SESSIONS[number]
    checked = 0
    for step, after in zip(session, [*session[1:], None], strict=True):
        if after is not None and (after.command, after.output) == ("echo $?", "2\n"):
            assert re.search("^(error: |Usage: )", step.output.lstrip(), re.MULTILINE)
            continue
        for _, name, *arguments in commands(step.command):
            command, words = load(name), arguments
            if hasattr(command, "commands"):
                command, words = command.commands[arguments[0]], arguments[1:]
            with command.make_context(name, list(words)) as context:
                assert context.params
            checked += 1
    assert checked


def test_the_sessions_are_there_with_what_they_printed() -> None:
    titles = re.findall(r"^## (\d+\. .+)$", TEXT, re.MULTILINE)
    assert [title.partition(".")[0] for title in titles] == list(SESSIONS) == list("123456")
    assert all(any(step.output for step in steps) for steps in SESSIONS.values())


def test_a_recording_fills_the_blocks_of_its_session_alone() -> None:
    assert record.rewritten(TEXT, SESSIONS) == TEXT
    other = [step._replace(output="other\n") for step in SESSIONS["5"]]
    changed = record.sessions(record.rewritten(TEXT, {"5": other}))
    assert changed == {**SESSIONS, "5": other}


def test_another_line_or_code_is_found_and_other_seconds_are_not() -> None:
    def differ(first: str, second: str) -> str:
        return record.differences([record.Step("a", first)], [record.Step("a", second)])

    assert not differ("in 0.1 s, 3 B\n", "in 12 s, 3 B\n")
    assert not differ("8 passed in 9.50s\n", "8 passed in 77.00s (0:01:17)\n")
    assert "+in <seconds>, 4 B" in differ("in 0.1 s, 3 B\n", "in 1 s, 4 B\n")
    failing = [record.Step("false", ""), record.Step("echo $?", "")]
    assert record.run(failing, str)[1].output == "1\n"
    with pytest.raises(RuntimeError, match="false ended with 1"):
        record.run(failing[:1], str)


@pytest.mark.long
@pytest.mark.parametrize("number", SESSIONS)
def test_a_session_prints_what_the_page_shows(number: str) -> None:
    if not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    written = SESSIONS[number]
    assert record.differences(written, record.run(written, str)) == ""
