"""The interface of a pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from toolchain.ir import NOTHING_REMOVED, Boundary, Graph, RemovedChannels


@dataclass(frozen=True)
class Prepared:
    """A graph ready to compile, and how its inputs and outputs differ from the model file's."""

    graph: Graph
    boundaries: tuple[Boundary, ...] = ()
    removed: RemovedChannels = NOTHING_REMOVED

    def with_graph(self, graph: Graph) -> Prepared:
        return replace(self, graph=graph)


class Pass(Protocol):
    """One rewrite. The result computes the same, and passes the verifier."""

    def run(self, prepared: Prepared) -> Prepared: ...
