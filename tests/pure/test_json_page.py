"""docs/json.md has a section for every command that writes JSON, and tells wrong documents.

Documents themselves are checked where tests write them (tests/conftest.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.json_page import PAGE, problems, sections
from toolchain.cli._commands import COMMANDS, load

NAMED = re.compile(r"\b[A-Z]\w+")
DOCUMENT = {"file": "a", "bytes": 5}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command and subcommand with its parameters."""
    for name in COMMANDS:
        loaded = load(name)
        yield f"thimble {name}", loaded
        for part, inner in getattr(loaded, "commands", {}).items():
            yield f"thimble {name} {part}", inner


@pytest.mark.slow
def test_every_command_with_json_is_on_the_page() -> None:
    writing = {
        name
        for name, command in commands()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert {name for name in sections() if name.startswith("thimble ")} == writing


def test_every_shape_is_used_and_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shapes = {name for name in sections() if not name.startswith("thimble ")}
    blocks = re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert {name for block in blocks for name in NAMED.findall(block)} == shapes


@pytest.mark.parametrize(
    ("document", "wrong"),
    [
        (DOCUMENT, []),
        ({"json_version": 1, **DOCUMENT}, []),
        ({"file": "a"}, [".bytes is missing"]),
        ({**DOCUMENT, "more": 1}, [".more is not on the page"]),
        ({**DOCUMENT, "bytes": "5"}, [".bytes: '5' is not int"]),
        ({**DOCUMENT, "bytes": True}, [".bytes: True is not int"]),
        ({"error": {"kind": "input", "message": "no", "exit_code": 2}}, []),
        ({"error": {"kind": "input", "message": "no"}}, [".error.exit_code is missing"]),
    ],
)
def test_a_wrong_document_is_told(document: dict[str, Any], wrong: list[str]) -> None:
    assert problems("thimble report", document) == wrong


def test_lists_alternatives_and_shapes_are_looked_into() -> None:
    plan = {
        "models": ["m"], "arrivals": "poisson", "span_ms": 1, "busy": {"stick 0": "all"},
        "backend": "cpu",
    }  # fmt: skip
    assert problems("thimble edgetpu run", plan) == [
        ".busy.stick 0: 'all' is not number",
        ".models[0]: 'm' is no object",
    ]
