"""Long lines of generated C, broken after a comma as clang-format would break them."""

from __future__ import annotations

LINE_WIDTH = 110
_DEEPEST_INDENT = 60
_QUOTES = "\"'"


def wrap(text: str) -> str:
    """`text` with each line of code longer than the page broken; comments and directives as is."""
    return "\n".join(piece for line in text.split("\n") for piece in _wrapped(line))


def _wrapped(line: str) -> list[str]:
    pieces = []
    while len(line) > LINE_WIDTH and line.lstrip()[:1] not in ("*", "/", "#"):
        cut, indent = _break(line)
        if not cut:
            break
        pieces.append(line[:cut])
        line = " " * indent + line[cut:].lstrip()
    return [*pieces, line]


def _break(line: str) -> tuple[int, int]:
    """Where to end the line and how far to indent its rest; (0, 0) where it has no good place.

    The last comma on the page that lies in the fewest brackets.
    """
    indent = len(line) - len(line.lstrip())
    opened: list[int] = []
    best: tuple[int, int, int] | None = None
    quote = ""
    for column, character in enumerate(line[:LINE_WIDTH]):
        if quote:
            quote = "" if character == quote and line[column - 1] != "\\" else quote
        elif character in _QUOTES:
            quote = character
        elif character in "([{":
            opened.append(column + 1)
        elif character in ")]}":
            opened = opened[:-1]
        elif character == "," and (best is None or len(opened) <= best[0]):
            inside = opened[-1] if opened else indent
            inside = inside if inside <= _DEEPEST_INDENT else indent + 4
            best = (len(opened), column + 1, inside)
    return (0, 0) if best is None else best[1:]
