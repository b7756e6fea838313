"""`thimble_batch_matmul_s8`: products of int8 matrices."""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.requant import requant
from toolchain.ops.extents import Extents
from toolchain.ops.kernel import Argument, Call, Kernel, Output, Scratch, Touched
from toolchain.ops.matmul.kernels.products import (
    column_bytes,
    extents_of_product,
    integer_shape,
    matrices,
    product_terms,
)

FUNCTION = "thimble_batch_matmul_s8"


def kernel(op: Op, graph: Graph, factor: tuple[int, int]) -> Kernel:
    """`factor` is a multiplier and its shift code. Raises UnsupportedError for too many batch
    dimensions.
    """
    arguments: dict[str, Argument] = {
        "shape": integer_shape(op, graph, factor),
        "requant": requant(graph.output(op).q.zero_point, -128, 127),
        **matrices(),
        "scratch": Scratch(),
        "output": Output(0),
    }
    call = Call(FUNCTION, arguments)
    return Kernel(
        (call,),
        _extents,
        scratch_bytes=column_bytes(call),
        find_terms=lambda: product_terms(call),
    )


def _extents(touched: Touched) -> Extents:
    return extents_of_product(touched, "shape", 1, 1, column_bytes(touched.call))
