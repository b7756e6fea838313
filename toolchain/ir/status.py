"""What generated code returns, by name."""

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
    AGAIN = -10, "its run is not over: another step is to be made"
    ERROR_NOT_STARTED = -11, "no run was started whose next step could be made"
    ERROR_DONE = -12, "the run whose next step was to be made is over"


OF_STEPS = (Status.AGAIN, Status.ERROR_NOT_STARTED, Status.ERROR_DONE)
"""Those that only functions return which run a model in steps."""


def meaning_of(code: int) -> str:
    """What a code of `Status` means; '' for any other number."""
    return next((status.meaning for status in Status if status == code), "")
