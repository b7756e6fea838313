"""How a command that fails ends: one sentence and an exit code, never a traceback.

An unexpected error is an internal error: a report is written that the user can send, and the exit
code is that of sysexits.h for it. With THIMBLE_RAISE set the error is raised instead, as the tests
need.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from toolchain.cli._streams import STANDARD_OUTPUT
from toolchain.errors import ThimbleError

RAISE_VARIABLE = "THIMBLE_RAISE"
INPUT, INTERNAL, INTERRUPTED, PIPE_CLOSED = 2, 70, 130, 141
EXIT_CODES = {
    0: "done",
    1: "the work was done and its result is a failure: it does not fit, does not match, or a "
    "board is at fault",
    INPUT: "the input is bad, a tool is missing, nothing can judge a model, or memory or disk ran "
    "out",
    3: "the result breaks a condition of --fail-on",
    INTERNAL: "an internal error, with a report to send",
    INTERRUPTED: "interrupted (Ctrl-C)",
    PIPE_CLOSED: "whoever read the output stopped (`| head`)",
}
_LARGEST_HASHED_BYTES = 1 << 30
_PACKAGES = ("thimble-nn", "numpy", "onnx", "onnxruntime", "ai-edge-litert", "ortools", "typer")


class EndedError(Exception):
    """Carries an error past click, which would end the program itself for some errors."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Group(TyperGroup):
    """A group that passes its commands' errors to `leave` unchanged."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, EOFError, OSError) as error:
            raise EndedError(error) from error
        except SystemExit as leaving:  # how rich ends when the pipe is closed
            if isinstance(leaving.__context__, OSError):
                raise EndedError(leaving.__context__) from leaving
            raise


def leave(error: BaseException, arguments: Sequence[str]) -> int:
    """Print why the command `arguments` ended, and return the exit code."""
    if isinstance(error, EndedError):
        return leave(error.error, arguments)
    if isinstance(error, ThimbleError):
        _say("error:", str(error))
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        _say("interrupted", "")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        _drop_output()
        return PIPE_CLOSED
    if isinstance(error, MemoryError):
        _say("error:", f"memory ran out{f': {error}' if str(error) else ''}")
        return INPUT
    if isinstance(error, OSError) and error.errno is not None:
        written = "cannot write " if error.filename == STANDARD_OUTPUT else ""
        named = f"{written}{error.filename}: " if error.filename else ""
        _say("error:", f"{named}{error.strerror or os.strerror(error.errno)}")
        return INPUT
    if os.environ.get(RAISE_VARIABLE):
        raise error
    _say("internal error:", f"{type(error).__name__}: {error}")
    _say(
        "",
        f"This is a defect in Thimble. Please report it with {_write_report(error, arguments)}: it "
        "holds the command line, versions, the traceback, and names, sizes and hashes of the files "
        "that the command line names, nothing of what is in them.",
    )
    return INTERNAL


def flush_output() -> None:
    """Write out what is left. Raises OSError once if that fails: the rest is then dropped."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _drop_output()
        error.filename = error.filename or STANDARD_OUTPUT
        raise


def _drop_output() -> None:
    """Drop the rest of the output, so that nothing fails when the interpreter ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _say(title: str, text: str) -> None:
    """Print on standard error, with any characters of names in files; nothing where it is
    closed."""
    from toolchain.cli._console import error_console

    with contextlib.suppress(OSError, SystemExit):
        console = error_console()
        if title:
            console.print(title, style="bold red", end=" " if text else "\n")
        if text:
            plain = text.encode("utf-8", "backslashreplace").decode()
            console.say(plain)


def _write_report(error: BaseException, arguments: Sequence[str]) -> str:
    """Write the report: its path, or a sentence where none could be written."""
    import tempfile

    from toolchain.kernels.cmsis_nn import cache_folder

    text = "\n".join(_report(error, arguments)) + "\n"
    data = text.encode("utf-8", "backslashreplace")
    name = f"thimble-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    for folder in (cache_folder() / "reports", Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        except OSError:
            continue
        return f"the file {folder / name}"
    _say("", text)
    return "what is printed above (no file could be written)"


def _report(error: BaseException, arguments: Sequence[str]) -> Iterator[str]:
    import hashlib
    import platform
    import traceback
    from importlib import metadata

    yield f"thimble {' '.join(arguments)}"
    yield f"{platform.platform()}, Python {platform.python_version()}"
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            yield f"{package} {metadata.version(package)}"
    for argument in arguments:
        file = Path(argument)
        with contextlib.suppress(OSError, ValueError):
            if file.is_file() and file.stat().st_size <= _LARGEST_HASHED_BYTES:
                with file.open("rb") as opened:
                    digest = hashlib.file_digest(opened, "sha256").hexdigest()
                yield f"{argument}: {file.stat().st_size} bytes, sha256 {digest}"
    yield ""
    yield from "".join(traceback.format_exception(error)).splitlines()
