"""Matrix product over batches: output[..., i, j] = sum_k x[..., i, k] * y[..., k, j].

TFLite BATCH_MATMUL, int8, either operand transposed in its last two dimensions, batch dimensions
broadcast. Arithmetic: TFLite `reference_ops::BatchMatMul` for int8. ONNX MatMul of two activations
rounds as ONNX Runtime does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops import product_extents
from toolchain.ops.arithmetic.fixed_point import quantize_multiplier
from toolchain.ops.arithmetic.onnx_rounding import onnx_multiplier, requantise_onnx
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.common import requantise
from toolchain.ops.convolution.packing import shift_code
from toolchain.ops.matmul.common import (
    BatchMatMul,
    infer_matmul,
    matmul_attributes,
    matmul_depth,
    matmul_fields,
    matmul_macs,
    matmul_scratch_bytes,
    matmul_sums,
    sample_matmul,
)
from toolchain.ops.reduction.requantise_sums import RequantiseSums
from toolchain.ops.spec import (
    Array,
    Axis,
    Lowering,
    OnnxNode,
    OpSpec,
    Reach,
    ReadOp,
    Reduction,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)


def _axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    """Rows of the first operand, columns of the second, and matrices of a batch."""
    x, y, attributes = graph.input(op, 0), graph.input(op, 1), matmul_attributes(op)
    shape = graph.output(op).shape
    rank, whole = len(shape), attributes
    row = Reach(len(x.shape) - (1 if attributes.adjoint_x else 2))
    column = Reach(len(y.shape) - (2 if attributes.adjoint_y else 1))

    def batch(operand: Tensor, axis: int) -> Reach | None:
        own = axis - (rank - len(operand.shape))
        return Reach(own) if own >= 0 and operand.shape[own] == shape[axis] else None

    return (
        *(
            Axis(axis, (batch(x, axis), batch(y, axis)), lambda part: whole)
            for axis in range(rank - 2)
        ),
        Axis(rank - 2, (row, None), lambda part: whole),
        Axis(rank - 1, (None, column), lambda part: whole),
    )


def matmul_requantisation(op: Op, graph: Graph) -> tuple[int, int]:
    """`GetQuantizedConvolutionMultipler`: the product of the input scales is taken in float32."""
    x, y = graph.input(op, 0), graph.input(op, 1)
    product = float(np.float32(x.q.scale) * np.float32(y.q.scale))
    largest = 1 if x.dtype is DType.INT16 else matmul_depth(op, graph) * 255**2
    return quantize_multiplier(product / graph.output(op).q.scale, largest)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    total = matmul_sums(op, graph, inputs)
    if matmul_attributes(op).rounding is Rounding.ONNX:
        x, y = graph.input(op, 0), graph.input(op, 1)
        return (requantise_onnx(total, x, y, graph.output(op), (-128, 127)),)
    multiplier, shift = matmul_requantisation(op, graph)
    info = np.iinfo(graph.output(op).dtype.value)
    return (requantise(total, multiplier, shift, graph.output(op), info.min, info.max),)


def _code(op: Op, graph: Graph) -> tuple[int, int]:
    """Multiplier and shift code."""
    if matmul_attributes(op).rounding is Rounding.ONNX:
        return onnx_multiplier(graph.input(op, 0), graph.input(op, 1), graph.output(op))
    multiplier, shift = matmul_requantisation(op, graph)
    depth = matmul_depth(op, graph)
    return multiplier, shift_code(multiplier, shift, depth * 255 * 255)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    multiplier, code = _code(op, graph)
    return Lowering(
        functions=("thimble_batch_matmul_s8",),
        scratch_bytes=matmul_scratch_bytes(op, graph),
        fields=matmul_fields(op, graph)
        | {
            "multiplier": multiplier,
            "code": code,
            "output_offset": graph.output(op).q.zero_point,
            "activation_min": -128,
            "activation_max": 127,
        },
    )


def _reductions(op: Op, graph: Graph) -> tuple[Reduction, ...]:
    """The inner dimension."""
    attributes = matmul_attributes(op)
    x, y = (len(graph.input(op, index).shape) for index in (0, 1))
    left = Reach(x - (2 if attributes.adjoint_x else 1))
    right = Reach(y - (1 if attributes.adjoint_y else 2))

    def ending() -> RequantiseSums:
        multiplier, code = _code(op, graph)
        zero_point = graph.output(op).q.zero_point
        return RequantiseSums(multipliers=(multiplier,), codes=(code,), offset=zero_point)

    depth = matmul_depth(op, graph)
    return (Reduction(depth, (left, right), "partial_matmul", attributes, ending),)


def _read(node: TfliteNode) -> ReadOp:
    for tensor in (*node.inputs[:2], *node.outputs):
        if tensor is None or tensor.dtype is not DType.INT8 or tensor.quantisation is None:
            raise node.unsupported("an operand that is not int8", "quantise the model to int8")
        if tensor.quantisation.per_channel:
            raise node.unsupported("a per-channel operand", "quantise it per tensor")
    options = node.options
    return ReadOp(BatchMatMul(bool(options.adjX), bool(options.adjY)), (0, 1))


def _write(op: Op, graph: Graph) -> WrittenOp:
    attributes = matmul_attributes(op)
    return WrittenOp(
        "BATCH_MATMUL",
        "BatchMatMulOptions",
        {"adjX": attributes.adjoint_x, "adjY": attributes.adjoint_y},
        version=3,
    )


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
    attributes = BatchMatMul(adjoint[0], adjoint[1], Rounding.ONNX)
    node.emit("batch_matmul", attributes, operands, q, axes)


SPEC = OpSpec(
    kind="batch_matmul",
    attributes=BatchMatMul,
    infer=infer_matmul,
    reference=_reference,
    lower=_lower,
    extents=product_extents.matmul(1, 1),
    sample=sample_matmul,
    macs=matmul_macs,
    axes=_axes,
    reductions=_reductions,
    tflite=TfliteBinding(("BATCH_MATMUL",), _read, _write),
    limits="int8, per-tensor, up to three batch dimensions, constant or computed operands",
)
