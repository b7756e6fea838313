"""Fresh names: whatever invents a name for a tensor or an operator takes it from here.

A name is an identity, and a model's file may use any. So no name is made by a pattern alone, and
none is taken apart again to learn what a tensor is.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from toolchain.ir.graph import Graph


def fresh_name(wished: str, taken: Container[str], first: int = 2) -> str:
    """`wished` where it is free, else the first free of `wished/2`, `wished/3` and so on.

    `first`: a number below which all are known to be taken.
    """
    name, number = wished, first
    while name in taken:
        name, number = f"{wished}/{number}", number + 1
    return name


class Names:
    """Hands out names, each once and none of those that are `taken`.

    The names depend on those that were taken before, and on the order of the wishes, alone.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def take(self, names: Iterable[str]) -> None:
        """Never hand out these."""
        self._taken.update(names)

    def fresh(self, wished: str) -> str:
        """`wished` where it is free, else as `fresh_name` has it; it is taken from here on."""
        first = self._next.get(wished, 2)
        name = fresh_name(wished, self._taken, first)
        if name != wished:
            self._next[wished] = int(name.removeprefix(f"{wished}/")) + 1
        self._taken.add(name)
        return name


@dataclass(frozen=True)
class GraphNames:
    """The names of one graph: those of its tensors, and apart from them those of its operators.

    An operator may be called as a tensor is. `part_of` names operators, too.
    """

    tensors: Names
    ops: Names

    @staticmethod
    def of(graph: Graph) -> GraphNames:
        named = (name for op in graph.ops for name in (op.name, op.part_of))
        return GraphNames(Names(graph.tensors), Names(named))
