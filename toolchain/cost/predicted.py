"""The cost model that needs no measurement: loop counts times fitted coefficients.

Kernels that were fitted have a coefficient for each of their loops (`fitted.py`). For the others
the cost of a call, of a multiply-accumulate and of an element stand in.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from toolchain.boards import Board, Core, Target
from toolchain.cost import NOTHING, Cost
from toolchain.cost.basis import CYCLES, Basis
from toolchain.cost.fitted import (
    Fit,
    fit_for,
    fit_of,
    kernel_terms,
    memcpy_terms,
    plain_terms,
    rough_kernel,
)
from toolchain.cost.key import COPIES
from toolchain.cost.stalls import Stalls, stalls_of
from toolchain.ir import Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.lowering import Lowered


@dataclass(frozen=True)
class PredictedCostModel:
    """Costs by formula. `stalls`: how long memories make the core wait; None where they never do.

    `of_bytes`: all constants of the network of which the graphs are parts.
    """

    core: Core
    stalls: Stalls | None = None
    of_bytes: int = 0

    @property
    def unit(self) -> str:
        return self._fit.unit

    @property
    def identity(self) -> Hashable:
        """Equal where the core, in every field, the stalls (`Stalls.identity`), and the constants
        of the network are.
        """
        return self.core, None if self.stalls is None else self.stalls.identity, self.of_bytes

    @cached_property
    def _fit(self) -> Fit:
        return fit_of(self.core)

    def cost(self, lowered: Lowered, number: int) -> Cost:
        """The estimate; 0 for an operator that moves no bytes."""
        graph = lowered.graph
        op = graph.ops[number]
        if lowered.kernels[number].nested:
            return self._nested(lowered, number)
        if only_views(op, graph):
            return NOTHING
        kernel, terms = kernel_terms(lowered, number)
        fit = fit_for(self.core, op, graph)
        count = fit.count(kernel, terms)
        if count is None and op.kind == "block_concat":
            size_bytes = sum(graph.tensors[name].size_bytes for name in op.outputs)
            return self.copies((size_bytes,))
        if count is None:
            kernel, terms = rough_kernel(op, graph, self.core), plain_terms(op, graph)
            count = _rough(fit, kernel, op, graph)
        if self.stalls is not None:
            of_bytes = max(self.of_bytes, graph.constant_bytes)
            size_bytes = constant_bytes(lowered, number)
            chosen = lowered.kernels[number]
            banks = chosen.constants_in, chosen.code_in
            count += self.stalls.cycles(kernel, terms, size_bytes, of_bytes, *banks)
        return Cost(round(count), Basis.PREDICTED)

    def _nested(self, lowered: Lowered, number: int) -> Cost:
        """The cost of the branch that takes longer, or of one turn of a loop."""
        kernel = lowered.kernels[number]
        each = []
        for nested in kernel.nested:
            inner = Lowered(nested.graph, lowered.core, nested.kernels, lowered.preference)
            copies = self.copies(nested.copied_bytes) if nested.copied_bytes else NOTHING
            count = sum(self.cost(inner, called).count for called in nested.called)
            each.append(count + copies.count)
        graph = lowered.graph
        results = self.copies([graph.tensors[n].size_bytes for n in graph.ops[number].outputs])
        longest = max(each) if kernel.one_of else sum(each)
        return Cost(longest + results.count, Basis.PREDICTED)

    def within(self, graph: Graph) -> PredictedCostModel:
        """This model for parts of `graph`: all its constants pass the caches between two runs of a
        part."""
        return replace(self, of_bytes=graph.constant_bytes)

    def copies(self, sizes: Sequence[int]) -> Cost:
        """The estimate of newlib's memcpy, which copies words."""
        terms = memcpy_terms(sizes)
        count = self._fit.count(COPIES, terms)
        assert count is not None, "every core's coefficients have copies"
        if self.stalls is not None:
            count += self.stalls.cycles(COPIES, terms, 0, 0)
        return Cost(round(count), Basis.PREDICTED)

    def as_integers(self, op: Op, graph: Graph) -> int:
        """A rough estimate of the operator if its tensors were int8."""
        return round(_rough(self._fit, "int8", op, graph))


def _rough(fit: Fit, kernel: str, op: Op, graph: Graph) -> float:
    count = fit.count(kernel, plain_terms(op, graph))
    assert count is not None, f"every core's coefficients have {kernel}"
    return count


def predicted_model(target: Board | Target) -> PredictedCostModel:
    """The model of a board or chip: in cycles if its core has coefficients of its own."""
    if fit_of(target.core).unit != CYCLES:
        return PredictedCostModel(target.core)
    return PredictedCostModel(target.core, stalls_of(target))


def constant_bytes(lowered: Lowered, number: int) -> int:
    """Bytes of the constants of operator `number`, as its kernel packs them, or else as the model
    has them."""
    graph, packed_bytes = lowered.graph, lowered.kernels[number].packed_bytes
    if packed_bytes:
        return packed_bytes
    op = graph.ops[number]
    tensors = (graph.tensors[name] for name in dict.fromkeys(op.present_inputs()))
    return sum(tensor.size_bytes for tensor in tensors if tensor.is_constant)


def only_views(op: Op, graph: Graph) -> bool:
    """Whether every byte of every output can lie in place: a reshape, a split, a concat of rows."""
    spec = spec_of(op.kind)
    aliases = spec.aliases(op, graph) if spec.rearranges else ()
    views = {alias.view for alias in aliases}
    return bool(aliases) and all(
        name in views
        or sum(graph.tensors[a.view].size_bytes for a in aliases if a.base == name)
        == graph.tensors[name].size_bytes
        for name in op.outputs
    )
