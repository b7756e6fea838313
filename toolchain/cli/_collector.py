"""Python's garbage collector, where there is no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """For what makes much that stays: a million buffers, the modules of a command.

    Looking for cycles among them takes a twentieth of the start of a command, and longer than
    reading the buffers does. What was made is not looked at again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
