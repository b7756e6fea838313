"""Chains of segments of the order, by shortest paths: `partition.search`.

The work that is left goes to `motes`, whose points are other ways to reach nearly as low a peak.
Placing them shows which one makes the smallest arena. Where an input arrives by rows, RAM is
scarce: wide tensors are tried in columns, too (`partition.columns`).
"""

from __future__ import annotations

from dataclasses import replace

from toolchain.partition.columns import with_columns
from toolchain.partition.front import Front, Task, Watch
from toolchain.partition.search import pareto_front
from toolchain.partition.splitters.motes import SPLITTER as MOTES


class _Auto:
    name = "auto"

    def front(self, task: Task, watch: Watch) -> Front:
        chains = pareto_front(task, watch)
        if task.graph.pushed is not None and not watch.over():
            chains = with_columns(task, chains, watch)
        if watch.over():
            return chains
        motes = MOTES.front(task, watch)
        others = tuple(replace(p, extra=p.extra + motes.total - chains.total) for p in motes.points)
        return replace(
            chains,
            seconds=watch.seconds,
            stopped=watch.stopped,
            others=(*chains.others, others),
        )


SPLITTER = _Auto()
