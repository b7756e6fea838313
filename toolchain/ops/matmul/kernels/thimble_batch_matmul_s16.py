"""`thimble_batch_matmul_s16`: products of int16 matrices, with sums in int64."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.matmul.common import BatchMatMul
from toolchain.ops.matmul.kernels import products

FUNCTION = "thimble_batch_matmul_s16"


def kernel(op: kit.Operator[BatchMatMul], factor: tuple[int, int]) -> kit.Kernel:
    """`factor` is a multiplier and its left shift. Raises UnsupportedError for too many batch
    dimensions.
    """
    arguments: dict[str, kit.Argument] = {
        "shape": products.integer_shape(op, factor),
        **products.matrices(),
        "scratch": kit.Scratch(),
        "output": kit.Output(0),
    }
    call = kit.Call(FUNCTION, arguments)
    return kit.Kernel((call,), _extents, scratch_bytes=products.column_bytes(call))


def _extents(touched: kit.Touched) -> kit.Extents:
    return products.extents_of_product(touched, "shape", 2, 2, products.column_bytes(touched.call))
