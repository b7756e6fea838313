"""How work that takes long reports what it is doing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

Found: TypeAlias = Sequence[tuple[int, float]]
"""Ways to split that a search found so far: peak in bytes, and slowdown as a fraction."""


class Report(Protocol):
    """A function that the work calls now and then, on its own thread."""

    def __call__(
        self,
        text: str,
        done: int | None = None,
        total: int | None = None,
        found: Found = (),
    ) -> None:
        """`text` says what is under way: "compiling".

        `done` of `total` parts of it are finished, parts of any unit (files, samples, percent);
        both are None where their number is not known. `found`: the ways that a search for ways to
        split has found so far.
        """


def silent(text: str, done: int | None = None, total: int | None = None, found: Found = ()) -> None:
    """The report of work that nobody watches."""
