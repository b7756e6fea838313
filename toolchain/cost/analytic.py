"""Instructions from multiply-accumulates and elements, by a formula fitted to measurements.

instructions = per_mac * MACs + per_element * output elements + per_call. The coefficients are a
least-squares fit over the operators of MLPerf Tiny and other models, counted in QEMU
(`benchmarks/firmware.py --fit` prints them anew). Convolutions have formulas of their own
(`windows.py`), and so have matrix products (`matmul.py`) and operators that sum in parts
(`sums.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.boards import Core
from toolchain.cost import Cost
from toolchain.cost.matmul import matmul_count
from toolchain.cost.sums import sums_count
from toolchain.cost.windows import window_count
from toolchain.ir import DType, Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.block_concat import single_run


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
"""Of int16 operators that multiply by weights, on M4 and M55 alike; over samples of each kind."""
WIDE_ELEMENTS = Coefficients(per_mac=0.0, per_element=28.0, per_call=70.0)
"""Of all other int16 operators."""
FLOAT_UNIT = Coefficients(per_mac=6.5, per_element=30.0, per_call=250.0)
"""Of float32 operators on cores with a floating-point unit, M4, M7 and M55 alike."""
FLOAT_SOFTWARE = Coefficients(per_mac=110.0, per_element=400.0, per_call=400.0)
"""Of float32 operators on other cores."""
_PER_COPIED_BYTE = 0.35
_PER_COPY = 45.0
_PER_MOVED_BYTE, _PER_MOVED_BYTE_ASTRAY = 0.13, 0.75
"""`thimble_move` on cores with the DSP extension: of whole words, and of others."""
_PER_MOVED_BYTE_HELIUM = 0.25
_PER_MOVE = 34.0


@dataclass(frozen=True)
class AnalyticCostModel:
    """The cost model that needs no measurement."""

    unit: str = "instructions"

    def cost(self, op: Op, graph: Graph, core: Core) -> Cost:
        """Estimated instructions; 0 for an operator that only renames bytes."""
        if _only_views(op, graph):
            return Cost(0, measured=False)
        fit = HELIUM if core.mve else DSP if core.dsp else PLAIN
        if spec_of(op.kind).dtypes == {DType.INT16}:
            fit = WIDE_SUMS if spec_of(op.kind).macs(op, graph) else WIDE_ELEMENTS
        if spec_of(op.kind).dtypes == {DType.FLOAT32}:
            fit = FLOAT_UNIT if core.fpu else FLOAT_SOFTWARE
            return Cost(_count(fit, op, graph), measured=False)
        if op.kind == "block_concat":
            return Cost(round(_block_concat(op, graph, core)), measured=False)
        for formula in (window_count, matmul_count, sums_count):
            count = formula(op, graph, core)
            if count is not None:
                return Cost(round(count), measured=False)
        return Cost(_count(fit, op, graph), measured=False)

    def copies(self, sizes: Sequence[int], core: Core) -> Cost:
        """Estimated instructions of newlib's memcpy, which moves words."""
        count = _PER_COPIED_BYTE * sum(sizes) + _PER_COPY * len(sizes)
        return Cost(round(count), measured=False)


def _block_concat(op: Op, graph: Graph, core: Core) -> float:
    """Blocks from 64 bytes to 4 KiB moved up, down and astray, on mps2-an500 and mps3-an547."""
    size_bytes = sum(graph.tensors[name].size_bytes for name in op.outputs)
    if single_run(op, graph) is None or not core.dsp:
        return _PER_COPIED_BYTE * size_bytes + _PER_COPY
    if core.mve:
        return _PER_MOVED_BYTE_HELIUM * size_bytes + _PER_MOVE
    return (_PER_MOVED_BYTE_ASTRAY if size_bytes % 4 else _PER_MOVED_BYTE) * size_bytes + _PER_MOVE


def as_integers(op: Op, graph: Graph, core: Core) -> int:
    """Estimated instructions of the operator if its tensors were int8."""
    return _count(HELIUM if core.mve else DSP if core.dsp else PLAIN, op, graph)


def _count(fit: Coefficients, op: Op, graph: Graph) -> int:
    elements = sum(graph.tensors[name].elements for name in op.outputs)
    macs = spec_of(op.kind).macs(op, graph)
    return round(fit.per_mac * macs + fit.per_element * elements + fit.per_call)


def _only_views(op: Op, graph: Graph) -> bool:
    """Whether every byte of every output can lie in place: a reshape, a split, a concat of rows."""
    aliases = spec_of(op.kind).aliases(op, graph)
    views = {alias.view for alias in aliases}
    return bool(aliases) and all(
        name in views
        or sum(graph.tensors[a.view].size_bytes for a in aliases if a.base == name)
        == graph.tensors[name].size_bytes
        for name in op.outputs
    )
