"""`thimble_partial_matmul_s8`: int32 sums over a part of the inner dimension of int8 matrices."""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.extents import Extents
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    SafeOverlap,
    Scratch,
    Touched,
)
from toolchain.ops.matmul.kernels.products import (
    column_bytes,
    extents_of_product,
    integer_shape,
    matrices,
    product_terms,
)

FUNCTION = "thimble_partial_matmul_s8"
SUMS = 2
"""The input with the sums of the blocks before."""


def kernel(op: Op, graph: Graph) -> Kernel:
    """Raises UnsupportedError for too many batch dimensions."""
    arguments: dict[str, Argument] = {
        "shape": integer_shape(op, graph),
        **matrices(),
        "scratch": Scratch(),
        "sums": Input(SUMS),
        "output": Output(0),
    }
    call = Call(FUNCTION, arguments)
    added = graph.output(op).elements * bool(op.inputs[SUMS])
    return Kernel(
        (call,),
        _extents,
        scratch_bytes=column_bytes(call),
        # Each sum is read just before it is written, column by column.
        find_overlaps=lambda: (SafeOverlap(SUMS, exact=True),) if added else (),
        find_terms=lambda: {**product_terms(call), "added": added},
    )


def _extents(touched: Touched) -> Extents:
    found = extents_of_product(touched, "shape", 1, 4, column_bytes(touched.call))
    if not touched.has(SUMS):
        return found
    return Extents({**found.inputs, SUMS: found.outputs[0]}, found.outputs, scratch=found.scratch)
