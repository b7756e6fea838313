"""How long one inference may take, wherever it runs: one limit, and one message."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from toolchain.errors import InputError, ThimbleError

RUN_SECONDS = 300.0
"""The default limit. The slowest model that is known here takes some ten seconds, in LiteRT's
reference kernels."""


def too_slow(what: str, seconds: float, kind: type[ThimbleError] = InputError) -> ThimbleError:
    """The error of an inference, `what`, that took longer than it may."""
    return kind(
        f"{what} did not end within {seconds:g} s, and was stopped: if the model has a loop, its "
        "condition may never become false",
        remedies=[f"--timeout {4 * seconds:g}", "a model whose loops end"],
    )


@contextmanager
def killed_after(process: subprocess.Popen[bytes], seconds: float) -> Iterator[threading.Event]:
    """Kill the process if the block takes longer; the event then is set. Reading from the process
    ends with that; who started it waits for it.
    """
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        process.kill()

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()
