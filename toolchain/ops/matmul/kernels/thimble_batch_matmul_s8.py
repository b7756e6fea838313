"""`thimble_batch_matmul_s8`, `thimble_batch_matmul_s16` and `thimble_batch_matmul_f32`: products of
matrices. Products of int16 have sums in int64.
"""

from __future__ import annotations

from types import MappingProxyType

from toolchain.ops import kit
from toolchain.ops.arithmetic.requant import requant
from toolchain.ops.matmul.common import BatchMatMul
from toolchain.ops.matmul.kernels import products

FUNCTIONS = MappingProxyType(
    {
        kit.DType.INT8: "thimble_batch_matmul_s8",
        kit.DType.INT16: "thimble_batch_matmul_s16",
        kit.DType.FLOAT32: "thimble_batch_matmul_f32",
    }
)


def kernel(op: kit.Operator[BatchMatMul], factor: tuple[int, int] | None = None) -> kit.Kernel:
    """`factor` scales integers: a multiplier and its shift code, or for int16 its left shift.
    Raises UnsupportedError for too many batch dimensions.
    """
    dtype, floats, product = op.x.dtype, factor is None, products.product_shape(op, factor)
    arguments: dict[str, kit.Argument] = {"params" if floats else "shape": product}
    if dtype is kit.DType.INT8:
        arguments["requant"] = requant(op.y.q.zero_point, -128, 127)
    arguments |= {"x": kit.Input(0), "y": kit.Input(1)}
    arguments |= {} if floats else {"scratch": kit.Scratch()}
    call = kit.Call(FUNCTIONS[dtype], {**arguments, "output": kit.Output(0)})
    return kit.Kernel(
        (call,),
        lambda touched: _extents(touched, dtype),
        scratch_bytes=0 if floats else products.column_bytes(call),
        find_terms=(lambda: products.product_terms(call)) if dtype is kit.DType.INT8 else None,
    )


def _extents(touched: kit.Touched, dtype: kit.DType) -> kit.Extents:
    width = dtype.size_bytes
    if dtype is kit.DType.FLOAT32:
        return products.extents_of_product(touched, "params", width, width, 0)
    scratch = products.column_bytes(touched.call)
    return products.extents_of_product(touched, "shape", width, width, scratch)
