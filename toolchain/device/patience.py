"""How long one inference may take, wherever it runs: one limit, and one message."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar

from toolchain.errors import InputError, ThimbleError

T = TypeVar("T")
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
def stopped_after(seconds: float, stop: Callable[[], object]) -> Iterator[threading.Event]:
    """Call `stop` if the block takes longer; the event then is set. For a process `stop` is its
    `kill`: reading from it ends with that, and who started it waits for it.
    """
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        stop()

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()


def bounded(what: str, seconds: float, call: Callable[[], T]) -> T:
    """The result of `call`, an inference by a library that has no way to be stopped. Raises
    `too_slow` where it takes longer, and what `call` raises.

    It runs in a thread of its own, which is left behind where it is too slow, and ends with the
    program.
    """
    result: Future[T] = Future()

    def work() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # handed to the caller's thread
            result.set_exception(error)

    threading.Thread(target=work, name="inference", daemon=True).start()
    done, _ = wait([result], seconds)
    if not done:
        raise too_slow(what, seconds)
    return result.result()
