"""The plan: a graph, the order of its operators, where every tensor lies, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.ir.arena import ArenaPlan
from toolchain.ir.graph import Graph
from toolchain.ir.schedule import Schedule
from toolchain.ir.tensor import DType, Quantisation


@dataclass(frozen=True)
class Boundary:
    """How a model's own input or output differs from the graph tensor that stands for it.

    `tensor` is the graph's (int8, NHWC) input or output. `dtype` and `quantisation` are those in
    the model file: float32 without a quantisation, or uint8 with one; the conversion is
    q = round(real / scale) + zero_point with the graph tensor's scale, halves away from zero.
    `permutation` is the model's layout: axis i of the graph tensor is axis permutation[i] of the
    model's, () where they agree. A tensor without a Boundary is the same in both.
    """

    tensor: str
    dtype: DType
    quantisation: Quantisation | None = None
    permutation: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlannedOp:
    """What the plan knows of one operator. `functions` are the C functions its code calls."""

    name: str
    kind: str
    macs: int
    scratch_bytes: int
    functions: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """Everything that codegen needs and the report shows.

    `operators` is parallel to `graph.ops`; `step_bytes` (the stable footprint) to
    `schedule.order`. `core` and `board` are names.
    """

    graph: Graph
    board: str
    core: str
    schedule: Schedule
    arena: ArenaPlan
    operators: tuple[PlannedOp, ...]
    step_bytes: tuple[int, ...]
    boundaries: tuple[Boundary, ...] = ()

    @property
    def macs(self) -> int:
        return sum(op.macs for op in self.operators)

    @property
    def peak_step(self) -> int:
        """The first step of the order that holds the peak; 0 for a graph without operators."""
        return self.step_bytes.index(max(self.step_bytes)) if self.step_bytes else 0

    def boundary(self, tensor: str) -> Boundary | None:
        """How the model's own form of a graph input or output differs; None where it does not."""
        return next((b for b in self.boundaries if b.tensor == tensor), None)
