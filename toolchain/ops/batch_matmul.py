"""Matrix product over batches: output[..., i, j] = sum_k x[..., i, k] * y[..., k, j].

TFLite BATCH_MATMUL, int8, either operand transposed in its last two dimensions, batch dimensions
broadcast. Arithmetic: TFLite `reference_ops::BatchMatMul` for int8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops._conv import requantise
from toolchain.ops._conv_packing import shift_code
from toolchain.ops._fixed_point import quantize_multiplier
from toolchain.ops.spec import (
    Array,
    Axis,
    Lowering,
    OnnxNode,
    OpSpec,
    Reach,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_BATCH_DIMS = 3


@dataclass(frozen=True)
class BatchMatMul(Attributes):
    """`adjoint_x`, `adjoint_y`: swap the last two dimensions of that operand first."""

    adjoint_x: bool = False
    adjoint_y: bool = False


def _attributes(op: Op) -> BatchMatMul:
    assert isinstance(op.attributes, BatchMatMul)
    return op.attributes


def _matrix(shape: tuple[int, ...], adjoint: bool) -> tuple[int, int]:
    rows, columns = shape[-2:]
    return (columns, rows) if adjoint else (rows, columns)


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, y, attributes = graph.input(op, 0), graph.input(op, 1), _attributes(op)
    if min(len(x.shape), len(y.shape)) < 2:
        raise ValueError(f"needs matrices, got {x.shape} and {y.shape}")
    rows, depth = _matrix(x.shape, attributes.adjoint_x)
    other_depth, columns = _matrix(y.shape, attributes.adjoint_y)
    if depth != other_depth:
        raise ValueError(f"inner dimensions {depth} and {other_depth} differ")
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return (TensorType((*batch, rows, columns), x.dtype),)


def _axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    """Rows of the first operand, columns of the second, and matrices of a batch."""
    x, y, attributes = graph.input(op, 0), graph.input(op, 1), _attributes(op)
    shape = graph.output(op).shape
    rank, whole = len(shape), attributes
    row = Reach(len(x.shape) - (1 if attributes.adjoint_x else 2))
    column = Reach(len(y.shape) - (2 if attributes.adjoint_y else 1))

    def batch(operand: Tensor, axis: int) -> Reach | None:
        own = axis - (rank - len(operand.shape))
        return Reach(own) if own >= 0 and operand.shape[own] == shape[axis] else None

    return (
        *(
            Axis(axis, (batch(x, axis), batch(y, axis)), lambda before, after: whole)
            for axis in range(rank - 2)
        ),
        Axis(rank - 2, (row, None), lambda before, after: whole),
        Axis(rank - 1, (None, column), lambda before, after: whole),
    )


def _requantisation(op: Op, graph: Graph) -> tuple[int, int]:
    """`GetQuantizedConvolutionMultipler`: the product of the input scales is taken in float32."""
    x, y = graph.input(op, 0), graph.input(op, 1)
    product = float(np.float32(x.q.scale) * np.float32(y.q.scale))
    return quantize_multiplier(product / graph.output(op).q.scale)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, y, attributes = graph.input(op, 0), graph.input(op, 1), _attributes(op)
    left = inputs[0].astype(np.int64) - x.q.zero_point
    right = inputs[1].astype(np.int64) - y.q.zero_point
    if attributes.adjoint_x:
        left = np.swapaxes(left, -1, -2)
    if attributes.adjoint_y:
        right = np.swapaxes(right, -1, -2)
    multiplier, shift = _requantisation(op, graph)
    return (requantise(left @ right, multiplier, shift, graph.output(op), -128, 127),)


def _batch_steps(shape: tuple[int, ...], batch: tuple[int, ...]) -> tuple[int, ...]:
    """Elements between neighbours along each batch dimension; 0 where it is broadcast."""
    own = (1,) * (len(batch) - (len(shape) - 2)) + shape[:-2]
    steps = []
    for index, size in enumerate(own):
        inner = math.prod(own[index + 1 :]) * shape[-1] * shape[-2]
        steps.append(0 if size == 1 else inner)
    return tuple(steps)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    x, y, z = graph.input(op, 0), graph.input(op, 1), graph.output(op)
    attributes = _attributes(op)
    if len(z.shape) > 2 + _BATCH_DIMS:
        raise UnsupportedError(
            f"operator {op.name!r}: {len(z.shape) - 2} batch dimensions, at most {_BATCH_DIMS}; "
            "reshape the operands"
        )
    rows, depth = _matrix(x.shape, attributes.adjoint_x)
    columns = z.shape[-1]
    missing = (_BATCH_DIMS - (len(z.shape) - 2)) * (1,)
    batch = missing + z.shape[:-2]
    multiplier, shift = _requantisation(op, graph)
    x_steps = (1, rows) if attributes.adjoint_x else (depth, 1)
    y_steps = (depth, 1) if attributes.adjoint_y else (1, columns)
    return Lowering(
        functions=("thimble_batch_matmul_s8",),
        scratch_bytes=2 * -(-depth // 4) * 4,
        fields={
            "batch": batch,
            "x_batch": _batch_steps(x.shape, batch),
            "y_batch": _batch_steps(y.shape, batch),
            "rows": rows,
            "depth": depth,
            "columns": columns,
            "x_steps": x_steps,
            "y_steps": y_steps,
            "x_zero_point": x.q.zero_point,
            "y_zero_point": y.q.zero_point,
            "multiplier": multiplier,
            "code": shift_code(multiplier, shift, depth * 255 * 255),
            "output_offset": z.q.zero_point,
            "activation_min": -128,
            "activation_max": 127,
        },
    )


def _macs(op: Op, graph: Graph) -> int:
    _, depth = _matrix(graph.input(op, 0).shape, _attributes(op).adjoint_x)
    return graph.output(op).elements * depth


def _read(node: TfliteNode) -> ReadOp:
    for tensor in (*node.inputs[:2], *node.outputs):
        if tensor is None or tensor.dtype is not DType.INT8 or tensor.quantisation is None:
            raise node.unsupported("an operand that is not int8", "quantise the model to int8")
        if tensor.quantisation.per_channel:
            raise node.unsupported("a per-channel operand", "quantise it per tensor")
    options = node.options
    return ReadOp(BatchMatMul(bool(options.adjX), bool(options.adjY)), (0, 1))


def _write(op: Op, graph: Graph) -> WrittenOp:
    attributes = _attributes(op)
    return WrittenOp(
        "BATCH_MATMUL",
        "BatchMatMulOptions",
        {"adjX": attributes.adjoint_x, "adjY": attributes.adjoint_y},
        version=3,
    )


def _sample(rng: np.random.Generator) -> Graph:
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
    q = [Quantisation((s,), (z,)) for s, z in zip(scales, zeros, strict=True)]
    constant = rng.integers(-128, 128, y_batch + y_shape, np.int8) if rng.random() < 0.4 else None
    tensors = [
        Tensor("x", batch + x_shape, DType.INT8, q[0]),
        Tensor("y", y_batch + y_shape, DType.INT8, q[1], constant),
        Tensor("z", (*batch, rows, columns), DType.INT8, q[2]),
    ]
    op = Op("batch_matmul", "matmul", ("x", "y"), ("z",), attributes)
    inputs = ["x"] if constant is not None else ["x", "y"]
    return Graph.build("sample", tensors, [op], inputs, ["z"])


def read_batched(node: OnnxNode) -> None:
    """ONNX MatMul of two activations. A transposed operand stays as it lies."""
    ranks = [len(node.shape(index)) for index in (0, 1)]
    if min(ranks) < 2:
        raise node.unsupported("a product with a vector", "reshape the vector to a matrix")
    operands, adjoint = [], []
    for index, rank in enumerate(ranks):
        plain = tuple(range(rank))
        swapped = (*plain[:-2], rank - 1, rank - 2)
        lies = swapped if not node.is_constant(index) and node.axes(index) == swapped else plain
        operands.append(node.operand(index, lies))
        adjoint.append(lies == swapped)
    axes = tuple(range(len(node.output_shape())))
    q = node.output_quantisation()
    node.emit("batch_matmul", BatchMatMul(adjoint[0], adjoint[1]), operands, q, axes)


SPEC = OpSpec(
    kind="batch_matmul",
    attributes=BatchMatMul,
    infer=_infer,
    reference=_reference,
    lower=_lower,
    sample=_sample,
    macs=_macs,
    axes=_axes,
    tflite=TfliteBinding(("BATCH_MATMUL",), _read, _write),
    limits="int8, per-tensor, up to three batch dimensions, constant or computed operands",
)
