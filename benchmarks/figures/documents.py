"""Puts figures into the documents: tables and plots between marks, single values inline.

    <!-- figure: NAME.TABLE -->
    ...
    <!-- /figure -->

    ... an arena of <!--=NAME.VALUE-->28,076<!--/--> B ...

All marks are comments, so a page reads the same on a forge and on the site. An inline mark never
begins a line, where it would begin a block of HTML. Marks in fenced code are left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures.figure import DATA, ROOT, Figure, Kept, figures, load

BLOCK = re.compile(r"^<!-- figure: (\S+) -->\n.*?^<!-- /figure -->$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"<!--=(\S+?)-->(.*?)<!--/-->", re.DOTALL)
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LINE_BEGINS = re.compile(r"^[ \t]*<!--=", re.MULTILINE)


class DocumentError(Exception):
    """A mark that names no figure, or none that can be put there."""


def documents() -> list[Path]:
    """Pages that may hold figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rendered(text: str, page: Path) -> str:
    """The text of a page with its figures as the kept data has them. Raises DocumentError."""
    parts = _FENCED.split(text)
    return "".join(
        part if part.lstrip().startswith("```") else _filled(part, page) for part in parts
    )


def _filled(text: str, page: Path) -> str:
    if _LINE_BEGINS.search(text):
        raise DocumentError("a line begins with the mark of a value: begin it with a word")
    text = INLINE.sub(lambda found: f"<!--={found[1]}-->{value(found[1])}<!--/-->", text)
    if text.count("<!--=") != len(INLINE.findall(text)):
        raise DocumentError("the mark of a value has no end, <!--/-->")
    filled = BLOCK.sub(lambda found: _block(found[1], page), text)
    if text.count("<!-- figure: ") != len(BLOCK.findall(text)):
        raise DocumentError("the mark of a figure has no end, <!-- /figure -->")
    return filled


def _block(reference: str, page: Path) -> str:
    return f"<!-- figure: {reference} -->\n\n{block(reference, page)}\n\n<!-- /figure -->"


def _named(reference: str) -> tuple[Figure, Kept | None, str]:
    name, _, part = reference.partition(".")
    if name not in figures():
        raise DocumentError(f"there is no figure {name}")
    return figures()[name], load(figures()[name]), part


def block(reference: str, page: Path) -> str:
    """The table or plot NAME.PART as it stands on a page, and below it what it is of."""
    figure, kept, part = _named(reference)
    if part not in figure.tables and part not in figure.plots:
        raise DocumentError(f"figure {figure.name} has no table or plot {part}")
    if kept is None:
        return f"*Not run yet: `python -m benchmarks.figures {figure.name}`.*"
    if part in figure.tables:
        shown = figure.tables[part](kept.data)
    else:
        file = Path(os.path.relpath(DATA / f"{part}.svg", page.parent)).as_posix()
        shown = f"![{figure.plots[part].alt}]({file})"
    return f"{shown}\n\n{_of_what(figure, kept)}"


def _of_what(figure: Figure, kept: Kept) -> str:
    lines = tuple(figure.commands.values())
    alone = len(lines) == 1 and "{" not in lines[0] and len(lines[0]) < 60
    command = lines[0] if alone else f"figures {figure.name}"
    return f"*{kept.date}, commit {kept.commit}: `python -m benchmarks.{command}`*"


def value(reference: str) -> str:
    """The text NAME.VALUE."""
    figure, kept, part = _named(reference)
    if kept is None:
        raise DocumentError(f"figure {figure.name} was never run, so it has no value {part}")
    found = figure.values(kept.data)
    if part not in found:
        raise DocumentError(f"figure {figure.name} has no value {part}")
    return found[part]


def plots() -> Iterator[tuple[Path, str]]:
    """Files of plots, and what the kept data makes of them."""
    for figure in figures().values():
        kept = load(figure)
        for name, plot in figure.plots.items() if kept is not None else ():
            yield DATA / f"{name}.svg", plot.draw(kept.data)


def differing() -> Iterator[tuple[Path, str]]:
    """Documents and plots that are not what the kept data gives, and what it gives."""
    for page in documents():
        text = page.read_text(encoding="utf-8")
        try:
            fresh = rendered(text, page)
        except DocumentError as error:
            raise DocumentError(f"{page.relative_to(ROOT)}: {error}") from None
        if fresh != text:
            yield page, fresh
    for file, fresh in plots():
        if not file.exists() or file.read_text(encoding="utf-8") != fresh:
            yield file, fresh
