"""`thimble_batch_matmul_s16`: products of int16 matrices, with sums in int64."""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.extents import Extents
from toolchain.ops.kernel import Argument, Call, Kernel, Output, Scratch, Touched
from toolchain.ops.matmul.kernels.products import (
    column_bytes,
    extents_of_product,
    integer_shape,
    matrices,
)

FUNCTION = "thimble_batch_matmul_s16"


def kernel(op: Op, graph: Graph, factor: tuple[int, int]) -> Kernel:
    """`factor` is a multiplier and its left shift. Raises UnsupportedError for too many batch
    dimensions.
    """
    arguments: dict[str, Argument] = {
        "shape": integer_shape(op, graph, factor),
        **matrices(),
        "scratch": Scratch(),
        "output": Output(0),
    }
    call = Call(FUNCTION, arguments)
    return Kernel((call,), _extents, scratch_bytes=column_bytes(call))


def _extents(touched: Touched) -> Extents:
    return extents_of_product(touched, "shape", 2, 2, column_bytes(touched.call))
