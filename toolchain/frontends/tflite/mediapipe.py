"""MediaPipe's custom operators, whose sources are open (mediapipe/util/tflite/operations).

Their options are no FlexBuffer but a struct of TFLite's C interface: int32 fields, low bytes first.
Convolution2DTransposeBias (transpose_conv_bias.cc) is TRANSPOSE_CONV with a bias, whose output size
follows from the image's. It adds the bias before the products, where TRANSPOSE_CONV adds it behind
them: float32 sums differ in their last bits.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.tflite.file import FileOp
from toolchain.ir import DType, Tensor
from toolchain.ops.spec import Array

TRANSPOSED = "Convolution2DTransposeBias"
INPUT, WEIGHTS, _BIAS = range(3)
_FIELDS = ("padding", "strideW", "strideH")
_PADDING = {1: "SAME", 2: "VALID"}
"""By TfLitePadding's numbers."""


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
    for tensor in (x, weights):
        if tensor.dtype is not DType.FLOAT32:
            raise RefusedError(
                f"tensor {tensor.name!r} is {tensor.dtype.value}, and MediaPipe's kernel takes "
                "float32 alone",
                "give the float model",
            )
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
    if (len(op.inputs), len(op.outputs)) != (3, 1) or -1 in op.inputs:
        raise op.miscounted()
    if len(op.struct) < len(_FIELDS):
        raise InputError(f"{op} has no options, which it cannot do without")
    walk = SimpleNamespace(**dict(zip(_FIELDS, op.struct, strict=False)))
    if walk.padding not in _PADDING or min(walk.strideH, walk.strideW) < 1:
        raise InputError(f"{op} has padding {walk.padding}, strides {walk.strideH}x{walk.strideW}")
    walk.padding = _PADDING[walk.padding]
    return walk
