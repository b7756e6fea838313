"""A count of the operators that are read in place of loops, branches and calls of one file."""

from __future__ import annotations

from toolchain.errors import InputError

MOST_WRITTEN = 200_000
"""The most operators that are written out, those included that are given up since a loop turns too
often or depends on data."""


class TooManyError(InputError):
    """No further operator is read."""


class WrittenOut:
    """The count of operators that were written out of a file so far."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, what: str, count: int) -> None:
        """Count `count` more operators, of `what`. Raises TooManyError, naming it."""
        self._count += count
        if self._count > MOST_WRITTEN:
            raise TooManyError(
                f"{what}: with its loops written out, turn by turn, the model is more than "
                f"{MOST_WRITTEN:,} operators: export it with fewer steps"
            )
