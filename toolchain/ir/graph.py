"""Operators and graphs: frozen values; producers and consumers are computed, not stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from toolchain.ir.tensor import Tensor


@dataclass(frozen=True)
class Attributes:
    """Base of the typed attributes that each operator kind declares in `ops/<kind>.py`."""


@dataclass(frozen=True)
class Op:
    """One operator. `inputs` and `outputs` are tensor names; an absent optional input is ''."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Attributes = field(default_factory=Attributes)

    def present_inputs(self) -> tuple[str, ...]:
        return tuple(name for name in self.inputs if name)


@dataclass(frozen=True, eq=False)
class Graph:
    """Operators in some topological order, the tensors they name, and the graph's own ends."""

    name: str
    tensors: Mapping[str, Tensor]
    ops: tuple[Op, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @staticmethod
    def build(
        name: str,
        tensors: Iterable[Tensor],
        ops: Iterable[Op],
        inputs: Iterable[str],
        outputs: Iterable[str],
    ) -> Graph:
        table = {tensor.name: tensor for tensor in tensors}
        return Graph(name, MappingProxyType(table), tuple(ops), tuple(inputs), tuple(outputs))

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
        """For each operator those whose outputs it reads, each once, in the order of its inputs."""
        return tuple(
            tuple(
                dict.fromkeys(self.producers[t] for t in op.present_inputs() if t in self.producers)
            )
            for op in self.ops
        )

    def input_tensors(self, op: Op) -> tuple[Tensor | None, ...]:
        """The tensors an operator reads, in its order; None stands for an absent optional one."""
        return tuple(self.tensors[name] if name else None for name in op.inputs)

    def input(self, op: Op, index: int) -> Tensor:
        """The operator's input at `index`, which must be present."""
        return self.tensors[op.inputs[index]]

    def output(self, op: Op, index: int = 0) -> Tensor:
        return self.tensors[op.outputs[index]]

    def activations(self) -> tuple[Tensor, ...]:
        """Tensors that need RAM: everything that is not constant."""
        return tuple(t for t in self.tensors.values() if not t.is_constant)

    def with_ops(self, ops: Iterable[Op], tensors: Iterable[Tensor] | None = None) -> Graph:
        """The same graph with other operators; tensors that nothing names any more are dropped."""
        kept = tuple(ops)
        table = dict(self.tensors) if tensors is None else {t.name: t for t in tensors}
        used = set(self.inputs) | set(self.outputs)
        for op in kept:
            used.update(op.present_inputs())
            used.update(op.outputs)
        pruned = {name: tensor for name, tensor in table.items() if name in used}
        return replace(self, tensors=MappingProxyType(pruned), ops=kept)
