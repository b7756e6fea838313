"""Matrix product over batches: output[..., i, j] = sum_k x[..., i, k] * y[..., k, j].

TFLite BATCH_MATMUL of int8, int16 or float32, either operand transposed in its last two dimensions,
batch dimensions broadcast. Arithmetic: TFLite `reference_ops::BatchMatMul`, for int16 with int64
sums. Constant matrices beside int16 may be int8. ONNX MatMul of two int8 activations rounds as ONNX
Runtime does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.onnx_rounding import onnx_multiplier, requantise_onnx
from toolchain.ops.elementwise.common import check_node, require_types
from toolchain.ops.hybrid.product import hybrid_matmul
from toolchain.ops.matmul import common
from toolchain.ops.matmul.common import BatchMatMul
from toolchain.ops.matmul.kernels import thimble_batch_matmul_s8
from toolchain.ops.readers import int16
from toolchain.ops.readers.float32 import check_float_node, float32_form
from toolchain.ops.reduction.requantise_sums import RequantiseSums


def _axes(op: kit.Operator[BatchMatMul]) -> tuple[kit.Axis, ...]:
    """Rows of the first operand, columns of the second, and matrices of a batch."""
    x, y, attributes = op.x, op.input(1), op.attributes
    shape = op.y.shape
    rank, whole = len(shape), attributes
    row = kit.Reach(len(x.shape) - (1 if attributes.adjoint_x else 2))
    column = kit.Reach(len(y.shape) - (2 if attributes.adjoint_y else 1))

    def batch(operand: kit.Tensor, axis: int) -> kit.Reach | None:
        place = axis - (rank - len(operand.shape))
        return kit.Reach(place) if place >= 0 and operand.shape[place] == shape[axis] else None

    return (
        *(
            kit.Axis(axis, (batch(x, axis), batch(y, axis)), lambda part: whole)
            for axis in range(rank - 2)
        ),
        kit.Axis(rank - 2, (row, None), lambda part: whole),
        kit.Axis(rank - 1, (None, column), lambda part: whole),
    )


def _requantisation(op: kit.AnyOperator) -> tuple[int, int]:
    """`GetQuantizedConvolutionMultipler`: the product of the input scales is taken in float32."""
    x, y = op.x, op.input(1)
    product = float(np.float32(x.q.scale) * np.float32(y.q.scale))
    return kit.quantize_multiplier(product / op.y.q.scale)


def _reference(op: kit.Operator[BatchMatMul], inputs: kit.Inputs) -> kit.Arrays:
    total = common.matmul_sums(op, inputs)
    if op.attributes.rounding is kit.Rounding.ONNX:
        x, y = op.x, op.input(1)
        return (requantise_onnx(total, x, y, op.y, (-128, 127)),)
    multiplier, shift = _requantisation(op)
    info = np.iinfo(op.y.dtype.value)
    return (kit.requantise(total, multiplier, shift, op.y, info.min, info.max),)


def _float_reference(op: kit.Operator[BatchMatMul], inputs: kit.Inputs) -> kit.Arrays:
    attributes = op.attributes
    left, right = (values.astype(np.float32) for values in inputs)
    left = np.swapaxes(left, -1, -2) if attributes.adjoint_x else left
    right = np.swapaxes(right, -1, -2) if attributes.adjoint_y else right
    total = np.zeros(op.y.shape, np.float32)
    for index in range(left.shape[-1]):
        total = total + left[..., :, index, None] * right[..., None, index, :]
    return (total,)


def _code(op: kit.Operator[BatchMatMul]) -> tuple[int, int]:
    """Multiplier and shift code. Raises ScaleError as `check_sums` does."""
    if op.attributes.rounding is kit.Rounding.ONNX:
        return onnx_multiplier(op.x, op.input(1), op.y)
    multiplier, shift = _requantisation(op)
    lowest, highest = (np.array([end], np.int64) for end in common.matmul_reach(op))
    kit.check_sums(lowest, highest, multiplier, shift, op.y.q.zero_point)
    depth = common.matmul_depth(op)
    return multiplier, packing.shift_code(multiplier, shift, depth * 255 * 255)


def _select(op: kit.Operator[BatchMatMul], core: kit.Core) -> kit.Kernel:
    return thimble_batch_matmul_s8.kernel(op, _code(op))


def _select_int16(op: kit.Operator[BatchMatMul], core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT16)
    multiplier, shift = _requantisation(op)
    int16.check_sums(op, common.matmul_depth(op) * 2.0**30, multiplier * 2.0 ** (shift - 31))
    return thimble_batch_matmul_s8.kernel(op, (multiplier, shift))


def _select_mixed(op: kit.Operator[BatchMatMul], core: kit.Core) -> kit.Kernel:
    multiplier, shift = _requantisation(op)
    int16.check_sums(op, common.matmul_depth(op) * 2.0**22, multiplier * 2.0 ** (shift - 31))
    return thimble_batch_matmul_s8.kernel(op, (multiplier, shift))


def _select_float32(op: kit.Operator[BatchMatMul], core: kit.Core) -> kit.Kernel:
    return thimble_batch_matmul_s8.kernel(op)


def _reductions(op: kit.Operator[BatchMatMul]) -> tuple[kit.Reduction, ...]:
    """The inner dimension."""
    attributes = op.attributes
    x, y = (len(op.input(index).shape) for index in (0, 1))
    left = kit.Reach(x - (2 if attributes.adjoint_x else 1))
    right = kit.Reach(y - (1 if attributes.adjoint_y else 2))

    def ending() -> RequantiseSums:
        multiplier, code = _code(op)
        zero_point = op.y.q.zero_point
        return RequantiseSums(multipliers=(multiplier,), codes=(code,), offset=zero_point)

    depth = common.matmul_depth(op)
    return (kit.Reduction(depth, (left, right), "partial_matmul", attributes, ending),)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    tensors, dtype = (*node.inputs[:2], *node.outputs), node.outputs[0].dtype
    if dtype is kit.DType.FLOAT32:
        check_float_node(node)
    elif dtype is kit.DType.INT16:
        check_node(node, kit.DType.INT16)
    else:
        for tensor in tensors:
            if tensor is None or tensor.dtype is not kit.DType.INT8 or tensor.quantisation is None:
                raise node.unsupported("an operand that is not int8", "quantise the model to int8")
            if tensor.quantisation.per_channel:
                raise node.unsupported("a per-channel operand", "quantise it per tensor")
    return _read_options(node)


def _read_mixed(node: kit.TfliteNode) -> kit.ReadOp:
    check_node(node, kit.DType.INT16, kit.DType.INT8)
    node.constant(1)
    for tensor in (*node.inputs, *node.outputs):
        if tensor is not None and tensor.q.zero_point:
            raise node.unsupported(
                f"tensor {tensor.name!r} has a zero point beside int16, which LiteRT refuses, too",
                "quantise its constants symmetrically",
            )
    return _read_options(node)


def _read_options(node: kit.TfliteNode) -> kit.ReadOp:
    return kit.ReadOp(BatchMatMul(bool(node.options.adjX), bool(node.options.adjY)), (0, 1))


def _sample_mixed(rng: np.random.Generator) -> kit.Graph:
    """An int16 sample with constant matrices of int8."""
    drawn = common.sample_matmul(rng)
    y = drawn.tensors["y"]
    data = rng.integers(-127, 128, y.shape).astype(np.int8)
    q = kit.Quantisation(y.q.scales, (0,))
    given = tuple(name for name in drawn.inputs if name != "y")
    wide = replace(int16.as_int16(drawn), inputs=given)
    matrices = replace(y, constant=data, quantisation=q)
    return kit.with_tensors(wide, lambda one: matrices if one.name == "y" else one)


def _write_mixed(op: kit.Operator[BatchMatMul]) -> kit.WrittenOp:
    return replace(_write(op), version=4)


def _write(op: kit.Operator[BatchMatMul]) -> kit.WrittenOp:
    attributes = op.attributes
    return kit.WrittenOp(
        "BATCH_MATMUL",
        "BatchMatMulOptions",
        {"adjX": attributes.adjoint_x, "adjY": attributes.adjoint_y},
        version=3,
    )


def read_batched(node: kit.OnnxNode) -> None:
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
    attributes = BatchMatMul(adjoint[0], adjoint[1], kit.Rounding.ONNX)
    node.emit("batch_matmul", attributes, operands, q, axes)


_INT8 = kit.Form(
    kind="batch_matmul",
    attributes=BatchMatMul,
    infer=common.infer_matmul,
    reference=_reference,
    select=_select,
    sample=common.sample_matmul,
    macs=common.matmul_macs,
    axes=_axes,
    reductions=_reductions,
    tflite=kit.TfliteBinding(("BATCH_MATMUL",), _read, _write),
    dtype=kit.DType.INT8,
    limits="int8, per-tensor, up to three batch dimensions, constant or computed operands",
)
_INT16 = int16.int16_form(
    _INT8, "int16, up to three batch dimensions, constant or computed operands", _select_int16
)
_MIXED = replace(
    _INT16,
    select=_select_mixed,
    sample=_sample_mixed,
    tflite=kit.TfliteBinding(("BATCH_MATMUL",), _read_mixed, _write_mixed),
    weights=kit.DType.INT8,
    name="16x8",
    limits="int16 by constant int8 matrices",
)
_FLOAT32 = replace(
    float32_form(
        _INT8,
        "float32, up to three batch dimensions, constant or computed operands",
        _float_reference,
        _select_float32,
    ),
    quantised=kit.Quantised(per_channel=(1,)),
)
SPEC = kit.OpSpec((_INT8, _INT16, _MIXED, _FLOAT32, hybrid_matmul(_FLOAT32)))
