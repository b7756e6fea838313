"""Matrix product over batches: output[..., i, j] = sum_k x[..., i, k] * y[..., k, j].

TFLite BATCH_MATMUL of int8, int16 or float32, either operand transposed in its last two dimensions,
batch dimensions broadcast. Arithmetic: TFLite `reference_ops::BatchMatMul`, for int16 with int64
sums. ONNX MatMul of two int8 activations rounds as ONNX Runtime does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops.arithmetic.fixed_point import check_sums, quantize_multiplier, requantise
from toolchain.ops.arithmetic.onnx_rounding import onnx_multiplier, requantise_onnx
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.packing import shift_code
from toolchain.ops.elementwise.common import check_node, require_types
from toolchain.ops.forms import OldForm, OpSpec
from toolchain.ops.hybrid.product import hybrid_matmul
from toolchain.ops.kernel import Kernel
from toolchain.ops.matmul.common import (
    BatchMatMul,
    infer_matmul,
    matmul_attributes,
    matmul_depth,
    matmul_macs,
    matmul_reach,
    matmul_sums,
    sample_matmul,
)
from toolchain.ops.matmul.kernels import (
    thimble_batch_matmul_f32,
    thimble_batch_matmul_s8,
    thimble_batch_matmul_s16,
)
from toolchain.ops.readers import int16
from toolchain.ops.readers.float32 import check_float_node, float32_form
from toolchain.ops.reduction.requantise_sums import RequantiseSums
from toolchain.ops.spec import (
    Array,
    Axis,
    OnnxNode,
    Quantised,
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


def _requantisation(op: Op, graph: Graph) -> tuple[int, int]:
    """`GetQuantizedConvolutionMultipler`: the product of the input scales is taken in float32."""
    x, y = graph.input(op, 0), graph.input(op, 1)
    product = float(np.float32(x.q.scale) * np.float32(y.q.scale))
    return quantize_multiplier(product / graph.output(op).q.scale)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    total = matmul_sums(op, graph, inputs)
    if matmul_attributes(op).rounding is Rounding.ONNX:
        x, y = graph.input(op, 0), graph.input(op, 1)
        return (requantise_onnx(total, x, y, graph.output(op), (-128, 127)),)
    multiplier, shift = _requantisation(op, graph)
    info = np.iinfo(graph.output(op).dtype.value)
    return (requantise(total, multiplier, shift, graph.output(op), info.min, info.max),)


def _float_reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    attributes = matmul_attributes(op)
    left, right = (values.astype(np.float32) for values in inputs)
    left = np.swapaxes(left, -1, -2) if attributes.adjoint_x else left
    right = np.swapaxes(right, -1, -2) if attributes.adjoint_y else right
    total = np.zeros(graph.output(op).shape, np.float32)
    for index in range(left.shape[-1]):
        total = total + left[..., :, index, None] * right[..., None, index, :]
    return (total,)


def _code(op: Op, graph: Graph) -> tuple[int, int]:
    """Multiplier and shift code. Raises ScaleError as `check_sums` does."""
    if matmul_attributes(op).rounding is Rounding.ONNX:
        return onnx_multiplier(graph.input(op, 0), graph.input(op, 1), graph.output(op))
    multiplier, shift = _requantisation(op, graph)
    lowest, highest = (np.array([end], np.int64) for end in matmul_reach(op, graph))
    check_sums(lowest, highest, multiplier, shift, graph.output(op).q.zero_point)
    depth = matmul_depth(op, graph)
    return multiplier, shift_code(multiplier, shift, depth * 255 * 255)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    return thimble_batch_matmul_s8.kernel(op, graph, _code(op, graph))


def _select_int16(op: Op, graph: Graph, core: Core) -> Kernel:
    require_types(op, graph, DType.INT16)
    multiplier, shift = _requantisation(op, graph)
    int16.check_sums(op, matmul_depth(op, graph) * 2.0**30, multiplier * 2.0 ** (shift - 31))
    return thimble_batch_matmul_s16.kernel(op, graph, (multiplier, shift))


def _select_float32(op: Op, graph: Graph, core: Core) -> Kernel:
    return thimble_batch_matmul_f32.kernel(op, graph)


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
    return _read_options(node)


def _read_int16(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT16)
    return _read_options(node)


def _read_float32(node: TfliteNode) -> ReadOp:
    check_float_node(node)
    return _read_options(node)


def _read_options(node: TfliteNode) -> ReadOp:
    return ReadOp(BatchMatMul(bool(node.options.adjX), bool(node.options.adjY)), (0, 1))


def _write(op: Op, graph: Graph) -> WrittenOp:
    attributes = matmul_attributes(op)
    return WrittenOp(
        "BATCH_MATMUL",
        "BatchMatMulOptions",
        {"adjX": attributes.adjoint_x, "adjY": attributes.adjoint_y},
        version=3,
    )


def read_batched(node: OnnxNode) -> None:
    """Reads ONNX MatMul of two activations. An operand that is stored transposed is not copied."""
    ranks = [len(node.shape(index)) for index in (0, 1)]
    if min(ranks) < 2:
        raise node.unsupported("a product with a vector", "reshape the vector to a matrix")
    operands, adjoint = [], []
    for index, rank in enumerate(ranks):
        if (
            not node.in_float
            and node.is_constant(index)
            and node.constant(index).quantisation is None
        ):
            raise node.left_in_float(f"its constant input {index} is not quantised")
        plain = tuple(range(rank))
        swapped = (*plain[:-2], rank - 1, rank - 2)
        lies = swapped if not node.is_constant(index) and node.axes(index) == swapped else plain
        operands.append(node.operand(index, lies))
        adjoint.append(lies == swapped)
    axes = tuple(range(len(node.output_shape())))
    q = node.output_quantisation()
    attributes = BatchMatMul(adjoint[0], adjoint[1], Rounding.ONNX)
    node.emit("batch_matmul", attributes, operands, q, axes)


_BUILTINS = ("BATCH_MATMUL",)
_INT8 = OldForm(
    kind="batch_matmul",
    attributes=BatchMatMul,
    infer=infer_matmul,
    reference=_reference,
    select=_select,
    sample=sample_matmul,
    macs=matmul_macs,
    axes=_axes,
    reductions=_reductions,
    tflite=TfliteBinding(_BUILTINS, _read, _write),
    dtype=DType.INT8,
    limits="int8, per-tensor, up to three batch dimensions, constant or computed operands",
)
_INT16 = replace(
    int16.int16_form(
        _INT8, "int16, up to three batch dimensions, constant or computed operands", _select_int16
    ),
    tflite=TfliteBinding(_BUILTINS, _read_int16, _write),
)
_FLOAT32 = replace(
    float32_form(
        _INT8,
        "float32, up to three batch dimensions, constant or computed operands",
        _float_reference,
        _select_float32,
    ),
    quantised=Quantised(per_channel=(1,)),
    tflite=TfliteBinding(_BUILTINS, _read_float32, _write),
)
SPEC = OpSpec((_INT8, _INT16, _FLOAT32, hybrid_matmul(_FLOAT32)))
