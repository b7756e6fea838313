"""Chains of segments of the order, by shortest paths: `partition.search`.

The work that is left goes to `motes`, whose points are other ways to reach nearly as low a peak.
Placing them shows which one makes the smallest arena.
"""

from __future__ import annotations

from dataclasses import replace

from toolchain.partition.front import Front, Task, Watch
from toolchain.partition.search import pareto_front
from toolchain.partition.splitters.motes import SPLITTER as MOTES


class _Auto:
    name = "auto"

    def front(self, task: Task, watch: Watch) -> Front:
        found = pareto_front(task, watch)
        if watch.over():
            return found
        motes = MOTES.front(task, watch)
        return replace(
            found,
            seconds=watch.seconds,
            stopped=watch.stopped,
            others=(*found.others, motes.points),
        )


SPLITTER = _Auto()
