"""How work that takes long reports what it is doing."""

from __future__ import annotations

from typing import Protocol


class Report(Protocol):
    """A function that the work calls now and then, on its own thread."""

    def __call__(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """`text` says what is under way: "compiling".

        `done` of `total` parts of it are finished, parts of any unit (files, samples, percent);
        both are None where their number is not known.
        """


def silent(text: str, done: int | None = None, total: int | None = None) -> None:
    """The report of work that nobody watches."""
