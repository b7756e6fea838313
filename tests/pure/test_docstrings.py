"""Docstrings say the noun first: no sentence opens with a word that leaves it to be guessed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "toolchain"
ROOMS = sorted(
    path.stem
    for path in PACKAGE.iterdir()
    if path.suffix == ".py" or (path / "__init__.py").is_file()
)
WORDS = r"(Of|Those|What|The same)\b"
OPENER = re.compile(rf"[\s(\"'-]*{WORDS}")
BETWEEN = re.compile(r"(?<=[.!?:])\s+|\n\s*(?=\n|- |\d\. )")


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring, those behind constants and fields included."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def openings(source: str) -> Iterator[str]:
    """Sentences of docstrings that open so, each behind the line where its docstring begins."""
    if not re.search(WORDS, source):
        return
    for line, text in docstrings(source):
        for sentence in BETWEEN.split(text):
            if OPENER.match(sentence):
                yield f"{line}: {' '.join(sentence.split())}"


@pytest.mark.parametrize("room", ROOMS)
def test_no_sentence_leaves_its_noun_to_be_guessed(room: str) -> None:
    files = [*PACKAGE.glob(f"{room}.py"), *sorted((PACKAGE / room).rglob("*.py"))]
    guessed = [
        f"{file.relative_to(PACKAGE)}:{opening}"
        for file in files
        for opening in openings(file.read_text(encoding="utf-8"))
    ]
    assert files and not guessed, "\n".join(guessed)


@pytest.mark.parametrize(
    "text",
    [
        "Of the total.",
        "Sizes in bytes. Those of banks come first.",
        "Sizes in bytes.\n\nThe same for people.",
        "A row.\n\n- What is shown.",
        "Sizes (what they are). (Of the total.)",
    ],
)
def test_a_sentence_that_opens_so_is_told(text: str) -> None:
    for source in (f'"""{text}"""', f'def f():\n    """{text}"""', f'A = 1\n"""{text}"""'):
        assert len(list(openings(source))) == 1


def test_such_words_elsewhere_are_allowed() -> None:
    assert not list(openings('"""Sizes of those banks, as `What` has them. Same as `Of`."""'))
    assert not list(openings('A = "Of no docstring."'))
