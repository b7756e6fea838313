"""`thimble_batch_matmul_s8`, `thimble_batch_matmul_s16` and `thimble_batch_matmul_f32`: products of
matrices. Products of int16 have sums in int64; constant matrices of int8 beside int16 are packed as
int16.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

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
    widened = dtype is kit.DType.INT16 and op.input(1).dtype is kit.DType.INT8
    arguments |= {"y": kit.Packed("y")} if widened else {}
    arguments |= {} if floats else {"scratch": kit.Scratch()}
    call = kit.Call(FUNCTIONS[dtype], {**arguments, "output": kit.Output(0)})
    return kit.Kernel(
        (call,),
        lambda touched: _extents(touched, dtype),
        (kit.Constant("y", lambda: _widened(op.input(1)), "matrices"),) if widened else (),
        scratch_bytes=0 if floats else products.column_bytes(call),
        find_terms=(lambda: products.product_terms(call)) if dtype is kit.DType.INT8 else None,
    )


def _extents(touched: kit.Touched, dtype: kit.DType) -> kit.Extents:
    width = dtype.size_bytes
    if dtype is kit.DType.FLOAT32:
        return products.extents_of_product(touched, "params", width, width, 0)
    scratch = products.column_bytes(touched.call)
    made = products.extents_of_product(touched, "shape", width, width, scratch)
    if isinstance(touched.call.arguments["y"], kit.Input):
        return made
    return replace(made, inputs={0: made.inputs[0]}, constants={"y": made.inputs[1].end})


def _widened(matrices: kit.Tensor) -> NDArray[np.int16]:
    return kit.constant_of(matrices).astype(np.int16)
