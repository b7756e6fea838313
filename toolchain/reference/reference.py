"""The interface of references; and Thimble's own one, the operators' NumPy references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from toolchain.ir import Graph
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array

FLOAT_TOLERANCE = 2.0**-16
"""Allowed difference, as a share of a float32 tensor's largest element. Each operation has an error
of 2^-24 of its result, sums in another order at most 2^-24 per term, functions like exp 2^-22. A
hundred such layers one after another stay within it."""
SMALLEST = 1e-30
"""The largest element of a tensor that is all but zero."""


@dataclass(frozen=True)
class Judge:
    """A runtime, the operators of the file that it runs, and why it was chosen."""

    runtime: str
    operators: tuple[str, ...]
    why: str


class Reference(Protocol):
    """A runtime that has a model loaded.

    `name` identifies it for the user, `judges` for programs. `tolerance`: by how many units in the
    last place an output may differ from it and still count as equal. `not_independent`: '' if
    another runtime than Thimble's computes the outputs, else why none does.
    """

    @property
    def name(self) -> str: ...

    @property
    def judges(self) -> tuple[Judge, ...]: ...

    @property
    def tolerance(self) -> int: ...

    @property
    def not_independent(self) -> str: ...

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Outputs of one inference, in the file's order, for inputs in the file's order."""

    def restart(self) -> None:
        """Reset what the model keeps from run to run."""


@dataclass(frozen=True)
class NumpyReference:
    """Thimble's own operator references, where no other runtime takes the file."""

    graph: Graph
    not_independent: str
    states: dict[str, Array] = field(default_factory=dict)
    name: str = "Thimble's own NumPy references"
    tolerance: int = 0

    @property
    def judges(self) -> tuple[Judge, ...]:
        kinds = tuple(op.kind for op in self.graph.ops)
        return (Judge(self.name, kinds, self.not_independent),)

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return interpret(self.graph, inputs, self.states)

    def restart(self) -> None:
        self.states.clear()
