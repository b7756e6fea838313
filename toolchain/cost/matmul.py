"""Instructions of the int8 matrix product, on cores with the DSP extension, Helium or not.

The kernel widens each column of y once per call and then takes every row of x times it, so that a
call with few rows costs more for each product. Least squares of the relative error over 14 products
of 1 to 64 rows, both operands transposed or not, counted in QEMU (mps2-an500; mps3-an547 differs by
8% at most). Error at most 14%, within 5% where the depth is a multiple of four.
"""

from __future__ import annotations

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op
from toolchain.ops import spec_of
from toolchain.ops._matmul import matmul_attributes, matmul_depth

_PER_MAC, _PER_WIDENED, _PER_ELEMENT = 4.1, 19.9, 79.0
_PER_MAC_ASTRIDE = 18.2
"""More, where a row of x does not lie in one run."""


def matmul_count(op: Op, graph: Graph, core: Core) -> float | None:
    """Instructions of a product of int8 matrices; None for any other operator."""
    if op.kind != "batch_matmul" or not core.dsp or graph.input(op, 0).dtype is not DType.INT8:
        return None
    output = graph.output(op)
    widened = output.elements // output.shape[-2] * matmul_depth(op, graph)
    per_mac = _PER_MAC + _PER_MAC_ASTRIDE * matmul_attributes(op).adjoint_x
    macs = spec_of(op.kind).macs(op, graph)
    return per_mac * macs + _PER_WIDENED * widened + _PER_ELEMENT * output.elements
