"""Operators and graphs. They are immutable; producers and consumers are computed, not stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ir.tensor import DType, Tensor


class InvalidGraphError(ValueError):
    """A graph breaks a rule; the message names the tensor or operator."""


@dataclass(frozen=True)
class Attributes:
    """Base of the typed attributes that each operator kind declares in its file."""

    @property
    def nested(self) -> tuple[Graph, ...]:
        """The graphs that the operator runs inside of itself: branches, the body of a loop."""
        return ()


@dataclass(frozen=True)
class Op:
    """One operator. `inputs` and `outputs` are tensor names; an absent optional input is ''.

    `part_of`: for an operator made by splitting, the name of the operator (or input) of the
    original graph that it computes or copies a block of. '' for all others.
    """

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Attributes = field(default_factory=Attributes)
    part_of: str = ""

    @property
    def counted_as(self) -> tuple[str, str]:
        """Name and kind under which its code is emitted and counted, with the other blocks."""
        return self.part_of or self.name, self.kind

    def present_inputs(self) -> tuple[str, ...]:
        return tuple(name for name in self.inputs if name)


@dataclass(frozen=True, eq=False)
class State:
    """A value that a graph keeps from one run to the next.

    `input` holds the value when a run begins; nothing in the graph computes it. `output` is the
    value for the next run. Its operator (an `assign`, or a recurrent kernel) updates it in place,
    and nothing else reads it. `initial` is the value before the first run and after a reset.
    """

    input: str
    output: str
    initial: NDArray[np.generic]


@dataclass(frozen=True)
class Pushed:
    """An input that the caller hands over a few rows at a time, so that it takes no RAM.

    `input`: only operators of the kind `input_rows` read it, each row once and in order.
    `progress`: what is kept between two pushes; nothing in the graph computes or reads it.
    """

    input: str
    progress: str


@dataclass(frozen=True, eq=False)
class Graph:
    """Operators in some topological order, their tensors, and the graph's inputs, outputs and
    states. `pushed`: the input that arrives by rows, if one does.

    A tensor's name is its identity, and so is an operator's: no two of either have the same one.
    `build` and `with_ops` raise InvalidGraphError where they are given two. The very same tensor
    may be given twice; one that is only equal may not. New names come from `ir.names`.
    """

    name: str
    tensors: Mapping[str, Tensor]
    ops: tuple[Op, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    states: tuple[State, ...] = ()
    pushed: Pushed | None = None

    def __repr__(self) -> str:
        ends = f"{', '.join(self.inputs)} -> {', '.join(self.outputs)}"
        return (
            f"<Graph {self.name}: {len(self.ops)} operators, {len(self.tensors)} tensors, {ends}>"
        )

    @staticmethod
    def build(
        name: str,
        tensors: Iterable[Tensor],
        ops: Iterable[Op],
        inputs: Iterable[str],
        outputs: Iterable[str],
        states: Iterable[State] = (),
    ) -> Graph:
        """A graph of these parts. `inputs` and `outputs` are names of tensors."""
        ends = tuple(inputs), tuple(outputs)
        return Graph(
            name, MappingProxyType(_filed(tensors)), _named(ops), *ends, states=tuple(states)
        )

    @cached_property
    def producers(self) -> Mapping[str, int]:
        """Tensor name to the index of the operator that writes it."""
        return MappingProxyType(
            {out: index for index, op in enumerate(self.ops) for out in op.outputs}
        )

    @cached_property
    def consumers(self) -> Mapping[str, tuple[int, ...]]:
        """Tensor name to the indices of the operators that read it, each once, ascending."""
        table: dict[str, list[int]] = {name: [] for name in self.tensors}
        for index, op in enumerate(self.ops):
            for name in dict.fromkeys(op.present_inputs()):
                table[name].append(index)
        return MappingProxyType({name: tuple(users) for name, users in table.items()})

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """Operators whose outputs an operator reads, for each: each once, in the order of its
        inputs.
        """
        return tuple(
            tuple(
                dict.fromkeys(self.producers[t] for t in op.present_inputs() if t in self.producers)
            )
            for op in self.ops
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """Tensors with a value in RAM before the first operator: the inputs, but for one that
        arrives by rows, then the states, then the progress of the rows.
        """
        states = tuple(state.input for state in self.states)
        if self.pushed is None:
            return (*self.inputs, *states)
        held = (name for name in self.inputs if name != self.pushed.input)
        return (*held, *states, self.pushed.progress)

    @property
    def kept(self) -> tuple[str, ...]:
        """Tensors that outlive a run: the graph's outputs, then the next values of its states, then
        the progress of the rows.
        """
        states = tuple(state.output for state in self.states)
        progress = () if self.pushed is None else (self.pushed.progress,)
        return (*self.outputs, *states, *progress)

    @cached_property
    def constant_bytes(self) -> int:
        """Bytes of all constants."""
        return sum(tensor.size_bytes for tensor in self.tensors.values() if tensor.is_constant)

    @cached_property
    def results(self) -> dict[tuple[str, str], tuple[Op, Any]]:
        """Results that follow from an operator and this graph alone, by what they are and by its
        name; with the operator. Who computes them keeps them here.
        """
        return {}

    @property
    def computes_in_float(self) -> bool:
        """Whether an operator writes float32, one inside of another included."""
        written = (self.tensors[name] for op in self.ops for name in op.outputs)
        if any(tensor.dtype is DType.FLOAT32 for tensor in written):
            return True
        return any(graph.computes_in_float for op in self.ops for graph in op.attributes.nested)

    def input_tensors(self, op: Op) -> tuple[Tensor | None, ...]:
        """The tensors that an operator reads, in its order; None for an absent optional one."""
        return tuple(self.tensors[name] if name else None for name in op.inputs)

    def input(self, op: Op, index: int) -> Tensor:
        """The operator's input at `index`. Raises ValueError where it is absent."""
        name = op.inputs[index]
        if not name:
            raise ValueError(f"input {index} is absent")
        return self.tensors[name]

    def output(self, op: Op, index: int = 0) -> Tensor:
        return self.tensors[op.outputs[index]]

    def activations(self) -> tuple[Tensor, ...]:
        """Tensors that need RAM: all that are not constant, but for an input that arrives by
        rows.
        """
        pushed = "" if self.pushed is None else self.pushed.input
        return tuple(t for t in self.tensors.values() if not t.is_constant and t.name != pushed)

    def with_ops(self, ops: Iterable[Op], tensors: Iterable[Tensor] | None = None) -> Graph:
        """This graph with other operators; tensors that nothing refers to any more are dropped.
        Raises InvalidGraphError if two of `tensors`, or two of `ops`, have one name.
        """
        kept = _named(ops)
        table = dict(self.tensors) if tensors is None else _filed(tensors)
        used = {*self.inputs, *self.sources, *self.kept}
        for op in kept:
            used.update(op.present_inputs())
            used.update(op.outputs)
        pruned = {name: tensor for name, tensor in table.items() if name in used}
        return replace(self, tensors=MappingProxyType(pruned), ops=kept)


def _filed(tensors: Iterable[Tensor]) -> dict[str, Tensor]:
    """The tensors by name. Raises InvalidGraphError where two have the same one."""
    table: dict[str, Tensor] = {}
    places: dict[str, int] = {}
    for place, tensor in enumerate(tensors):
        known = table.setdefault(tensor.name, tensor)
        first = places.setdefault(tensor.name, place)
        if known is not tensor:
            raise InvalidGraphError(
                f"two tensors are called {tensor.name!r}: {known}, which comes as number {first}, "
                f"and {tensor}, as number {place}"
            )
    return table


def _named(ops: Iterable[Op]) -> tuple[Op, ...]:
    """The operators. Raises InvalidGraphError where two have the same name."""
    listed = tuple(ops)
    places: dict[str, int] = {}
    for place, op in enumerate(listed):
        first = places.setdefault(op.name, place)
        if first != place:
            raise InvalidGraphError(
                f"two operators are called {op.name!r}: number {first}, {listed[first].kind}, and "
                f"number {place}, {op.kind}"
            )
    return listed
