"""Operators that edgetpu_compiler maps to a TPU, and the versions of operators that it takes.

A converter numbers an operator by the newest feature that it may use, and later converters number
higher. Version 16.0, of 2021, ends with "Didn't find op for builtin opcode" (google-coral/edgetpu
issues 631, 845, 879; libedgetpu#71). `GetBuiltinOperatorVersion` tells what makes a version
(tensorflow/compiler/mlir/lite/tools/versioning/op_version.cc, TensorFlow 03f49db): CONV_2D 6 is
grouped, TRANSPOSE_CONV 4 has a fused activation, QUANTIZE 3 has a scale for each channel, EXP 2 is
of integers. Not run with the real program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

COMPILER = "edgetpu_compiler 16.0"
_NO_TENSOR = -1
_FLOAT32 = 0
_INPUTS_WITH_BIAS = 4
ON_TPU = frozenset(
    (
        *("ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D"),
        *("EXPAND_DIMS", "FULLY_CONNECTED", "L2_NORMALIZATION", "LOGISTIC", "LSTM", "MAXIMUM"),
        *("MAX_POOL_2D", "MEAN", "MINIMUM", "MUL", "PACK", "PAD", "PRELU", "QUANTIZE"),
        *("REDUCE_MAX", "REDUCE_MIN", "RELU", "RELU6", "RELU_N1_TO_1", "RESHAPE"),
        *("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "RSQRT", "SLICE", "SOFTMAX"),
        *("SPACE_TO_DEPTH", "SPLIT", "SQUARED_DIFFERENCE", "SQUEEZE", "STRIDED_SLICE", "SUB"),
        *("SUM", "TANH", "TRANSPOSE", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
        "edgetpu-custom-op",
    )
)
"""Operators that are mapped to a TPU; others stay on the processor, and all that follows them.
Source: the table of coral.ai/docs/edgetpu/models-intro, "Supported operations"."""


@dataclass(frozen=True)
class Feature:
    """`most`: the last version that the compiler takes. `lowered`: the version that an operator has
    without the feature; None where it uses it. `uses`: the feature, for a message.
    """

    most: int
    lowered: Callable[[Any, Any], int | None]
    uses: str


def _shape(tensors: Any, index: int) -> list[int]:
    shape = tensors[index].shape
    return [] if shape is None else [int(size) for size in shape]


def _convolution(op: Any, tensors: Any) -> int | None:
    """Grouped where the filters read fewer channels than the input has."""
    data, filters = (_shape(tensors, int(index)) for index in op.inputs[:2])
    if len(data) != 4 or len(filters) != 4 or data[3] != filters[3]:
        return None
    return 3 if int(tensors[op.inputs[0]].type) != _FLOAT32 else 1


def _transposed(op: Any, tensors: Any) -> int | None:
    options = op.builtinOptions
    if int(getattr(options, "fusedActivationFunction", 0) or 0):
        return None
    has_bias = len(op.inputs) == _INPUTS_WITH_BIAS and int(op.inputs[3]) != _NO_TENSOR
    return 3 if has_bias else 2


def _quantize(op: Any, tensors: Any) -> int | None:
    ends = (tensors[int(op.inputs[0])], tensors[int(op.outputs[0])])
    scales = [end.quantization.scale for end in ends if end.quantization is not None]
    per_channel = any(scale is not None and len(scale) > 1 for scale in scales)
    return None if per_channel else 2


def _exponential(op: Any, tensors: Any) -> int | None:
    return 1 if int(tensors[int(op.inputs[0])].type) == _FLOAT32 else None


FEATURES: Mapping[str, Feature] = {
    "CONV_2D": Feature(5, _convolution, "groups of channels"),
    "TRANSPOSE_CONV": Feature(3, _transposed, "a fused activation"),
    "QUANTIZE": Feature(2, _quantize, "a scale for each channel"),
    "EXP": Feature(1, _exponential, "integers"),
}


def version_for(kind: str, version: int, op: Any, tensors: Any) -> tuple[int, str]:
    """The version to write for an operator, and why the compiler rejects it all the same ('': it
    does not). `op` and `tensors` are of the schema's object API.
    """
    feature = FEATURES.get(kind)
    if feature is None or version <= feature.most:
        return version, ""
    lower = feature.lowered(op, tensors)
    if lower is not None:
        return lower, ""
    return version, f"{COMPILER} rejects {kind} of version {version}, which uses {feature.uses}"
