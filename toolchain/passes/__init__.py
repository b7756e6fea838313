"""Rewrites that make a graph ready to compile: one pass per file, each a small frozen dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from toolchain.ir import Boundary, Graph


@dataclass(frozen=True)
class Prepared:
    """A graph ready to compile, and how its ends differ from the model file's."""

    graph: Graph
    boundaries: tuple[Boundary, ...] = ()


class Pass(Protocol):
    """One rewrite. The result computes the same, and passes the verifier."""

    def run(self, prepared: Prepared) -> Prepared: ...


DEFAULT: tuple[Pass, ...] = ()


def prepare(graph: Graph, pipeline: tuple[Pass, ...] = DEFAULT) -> Prepared:
    """Run the passes in order."""
    prepared = Prepared(graph)
    for step in pipeline:
        prepared = step.run(prepared)
    return prepared
