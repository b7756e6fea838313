"""How long something took, for reports. The only clock of the rooms that decide plans."""

from __future__ import annotations

import time


class Stopwatch:
    """Seconds since it was made. They are shown to people: no result may depend on them."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begin
