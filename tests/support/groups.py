"""Operators in groups, whose C is one program: a compiler's start costs as much as a kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def groups(kinds: Iterable[str], size: int) -> list[list[str]]:
    """The kinds by name, `size` at a time."""
    ordered = sorted(kinds)
    return [ordered[i : i + size] for i in range(0, len(ordered), size)]


def first_and_last(kinds: Sequence[str]) -> str:
    """A group's name in pytest."""
    return f"{kinds[0]}..{kinds[-1]}"
