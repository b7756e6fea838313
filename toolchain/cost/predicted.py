"""The cost model that needs no measurement: loop counts times fitted coefficients.

Kernels that were fitted have a coefficient for each of their loops (`fitted.py`). For the others
the cost of a call, of a multiply-accumulate and of an element stand in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.boards import Board, Core
from toolchain.cost import NOTHING, Cost
from toolchain.cost.basis import Basis
from toolchain.cost.fitted import Fit, fit_of, kernel_terms, memcpy_terms, plain_terms, rough_kernel
from toolchain.cost.key import COPIES
from toolchain.ir import Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.lowering import Lowered


@dataclass(frozen=True)
class Target:
    """What the time of a kernel depends on: the core."""

    core: Core


def target_of(board: Board) -> Target:
    """A board as the cost model sees it."""
    return Target(board.core)


@dataclass(frozen=True)
class PredictedCostModel:
    """Costs on one target by formula."""

    target: Target

    @property
    def unit(self) -> str:
        return self._fit.unit

    @property
    def _fit(self) -> Fit:
        return fit_of(self.target.core)

    def cost(self, lowered: Lowered, number: int) -> Cost:
        """The estimate; 0 for an operator that moves no bytes."""
        graph = lowered.graph
        op = graph.ops[number]
        if only_views(op, graph):
            return NOTHING
        count = self._fit.count(*kernel_terms(lowered, number))
        if count is None and op.kind == "block_concat":
            size_bytes = sum(graph.tensors[name].size_bytes for name in op.outputs)
            return self.copies((size_bytes,))
        if count is None:
            count = self._rough(rough_kernel(op, graph, self.target.core), op, graph)
        return Cost(round(count), Basis.PREDICTED)

    def copies(self, sizes: Sequence[int]) -> Cost:
        """The estimate of newlib's memcpy, which copies words."""
        count = self._fit.count(COPIES, memcpy_terms(sizes))
        assert count is not None, "every core's coefficients have copies"
        return Cost(round(count), Basis.PREDICTED)

    def as_integers(self, op: Op, graph: Graph) -> int:
        """A rough estimate of the operator if its tensors were int8."""
        return round(self._rough("int8", op, graph))

    def _rough(self, kernel: str, op: Op, graph: Graph) -> float:
        count = self._fit.count(kernel, plain_terms(op, graph))
        assert count is not None, f"every core's coefficients have {kernel}"
        return count


def predicted_model(board: Board) -> PredictedCostModel:
    """The model of a board: in cycles if its core has coefficients of its own."""
    return PredictedCostModel(target_of(board))


def only_views(op: Op, graph: Graph) -> bool:
    """Whether every byte of every output can lie in place: a reshape, a split, a concat of rows."""
    aliases = spec_of(op.kind).aliases(op, graph)
    views = {alias.view for alias in aliases}
    return bool(aliases) and all(
        name in views
        or sum(graph.tensors[a.view].size_bytes for a in aliases if a.base == name)
        == graph.tensors[name].size_bytes
        for name in op.outputs
    )
