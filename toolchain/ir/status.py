"""Status codes that generated code returns, by name."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """A code that generated functions return, and what it means.

    Above 0 lie the numbers, from 1, of operators that failed; all other codes are 0 or negative.
    In C it is `<NAME>_<name>`.
    """

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Status:
        status = int.__new__(cls, code)
        status._value_ = code
        status.meaning = meaning
        return status

    OK = 0, "it ran"
    ERROR_ARENA = -1, "its arena is missing or misaligned"
    ERROR_ARENA_SHORT = -2, "its arena is too short"
    AGAIN = -10, "its run is not over: another step is to be made, or more rows to be pushed"
    ERROR_NOT_STARTED = -11, "no run was started whose next step could be made"
    ERROR_DONE = -12, "the run whose next step was to be made is over"
    ERROR_ROWS = -13, "more rows were pushed than it wants, or no frame was begun"
    ERROR_WEIGHTS_MISSING = -20, "it was given no weights"
    ERROR_WEIGHTS_MISALIGNED = -21, "its weights do not lie at a multiple of 8 bytes"
    ERROR_WEIGHTS_NO_BLOB = -22, "where its weights should be is no blob of weights"
    ERROR_WEIGHTS_VERSION = -23, "the blob of its weights is of another version of the format"
    ERROR_WEIGHTS_MODEL = -24, "the blob holds weights for other code"
    ERROR_WEIGHTS_SHORT = -25, "the blob of its weights is cut off"
    ERROR_WEIGHTS_DAMAGED = -26, "the blob of its weights is damaged"
    ERROR_WEIGHTS_FETCH = -27, "its weights could not be fetched"


OF_WEIGHTS = tuple(status for status in Status if "WEIGHTS" in status.name)
"""Codes of models whose weights lie outside of the code."""
OF_STEPS = (Status.AGAIN, Status.ERROR_NOT_STARTED, Status.ERROR_DONE)
"""Codes that only functions return that run a model in steps."""
OF_ROWS = (Status.AGAIN, Status.ERROR_ROWS)
"""Codes that only functions return that take an input by rows."""


def meaning_of(code: int) -> str:
    """The meaning of a code of `Status`; '' for any other number."""
    return next((status.meaning for status in Status if status == code), "")
