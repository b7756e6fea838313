"""How long something took, for reports: the only clock that planning code reads."""

from __future__ import annotations

import time


class Stopwatch:
    """Seconds since it was created, shown to people. No result may depend on them."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begin
