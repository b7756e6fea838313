"""`thimble_partial_matmul_s8`: int32 sums over a part of the inner dimension of int8 matrices."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.matmul.common import BatchMatMul
from toolchain.ops.matmul.kernels import products

FUNCTION = "thimble_partial_matmul_s8"
SUMS = 2
"""The input with the sums of the blocks before."""


def kernel(op: kit.Operator[BatchMatMul]) -> kit.Kernel:
    """Raises UnsupportedError for too many batch dimensions."""
    arguments: dict[str, kit.Argument] = {
        "shape": products.product_shape(op),
        "x": kit.Input(0),
        "y": kit.Input(1),
        "scratch": kit.Scratch(),
        "sums": kit.Input(SUMS),
        "output": kit.Output(0),
    }
    call = kit.Call(FUNCTION, arguments)
    added = op.y.elements * (op.inputs[SUMS] is not None)
    return kit.Kernel(
        (call,),
        _extents,
        scratch_bytes=products.column_bytes(call),
        # Each sum is read just before it is written, column by column.
        find_overlaps=lambda: (kit.SafeOverlap(SUMS, exact=True),) if added else (),
        find_terms=lambda: {**products.product_terms(call), "added": added},
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    extents = products.extents_of_product(
        touched, "shape", 1, 4, products.column_bytes(touched.call)
    )
    if not touched.has(SUMS):
        return extents
    return kit.Extents(
        {**extents.inputs, SUMS: extents.outputs[0]}, extents.outputs, scratch=extents.scratch
    )
