"""Python's garbage collector, where there is little garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector while many objects that stay are made: a million buffers, the modules of
    a command.

    Looking for cycles among them takes a twentieth of the start of a command, and longer than
    reading the buffers does. The collector does not look at these objects again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
