"""Estimated instructions of operators for which nothing was measured.

Kernels whose coefficients are known have a formula each (`fitted.py`). For the others, and for
cores without the DSP extension, instructions = per_mac * MACs + per_element * output elements +
per_call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.boards import Core
from toolchain.cost import Cost
from toolchain.cost.fitted import fitted_copies, fitted_count
from toolchain.ir import DType, Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.lowering import Lowered


@dataclass(frozen=True)
class Coefficients:
    """Instructions per multiply-accumulate, per output element and per call."""

    per_mac: float
    per_element: float
    per_call: float


DSP = Coefficients(per_mac=1.2, per_element=10.9, per_call=280.0)
HELIUM = Coefficients(per_mac=0.22, per_element=13.7, per_call=340.0)
PLAIN = Coefficients(per_mac=5.0, per_element=25.0, per_call=400.0)
WIDE_SUMS = Coefficients(per_mac=4.7, per_element=112.0, per_call=220.0)
"""For int16 operators that multiply by weights, on M4 and M55 alike; fitted over samples of each
kind."""
WIDE_ELEMENTS = Coefficients(per_mac=0.0, per_element=28.0, per_call=70.0)
"""For all other int16 operators."""
FLOAT_UNIT = Coefficients(per_mac=6.5, per_element=30.0, per_call=250.0)
"""For float32 operators on cores with a floating-point unit: M4, M7 and M55 alike."""
FLOAT_SOFTWARE = Coefficients(per_mac=110.0, per_element=400.0, per_call=400.0)
"""For float32 operators on other cores."""
_PER_COPIED_BYTE = 0.35
_PER_COPY = 45.0


@dataclass(frozen=True)
class AnalyticCostModel:
    """The cost model that needs no measurement."""

    unit: str = "instructions"

    def cost(self, lowered: Lowered, number: int) -> Cost:
        """Estimated instructions; 0 for an operator that moves no bytes."""
        graph, core = lowered.graph, lowered.core
        op = graph.ops[number]
        if only_views(op, graph):
            return Cost(0, measured=False)
        count = fitted_count(lowered, number)
        if count is not None:
            return Cost(round(count), measured=False)
        fit = HELIUM if core.mve else DSP if core.dsp else PLAIN
        if spec_of(op.kind).form(op, graph).dtypes == {DType.INT16}:
            fit = WIDE_SUMS if spec_of(op.kind).macs(op, graph) else WIDE_ELEMENTS
        if spec_of(op.kind).form(op, graph).dtypes == {DType.FLOAT32}:
            fit = FLOAT_UNIT if core.fpu else FLOAT_SOFTWARE
        elif op.kind == "block_concat":
            size_bytes = sum(graph.tensors[name].size_bytes for name in op.outputs)
            return self.copies((size_bytes,), core)
        return Cost(_count(fit, op, graph), measured=False)

    def copies(self, sizes: Sequence[int], core: Core) -> Cost:
        """Estimated instructions of newlib's memcpy, which copies words."""
        count = fitted_copies(sizes, core)
        if count is None:
            count = _PER_COPIED_BYTE * sum(sizes) + _PER_COPY * len(sizes)
        return Cost(round(count), measured=False)


def as_integers(op: Op, graph: Graph, core: Core) -> int:
    """Estimated instructions of the operator if its tensors were int8."""
    return _count(HELIUM if core.mve else DSP if core.dsp else PLAIN, op, graph)


def _count(fit: Coefficients, op: Op, graph: Graph) -> int:
    elements = sum(graph.tensors[name].elements for name in op.outputs)
    macs = spec_of(op.kind).macs(op, graph)
    return round(fit.per_mac * macs + fit.per_element * elements + fit.per_call)


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
