"""`thimble_batch_matmul_f32`: products of float32 matrices."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.matmul.common import BatchMatMul, product_shape
from toolchain.ops.matmul.kernels import products

FUNCTION = "thimble_batch_matmul_f32"


def kernel(op: kit.Operator[BatchMatMul]) -> kit.Kernel:
    """Raises UnsupportedError for too many batch dimensions."""
    shape = product_shape(op)
    operands = {
        name: kit.Struct("thimble_matrix_f32", products.steps_of(shape, name)) for name in "xy"
    }
    params = kit.Struct("thimble_matmul_f32_params", products.sizes_of(shape) | operands)
    call = kit.Call(FUNCTION, {"params": params, **products.matrices(), "output": kit.Output(0)})
    return kit.Kernel((call,), _extents)


def _extents(touched: kit.Touched) -> kit.Extents:
    return products.extents_of_product(touched, "params", 4, 4, 0)
