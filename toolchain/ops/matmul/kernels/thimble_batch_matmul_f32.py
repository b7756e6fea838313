"""`thimble_batch_matmul_f32`: products of float32 matrices."""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.extents import Extents
from toolchain.ops.kernel import Call, Kernel, Output, Struct, Touched
from toolchain.ops.matmul.common import product_shape
from toolchain.ops.matmul.kernels.products import (
    extents_of_product,
    matrices,
    sizes_of,
    steps_of,
)

FUNCTION = "thimble_batch_matmul_f32"


def kernel(op: Op, graph: Graph) -> Kernel:
    """Raises UnsupportedError for too many batch dimensions."""
    shape = product_shape(op, graph)
    operands = {name: Struct("thimble_matrix_f32", steps_of(shape, name)) for name in "xy"}
    params = Struct("thimble_matmul_f32_params", sizes_of(shape) | operands)
    call = Call(FUNCTION, {"params": params, **matrices(), "output": Output(0)})
    return Kernel((call,), _extents)


def _extents(touched: Touched) -> Extents:
    return extents_of_product(touched, "params", 4, 4, 0)
