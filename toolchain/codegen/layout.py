"""Breaks long lines of generated C after a comma, as clang-format would."""

from __future__ import annotations

import re

LINE_WIDTH = 110
_DEEPEST_INDENT = 60
_QUOTES = "\"'"
_CODE = re.compile(r"\s*(/\*\w+=\*/)?[^\s*/#]")
"""The first word of a line of code, which may be a named argument."""


def wrap(text: str) -> str:
    """The text with every line of code that is too long broken. Comments and directives stay."""
    return "\n".join(piece for line in text.split("\n") for piece in _wrapped(line))


def _wrapped(line: str) -> list[str]:
    pieces: list[str] = []
    indents: tuple[int, ...] = (len(line) - len(line.lstrip()),)
    while len(line) > LINE_WIDTH and _CODE.match(line):
        cut, indents = _break(line, indents)
        if not cut:
            break
        pieces.append(line[:cut])
        line = " " * indents[-1] + line[cut:].lstrip()
    return [*pieces, line]


def _break(line: str, indents: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Where to end the line, and the indents of its rest; 0 where it has no good place.

    That is the last comma on the page that lies in the fewest brackets. `indents`: the indent
    outside of all brackets, then that inside of each bracket that is open where the line begins,
    outermost first.
    """
    opened = list(indents)
    best: tuple[int, tuple[int, ...]] = (0, indents)
    quote = ""
    for column, character in enumerate(line[:LINE_WIDTH]):
        if quote:
            quote = "" if character == quote and line[column - 1] != "\\" else quote
        elif character in _QUOTES:
            quote = character
        elif character in "([{":
            deep = column + 1 > _DEEPEST_INDENT
            opened.append(indents[0] + 4 if deep else column + 1)
        elif character in ")]}":
            opened = opened[:-1] if len(opened) > 1 else opened
        elif character == "," and (not best[0] or len(opened) <= len(best[1])):
            best = (column + 1, tuple(opened))
    return best
