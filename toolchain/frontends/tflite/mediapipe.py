"""MediaPipe's custom operators, whose sources are open (mediapipe/util/tflite/operations).

Their options are no FlexBuffer but a struct of TFLite's C interface: int32 fields, low bytes first.
Convolution2DTransposeBias (transpose_conv_bias.cc) is TRANSPOSE_CONV with a bias, whose output size
follows from the image's. It adds the bias before the products, where TRANSPOSE_CONV adds it behind
them: float32 sums differ in their last bits.

MaxPoolingWithArgmax2D (max_pool_argmax.cc) also gives the place of each maximum in its window, as
a float 0.1 above it, and MaxUnpooling2D (max_unpooling.cc) puts values back to such places. Both
become operators that there are, where windows lie side by side and fill the image. A place beyond
its window is nowhere, where MediaPipe's kernel writes outside of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.tflite.chosen import Chosen
from toolchain.frontends.tflite.file import FileOp
from toolchain.ir import DType, Tensor
from toolchain.ir.names import Names
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.compare import Compare, Relation
from toolchain.ops.elementwise.select import Select
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.transpose import Transpose
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.reduction.arg_max import ArgMax
from toolchain.ops.spec import Array
from toolchain.ops.unary.cast import Cast

TRANSPOSED = "Convolution2DTransposeBias"
INPUT, WEIGHTS, _BIAS = range(3)
POOLED, UNPOOLED = "MaxPoolingWithArgmax2D", "MaxUnpooling2D"
_FIELDS = ("padding", "strideW", "strideH")
_POOL_FIELDS = (*_FIELDS, "filterWidth", "filterHeight", "fusedActivation")
_ABOVE = np.float32(0.1)
_PADDING = {1: "SAME", 2: "VALID"}
"""By TfLitePadding's numbers."""
_FILLING = "pool with a stride as large as the window, which divides the image's sides"


def transposed(op: FileOp, shape: int) -> FileOp:
    """The operator as TRANSPOSE_CONV. `shape`: the number of the tensor with its output shape.

    Raises InputError for other operands or options than it has.
    """
    walk = _walk(op)
    walk.fusedActivationFunction = walk.quantizedBiasType = "NONE"
    inputs = (shape, op.inputs[WEIGHTS], op.inputs[INPUT], op.inputs[_BIAS])
    return replace(op, code="TRANSPOSE_CONV", custom="", options=walk, inputs=inputs)


def output_shape(op: FileOp, x: Tensor, weights: Tensor) -> Array:
    """The shape of the result, int32[4].

    Raises InputError as `transposed`, RefusedError for other types than MediaPipe's kernel takes.
    """
    walk = _walk(op)
    _check_floats((x, weights))
    if len(x.shape) != 4 or len(weights.shape) != 4:
        raise InputError(f"{op} takes {x} and {weights}, not an image NHWC and filters OHWI")
    strides, kernel = (walk.strideH, walk.strideW), weights.shape[1:3]
    sizes = []
    for size, taps, stride in zip(x.shape[1:3], kernel, strides, strict=True):
        padding = max(0, taps - (size - 1) % stride - 1) if walk.padding == "SAME" else 0
        sizes.append(stride * (size - 1) + taps - padding)
    return np.array([x.shape[0], *sizes, weights.shape[0]], np.int32)


def _walk(op: FileOp) -> SimpleNamespace:
    """The struct TfLiteTransposeConvParams: its first fields, which the kernel reads."""
    return _options(op, _FIELDS, 3, 1)


