"""Python's garbage collector, while much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 200_000
"""More objects than are lost before the collector looks at them."""


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Let the collector look only behind every `_OBJECTS` new objects, as it may in a function that
    this decorates.

    A planner keeps most of what it makes. Looking through all of it for cycles, again and again,
    takes a quarter of the time of planning 300 operators.
    """
    before = gc.get_threshold()
    if 0 < before[0] < _OBJECTS:
        gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
