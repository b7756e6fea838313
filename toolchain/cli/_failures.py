"""A command that fails under `--json -`: one JSON object on standard output, with an `error` in it.

The sentence for people is on standard error, as without `--json`, and exit codes are the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from toolchain.errors import DoesNotFitError, ThimbleError


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for JSON on standard output."""
    following = (*arguments[1:], "")
    pairs = zip(arguments, following, strict=False)
    return any(a == "--json=-" or (a == "--json" and b == "-") for a, b in pairs)


def error_json(error: BaseException, code: int) -> dict[str, Any]:
    """The field `error`: kind, message, exit code; operator and remedies where they are known.

    `kind` is that of `toolchain.errors`, or usage, interrupted, system (of an OSError), memory,
    internal. `overflows`: for what does not fit, each memory, with the bytes needed and there.
    """
    fields: dict[str, Any] = {"kind": _kind(error), "message": _message(error), "exit_code": code}
    if isinstance(error, ThimbleError):
        fields |= {"operator": error.operator} if error.operator else {}
        fields |= {"remedies": list(error.remedies)} if error.remedies else {}
    if isinstance(error, DoesNotFitError) and error.overflows:
        fields["overflows"] = [asdict(lack) for lack in error.overflows]
    return fields


def with_error(written: str, error: BaseException, code: int) -> str:
    """What a command wrote to standard output, with the field `error` added to its object.

    What is no object stays as it is; the error is then told on standard error alone.
    """
    try:
        result = json.loads(written) if written.strip() else {}
    except ValueError:
        return written
    if not isinstance(result, dict):
        return written
    return json.dumps({**result, "error": error_json(error, code)}, indent=2) + "\n"


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
