"""Values at a prompt are a few lines; in a notebook they are a card with the arena."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from thimble import PlanOptions, plan_model
from toolchain.files.notebook import Card, Span

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"


class Elements(HTMLParser):
    """The names of a fragment's elements; each that is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_plan_is_some_lines_and_a_picture() -> None:
    plan = plan_model(DIGITS, "nucleo-f446re", PlanOptions(fast=True))
    text, html = repr(plan), plan._repr_html_()
    assert text.startswith("Plan digits_int8 on nucleo-f446re\n") and len(text) < 500
    assert f"{plan.arena.size_bytes:,} B" in text and f"{plan.arena.size_bytes:,} B" in html
    assert Elements(html).names.count("rect") == len(plan.arena.offsets)
    assert len(repr(plan.graph)) < 200 and "11 operators" in repr(plan_model(DIGITS, "host").graph)


def test_names_of_strangers_are_text() -> None:
    spans = (Span('<b>"&', 0, 2, 0, 8), Span("y", 1, 3, 8, 8))
    card = Card("Plan", "<script>", (("a", "<i>"),), (("x", "y"), ("1", "2")), spans, 16)
    names = Elements(card.html).names
    assert not {"script", "i"} & set(names) and names.count("th") == 2 and names.count("rect") == 2
    assert card.text == "Plan <script>\n  a: <i>"
