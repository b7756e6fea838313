"""Tables in narrow terminals: whole columns go and are named; nothing is shortened."""

from __future__ import annotations

from io import StringIO

from hypothesis import given, settings
from hypothesis import strategies as st

from toolchain.cli._console import Plain
from toolchain.report.width import Shown

NUMBERS = st.integers(0, 10**9).map(lambda number: f"{number:,} B")
NAMES = st.text("abcdefghij_/", min_size=1, max_size=60)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(NAMES, NUMBERS, NUMBERS, NUMBERS, NAMES, NUMBERS), min_size=1, max_size=4),
    st.integers(40, 140),
)
def test_columns_go_whole(rows: list[tuple[str, ...]], width: int) -> None:
    headings = ("name", "first", "second", "third", "kind", "fourth")
    table = Shown(first_to_go=("second", "kind"))
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("name", "kind") else "right")
    for row in rows:
        table.add_row(*row)
    console = Plain(width=width, record=True, file=StringIO())
    console.print(table)
    text = console.export_text()
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert all(len(line) <= width for line in text.splitlines())
    caption = " ".join(text.split()).partition("left out for want of width: ")[2]
    gone = caption.split(", ") if caption else []
    shown = [heading for heading in headings if heading in text.splitlines()[1].split()]
    assert sorted([*gone, *shown]) == sorted(headings) and shown[0] == "name"
    assert not gone or gone[0] == "second"
    for row in rows:
        for heading, cell in zip(headings, row, strict=True):
            assert heading in ("name", "kind", *gone) or cell in text
