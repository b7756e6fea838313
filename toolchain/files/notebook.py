"""A value where one looks at it: some lines at a prompt, a card in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from toolchain.files import templates

_PICTURE = 640, 160
"""Width and height of an arena, in pixels."""


@dataclass(frozen=True)
class Span:
    """A buffer in a picture: bytes from `offset_bytes` on, during the half-open steps."""

    name: str
    start: int
    end: int
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True)
class Card:
    """The kind of a value and its title; facts, a name and a text each; the arena, if it has one.

    `rows`: a table, headings first.
    """

    kind: str
    title: str
    facts: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...] = ()
    spans: tuple[Span, ...] = ()
    height_bytes: int = 0

    @property
    def text(self) -> str:
        """A line for each fact."""
        lines = [f"{self.kind} {self.title}", *(f"  {name}: {text}" for name, text in self.facts)]
        return "\n".join(lines)

    @property
    def html(self) -> str:
        """A fragment that loads nothing and has no script."""
        steps = max((span.end for span in self.spans), default=1)
        template = templates.page_environment().get_template("card.html.j2")
        return template.render(card=self, steps=steps, width=_PICTURE[0], height=_PICTURE[1])


class Told(ABC):
    """A value with a card: its repr is the card's text, and notebooks show the card."""

    @abstractmethod
    def card(self) -> Card:
        """The card of this value."""

    def __repr__(self) -> str:
        return self.card().text

    def _repr_html_(self) -> str:
        return self.card().html
