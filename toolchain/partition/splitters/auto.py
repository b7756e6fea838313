"""Chains of segments of the order by shortest paths: `partition.search`."""

from __future__ import annotations

from toolchain.partition.front import Front, Task, Watch
from toolchain.partition.search import pareto_front


class _Auto:
    name = "auto"

    def front(self, task: Task, watch: Watch) -> Front:
        return pareto_front(task, watch)


SPLITTER = _Auto()
