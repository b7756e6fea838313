"""A command that fails under `--json -`: one JSON object on standard output, with an `error` in it.

The sentence for people is on standard error, as without `--json`, and exit codes are the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from toolchain.errors import error_json


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for JSON on standard output."""
    following = (*arguments[1:], "")
    pairs = zip(arguments, following, strict=False)
    return any(a == "--json=-" or (a == "--json" and b == "-") for a, b in pairs)


def with_error(written: str, error: BaseException, code: int) -> str:
    """The standard output of a command, with the field `error` added to its object.

    A text that is no object stays as it is; the error is then told on standard error alone.
    """
    from toolchain.cli._output import numbered  # with much that --help does not need

    try:
        result = json.loads(written) if written.strip() else {}
    except ValueError:
        return written
    if not isinstance(result, dict):
        return written
    return json.dumps({**numbered(result), "error": error_json(error, code)}, indent=2) + "\n"
