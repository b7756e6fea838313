"""Operators that no output depends on are removed."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.passes._pass import Prepared
from toolchain.passes._rewrite import live_ops


@dataclass(frozen=True)
class RemoveDeadOps:
    """Remove operators that no output depends on."""

    def run(self, prepared: Prepared) -> Prepared:
        graph = prepared.graph
        return prepared.with_graph(graph.with_ops(live_ops(graph.ops, graph.kept)))
