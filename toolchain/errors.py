"""Every error that Thimble raises on purpose, and its exit code.

A message names the operator, tensor or byte at fault and says what to do. The command line prints
it as it is, without a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from typing import Any

_SIMILAR, _NEAR, _SUGGESTED = 0.6, 0.12, 3
"""The least likeness of a name that was meant, how near the likest the others are, and their
number."""
_LEAST_PART = 3


class ThimbleError(Exception):
    """Base of all errors that a user can act on.

    `operator`: the first operator at fault, by its name, or by its kind and place in the file;
    `remedies`: actions that could help. Both are empty where they are not known apart from the
    message. The text has the remedies in a line of their own.
    """

    exit_code = 2
    kind = "error"
    """The class in a word, for programs (`--json -`)."""

    def __init__(
        self, message: str = "", *, operator: str = "", remedies: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.operator, self.remedies = operator, tuple(remedies)

    @property
    def message(self) -> str:
        """The text without the remedies."""
        return super().__str__()

    def __str__(self) -> str:
        if not self.remedies:
            return self.message
        return f"{self.message.rstrip('.')}.\nWhat could help: {', '.join(self.remedies)}."


class InputError(ThimbleError):
    """The input is bad: a corrupt file, an unknown board, a contradictory option."""

    kind = "input"


class UnsupportedError(InputError):
    """The model is well formed but uses something that Thimble has no kernel for.

    `in_float`: the message for a caller who wants the model in float, and so will not quantise it;
    '' where it is the same.
    """

    kind = "unsupported"

    def __init__(
        self,
        message: str = "",
        *,
        operator: str = "",
        remedies: Sequence[str] = (),
        in_float: str = "",
    ) -> None:
        super().__init__(message, operator=operator, remedies=remedies)
        self.in_float = in_float


class FloatModelError(UnsupportedError):
    """The model computes in float32, and the caller did not ask for that."""


class MissingToolError(ThimbleError):
    """A compiler, emulator or library is not installed; the message says how to get it."""

    kind = "missing-tool"


class GateError(ThimbleError):
    """The work was done, and its result breaks a condition of the caller's (`--fail-on`)."""

    exit_code = 3
    kind = "gate"


class NotJudgedError(ThimbleError):
    """The outputs were computed, but only Thimble's own arithmetic could judge them."""

    kind = "not-judged"


class ResultError(ThimbleError):
    """The work was done and its result is a failure: it does not fit, or does not match."""

    exit_code = 1
    kind = "result"


@dataclass(frozen=True)
class Overflow:
    """A memory that is too small: `need_bytes` are to go where there are `room_bytes`.

    `is_flash`: it holds code and constants; else the arena, data and stack.
    """

    memory: str
    need_bytes: int
    room_bytes: int
    is_flash: bool

    @property
    def excess_bytes(self) -> int:
        return self.need_bytes - self.room_bytes


class DoesNotFitError(ResultError):
    """The plan needs more RAM or flash than the board has; `overflows` names each such memory."""

    kind = "does-not-fit"

    def __init__(
        self,
        message: str = "",
        *,
        operator: str = "",
        remedies: Sequence[str] = (),
        overflows: Sequence[Overflow] = (),
    ) -> None:
        super().__init__(message, operator=operator, remedies=remedies)
        self.overflows = tuple(overflows)


class LinkError(ResultError):
    """The board did not answer, or answered with a fault."""

    kind = "link"


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """ " Did you mean NAME or NAME?" with the known names that are most like a wrong one, to end a
    message with; '' where none is like it.
    """
    wrong = given.lower()

    def likeness(name: str) -> float:
        ratio = SequenceMatcher(None, wrong, name.lower()).ratio()
        inside = len(wrong) >= _LEAST_PART and (wrong in name.lower() or name.lower() in wrong)
        return max(ratio, _SIMILAR) + _SIMILAR if inside else ratio

    liked = sorted(((likeness(name), name) for name in set(known)), key=lambda one: (-one[0], one))
    best = [name for like, name in liked if like >= max(_SIMILAR, liked[0][0] - _NEAR)]
    return f". Did you mean {' or '.join(best[:_SUGGESTED])}?" if best else ""


def error_json(error: BaseException, code: int) -> dict[str, Any]:
    """The field `error`: kind, message, exit code; operator and remedies where they are known.

    `kind` is the error's own, or usage, interrupted, system (of an OSError), memory,
    internal. `overflows`: for what does not fit, each memory, with the bytes needed and there.
    """
    fields: dict[str, Any] = {"kind": _kind(error), "message": _message(error), "exit_code": code}
    if isinstance(error, ThimbleError):
        fields |= {"operator": error.operator} if error.operator else {}
        fields |= {"remedies": list(error.remedies)} if error.remedies else {}
    if isinstance(error, DoesNotFitError) and error.overflows:
        fields["overflows"] = [asdict(lack) for lack in error.overflows]
    return fields


def _kind(error: BaseException) -> str:
    if isinstance(error, ThimbleError):
        return error.kind
    if hasattr(error, "format_message"):
        return "usage"
    known = ((KeyboardInterrupt, "interrupted"), (MemoryError, "memory"), (OSError, "system"))
    return next((kind for error_type, kind in known if isinstance(error, error_type)), "internal")


def _message(error: BaseException) -> str:
    if isinstance(error, ThimbleError):
        return error.message
    if hasattr(error, "format_message"):  # click's and Typer's errors of usage
        return str(error.format_message())
    return str(error) or type(error).__name__
