"""`Operator`: an operator with its tensors and attributes, as the callbacks of its kind see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar

from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, Graph, Op, Tensor

A = TypeVar("A", bound=Attributes, covariant=True)


@dataclass(frozen=True)
class Operator(Generic[A]):
    """An operator of a graph, whose attributes are of the class that its form names."""

    op: Op
    graph: Graph
    attributes: A

    @property
    def kind(self) -> str:
        return self.op.kind

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def is_block(self) -> bool:
        """Whether it computes or copies a block of an operator that was split."""
        return bool(self.op.part_of)

    @property
    def x(self) -> Tensor:
        """The first input."""
        return self.input(0)

    @property
    def y(self) -> Tensor:
        """The first output."""
        return self.output(0)

    @cached_property
    def inputs(self) -> tuple[Tensor | None, ...]:
        """All inputs; None for an optional one that is absent."""
        return self.graph.input_tensors(self.op)

    @property
    def each(self) -> tuple[Tensor, ...]:
        """All inputs of a kind without optional ones. Raises ValueError where one is absent."""
        absent = [index for index, x in enumerate(self.inputs) if x is None]
        if absent:
            raise ValueError(f"input {absent[0]} is absent")
        return self.present

    @property
    def present(self) -> tuple[Tensor, ...]:
        """The inputs that are there."""
        return tuple(x for x in self.inputs if x is not None)

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(self.graph.tensors[name] for name in self.op.outputs)

    def input(self, index: int) -> Tensor:
        """The input at `index`, which must be present."""
        return self.graph.input(self.op, index)

    def output(self, index: int) -> Tensor:
        return self.graph.output(self.op, index)

    def given(self, index: int) -> Tensor | None:
        """The input at `index`; None if there is none."""
        return self.inputs[index] if index < len(self.inputs) else None

    def refused(self, why: str) -> UnsupportedError:
        """The error to raise where a kernel does not take the operator."""
        return UnsupportedError(f"{self.kind} {self.name!r}: {why}")


def operator_of(op: Op, graph: Graph) -> Operator[Any]:
    """The view of an operator of a graph."""
    return Operator(op, graph, op.attributes)


AnyOperator: TypeAlias = Operator[Attributes]
"""An operator whose attributes do not matter."""
