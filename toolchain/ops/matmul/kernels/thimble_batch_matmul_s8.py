"""`thimble_batch_matmul_s8`: products of int8 matrices."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic.requant import requant
from toolchain.ops.matmul.common import BatchMatMul
from toolchain.ops.matmul.kernels import products

FUNCTION = "thimble_batch_matmul_s8"


def kernel(op: kit.Operator[BatchMatMul], factor: tuple[int, int]) -> kit.Kernel:
    """`factor` is a multiplier and its shift code. Raises UnsupportedError for too many batch
    dimensions.
    """
    arguments: dict[str, kit.Argument] = {
        "shape": products.integer_shape(op, factor),
        "requant": requant(op.y.q.zero_point, -128, 127),
        **products.matrices(),
        "scratch": kit.Scratch(),
        "output": kit.Output(0),
    }
    call = kit.Call(FUNCTION, arguments)
    return kit.Kernel(
        (call,),
        _extents,
        scratch_bytes=products.column_bytes(call),
        find_terms=lambda: products.product_terms(call),
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    return products.extents_of_product(touched, "shape", 1, 1, products.column_bytes(touched.call))
