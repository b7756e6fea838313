"""A model as the stage planner sees it: operators, the tensors between them, their constants.

TFLite files and neutral summaries become the same value. Nothing here depends on stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Use:
    """Tensors or constants by their users, operators. Tensors with one user are in arrays.

    A writer of -1 stands for none. `shared`: users, writer, bytes.
    """

    alone: NDArray[np.int64]
    alone_writer: NDArray[np.int64]
    alone_bytes: NDArray[np.float64]
    shared: tuple[tuple[NDArray[np.int64], int, int], ...]


@dataclass(frozen=True)
class Uses:
    """Reads and writes of a model's operators, as arrays: for sums over many cuts at once.

    `given`: its inputs. `written`: what operators write and others read.

    `passed` is `written` without outputs of the model. In `ends`, the outputs, the user is the
    writer.
    """

    constants: Use
    given: Use
    written: Use
    passed: Use
    ends: Use


def use(entries: Iterable[tuple[Sequence[int], int, int]]) -> Use:
    """From users, writer and bytes of each."""
    items = [item for item in entries if item[2]]
    alone = [(users[0], writer, size) for users, writer, size in items if len(users) == 1]
    columns = np.array(alone, np.int64).reshape(-1, 3).T
    return Use(
        columns[0],
        columns[1],
        columns[2].astype(np.float64),
        tuple((np.array(u, np.int64), w, size) for u, w, size in items if len(u) > 1),
    )


@dataclass(frozen=True)
class PipelineTensor:
    """A tensor that an operator or the caller writes when the model runs."""

    name: str
    size_bytes: int


@dataclass(frozen=True)
class PipelineOp:
    """One operator, at its place in the file.

    `inputs` and `outputs` index `PipelineGraph.tensors`, `constants` index
    `PipelineGraph.constant_bytes`; no index is repeated. `compiled_bytes` estimates the parameters
    after the Edge TPU compiler. `states` are the variables that the operator keeps from run to run:
    operators that share one stay in one stage.
    """

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: tuple[int, ...]
    macs: int
    compiled_bytes: int
    states: tuple[int, ...] = ()


@dataclass(frozen=True)
class PipelineGraph:
    """A model. Operators are in topological order; `inputs` and `outputs` index `tensors`."""

    name: str
    tensors: tuple[PipelineTensor, ...]
    constant_bytes: tuple[int, ...]
    ops: tuple[PipelineOp, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @cached_property
    def producer(self) -> dict[int, int]:
        """From a tensor to the operator that writes it; graph inputs have none."""
        return {tensor: index for index, op in enumerate(self.ops) for tensor in op.outputs}

    @cached_property
    def consumers(self) -> dict[int, tuple[int, ...]]:
        """From a tensor to the operators that read it, in their order."""
        return _readers(op.inputs for op in self.ops)

    @cached_property
    def constant_users(self) -> dict[int, tuple[int, ...]]:
        """From a constant to the operators that read it, in their order."""
        return _readers(op.constants for op in self.ops)

    @cached_property
    def uses(self) -> Uses:
        """Reads and writes of the operators, as arrays."""
        size = [tensor.size_bytes for tensor in self.tensors]
        made = self.producer
        read = self.consumers
        ends = set(self.outputs)
        return Uses(
            constants=use((u, -1, self.constant_bytes[c]) for c, u in self.constant_users.items()),
            given=use((u, -1, size[t]) for t, u in read.items() if t not in made),
            written=use((u, made[t], size[t]) for t, u in read.items() if t in made),
            passed=use(
                (u, made[t], size[t]) for t, u in read.items() if t in made and t not in ends
            ),
            ends=use(((made[t],), made[t], size[t]) for t in sorted(ends)),
        )

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """For each operator the operators whose outputs it reads."""
        return tuple(
            tuple(sorted({self.producer[t] for t in op.inputs if t in self.producer}))
            for op in self.ops
        )

    @cached_property
    def anchored(self) -> frozenset[int]:
        """Operators that lie on a path from an input of the model to an output of it."""
        fed: set[int] = set()
        for index, op in enumerate(self.ops):
            if set(op.inputs) & set(self.inputs) or fed.intersection(self.predecessors[index]):
                fed.add(index)
        live = {self.producer[t] for t in self.outputs if t in self.producer}
        for index in reversed(range(len(self.ops))):
            if index in live:
                live.update(self.predecessors[index])
        return frozenset(fed & live)

    @cached_property
    def param_bytes(self) -> int:
        """Bytes of all parameters, a shared constant once."""
        return sum(self.constant_bytes[constant] for constant in self.constant_users)

    def op_param_bytes(self, index: int) -> int:
        """Bytes of the parameters of one operator."""
        return sum(self.constant_bytes[c] for c in self.ops[index].constants)


def _readers(read: Iterable[Sequence[int]]) -> dict[int, tuple[int, ...]]:
    """From what operators read, by operator, to those that read it."""
    readers: dict[int, list[int]] = {}
    for index, entries in enumerate(read):
        for entry in entries:
            readers.setdefault(entry, []).append(index)
    return {entry: tuple(users) for entry, users in readers.items()}