def pooled(op: FileOp, x: Tensor, y: Tensor, places: Tensor, names: Names) -> Chosen:
    """The operators of MaxPoolingWithArgmax2D. Raises as `_windows`."""
    made = Chosen(f"max_pool_argmax_{op.index}", names)
    (rows, columns), (batches, height, width, depth) = _windows(op, (x, y, places), 1, 2), x.shape
    if height % rows or width % columns:
        raise RefusedError(f"windows of {rows}x{columns} do not fill {height}x{width}", _FILLING)
    across, down, window = width // columns, batches * (height // rows), rows * columns
    made.into(y, "max_pool2d", Pool2D(rows, columns, rows, columns), (x,))
    fine, apart = (down, rows, across, columns, depth), (down, across, depth, rows, columns)
    parted = made.operator("reshape", Reshape(fine), (x,), fine, x)
    swapped = made.operator("transpose", Transpose((0, 2, 4, 1, 3)), (parted,), apart, x)
    lines = (*apart[:3], window)
    joined = made.operator("reshape", Reshape(lines), (swapped,), lines, x)
    numbers = made.constant("zero", np.zeros((), np.int32))
    largest = made.operator("arg_max", ArgMax(3), (joined,), lines[:3], numbers)
    reals = made.operator("cast", Cast(DType.FLOAT32), (largest,), lines[:3], places)
    whole = (batches, height // rows, across, depth)
    shaped = made.operator("reshape", Reshape(whole), (reals,), whole, places)
    made.into(places, "add", Sum(), (shaped, made.constant("above", np.array(_ABOVE))))
    made.shape = whole
    return made


def unpooled(op: FileOp, x: Tensor, places: Tensor, y: Tensor, names: Names) -> Chosen:
    """The operators of MaxUnpooling2D. Raises as `_windows`."""
    made = Chosen(f"max_unpooling_{op.index}", names)
    (rows, columns), (batches, height, width, depth) = _windows(op, (x, places, y), 2, 1), x.shape
    if places.shape != x.shape:
        raise InputError(f"{op} puts {x} to places {places}")
    one, fine = (batches * height, 1, width, 1, depth), (batches * height, rows, width, columns)
    numbers = np.arange(rows * columns, dtype=np.int32).reshape(1, rows, 1, columns, 1)
    wanted = made.constant("numbers", numbers)
    whole = made.operator("cast", Cast(DType.INT32), (places,), places.shape, wanted)
    there = made.operator("reshape", Reshape(one), (whole,), one, wanted)
    values = made.operator("reshape", Reshape(one), (x,), one, x)
    mask = made.operator("compare", Compare(Relation.EQUAL), (there, wanted), (*fine, depth))
    zero = made.constant("zero", np.zeros((), np.float32))
    put = made.operator("select", Select(), (mask, values, zero), (*fine, depth), x)
    made.shape = (batches, height * rows, width * columns, depth)
    made.into(y, "reshape", Reshape(made.shape), (put,))
    return made


def _windows(op: FileOp, ends: Sequence[Tensor], inputs: int, outputs: int) -> tuple[int, int]:
    """Rows and columns of windows that lie side by side.

    Raises InputError for operands or options that make no sense, RefusedError for other windows
    and for a fused activation.
    """
    walk = _options(op, _POOL_FIELDS, inputs, outputs)
    _check_floats(ends)
    if len(ends[0].shape) != 4 or min(walk.filterHeight, walk.filterWidth) < 1:
        raise InputError(f"{op} of {ends[0]} has windows {walk.filterHeight}x{walk.filterWidth}")
    if (walk.filterHeight, walk.filterWidth) != (walk.strideH, walk.strideW):
        raise RefusedError("its windows overlap, or leave gaps", _FILLING)
    if walk.fusedActivation:
        raise RefusedError("a fused activation", "apply it in an operator of its own")
    return walk.filterHeight, walk.filterWidth


def _check_floats(tensors: Sequence[Tensor]) -> None:
    """Raise RefusedError for other types than MediaPipe's kernels take."""
    for tensor in tensors:
        if tensor.dtype is not DType.FLOAT32:
            raise RefusedError(
                f"tensor {tensor.name!r} is {tensor.dtype.value}, and MediaPipe's kernel takes "
                "float32 alone",
                "give the float model",
            )


def _options(op: FileOp, fields: Sequence[str], inputs: int, outputs: int) -> SimpleNamespace:
    """The struct's first fields by their names in TFLite's options, with that of the padding."""
    if (len(op.inputs), len(op.outputs)) != (inputs, outputs) or -1 in op.inputs:
        raise op.miscounted()
    if len(op.struct) < len(fields):
        raise InputError(f"{op} has no options, which it cannot do without")
    walk = SimpleNamespace(**dict(zip(fields, op.struct, strict=False)))
    if walk.padding not in _PADDING or min(walk.strideH, walk.strideW) < 1:
        raise InputError(f"{op} has padding {walk.padding}, strides {walk.strideH}x{walk.strideW}")
    walk.padding = _PADDING[walk.padding]
    return walk
