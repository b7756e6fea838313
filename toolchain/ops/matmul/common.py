"""Parts of the matrix products: attributes, shape rule, int32 sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit


@dataclass(frozen=True)
class BatchMatMul(kit.Attributes):
    """`adjoint_x` and `adjoint_y`: the operand's last two dimensions are swapped before the
    product.
    """

    adjoint_x: bool = False
    adjoint_y: bool = False
    rounding: kit.Rounding = kit.Rounding.TFLITE


def _matrix(shape: tuple[int, ...], adjoint: bool) -> tuple[int, int]:
    rows, columns = shape[-2:]
    return (columns, rows) if adjoint else (rows, columns)


def infer_matmul(op: kit.Operator[BatchMatMul]) -> kit.TensorTypes:
    """Shape rule. Raises ValueError if the operands' shapes do not match."""
    x, y, attributes = op.x, op.input(1), op.attributes
    if min(len(x.shape), len(y.shape)) < 2:
        raise ValueError(f"needs matrices, got {x.shape} and {y.shape}")
    rows, depth = _matrix(x.shape, attributes.adjoint_x)
    other_depth, columns = _matrix(y.shape, attributes.adjoint_y)
    if depth != other_depth:
        raise ValueError(f"inner dimensions {depth} and {other_depth} differ")
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return (kit.TensorType((*batch, rows, columns), x.dtype),)


def matmul_sums(op: kit.Operator[BatchMatMul], inputs: kit.Inputs) -> NDArray[np.int64]:
    """The sums of products in int64, zero points subtracted."""
    x, y, attributes = op.x, op.input(1), op.attributes
    left = inputs[0].astype(np.int64) - x.q.zero_point
    right = inputs[1].astype(np.int64) - y.q.zero_point
    if attributes.adjoint_x:
        left = np.swapaxes(left, -1, -2)
    if attributes.adjoint_y:
        right = np.swapaxes(right, -1, -2)
    return left @ right


def matmul_reach(op: kit.Operator[BatchMatMul]) -> tuple[int, int]:
    """The least and greatest sum of int8 operands, before it wraps: by an operand's values, where
    they are constant.
    """
    attributes = op.attributes
    x, y = (op.input(index) for index in (0, 1))
    known, other, swapped = y, x, not attributes.adjoint_y
    if y.constant is None and x.constant is not None:
        known, other, swapped = x, y, attributes.adjoint_x
    low, high = -128 - other.q.zero_point, 127 - other.q.zero_point
    if known.constant is None:
        ends = -128 - known.q.zero_point, 127 - known.q.zero_point
        products = [end * value for end in ends for value in (low, high)]
        depth = matmul_depth(op)
        return depth * min(products), depth * max(products)
    rows = known.constant.astype(np.int64) - known.q.zero_point
    rows = np.swapaxes(rows, -1, -2) if swapped else rows
    least, greatest = np.minimum(rows * low, rows * high), np.maximum(rows * low, rows * high)
    return int(least.sum(axis=-1).min()), int(greatest.sum(axis=-1).max())


def matmul_depth(op: kit.Operator[BatchMatMul]) -> int:
    """The inner dimension, over which the product sums."""
    return _matrix(op.x.shape, op.attributes.adjoint_x)[1]


def matmul_macs(op: kit.Operator[BatchMatMul]) -> int:
    """Multiply-accumulates: one per output and index of the inner dimension."""
    return op.y.elements * matmul_depth(op)


def sample_matmul(rng: np.random.Generator) -> kit.Graph:
    """A random int8 product: either operand transposed, batches broadcast."""
    rows, depth, columns = (int(v) for v in rng.integers(1, 20, 3))
    batch = tuple(int(v) for v in rng.integers(1, 4, int(rng.integers(0, 3))))
    attributes = BatchMatMul(bool(rng.random() < 0.5), bool(rng.random() < 0.5))
    x_shape = (depth, rows) if attributes.adjoint_x else (rows, depth)
    y_shape = (columns, depth) if attributes.adjoint_y else (depth, columns)
    y_batch = tuple(1 if rng.random() < 0.3 else size for size in batch)
    scales = [float(np.float32(s)) for s in 2.0 ** rng.uniform(-8, -3, 2)]
    spread = 90 * np.sqrt(depth) * 2.0 ** rng.uniform(-1, 2)
    scales.append(float(np.float32(scales[0] * scales[1] * spread)))
    zeros = [int(v) for v in rng.integers(-128, 128, 3)]
    q = [kit.Quantisation((s,), (z,)) for s, z in zip(scales, zeros, strict=True)]
    constant = rng.integers(-128, 128, y_batch + y_shape, np.int8) if rng.random() < 0.4 else None
    x = kit.Tensor("x", batch + x_shape, kit.DType.INT8, q[0])
    y = kit.Tensor("y", y_batch + y_shape, kit.DType.INT8, q[1], constant)
    return kit.sample("batch_matmul", attributes, x, y, q=q[2], outputs=("z",), name="matmul")
