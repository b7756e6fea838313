"""A change of a network, and the changed graphs that it makes. Each file of `changes/` is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from toolchain.boards import Core
from toolchain.ir import Graph


@dataclass(frozen=True)
class Proposal:
    """A changed graph, whose weights have the right sizes and no training.

    `layer`: the operator that is changed, as the plan has it, or the first of several. `what`: the
    change, in words. `keras`, `pytorch`: how it is written there.
    """

    layer: str
    what: str
    graph: Graph
    keras: str
    pytorch: str


@dataclass(frozen=True)
class Change:
    """`summary`: what it does, in a line. `proposals`: the changed graphs for a core, made one at a
    time; it leaves out what the network cannot follow.
    """

    summary: str
    proposals: Callable[[Graph, Core], Iterator[Proposal]]
