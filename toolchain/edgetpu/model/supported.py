"""Operators that edgetpu_compiler maps to a TPU: the table of coral.ai/docs/edgetpu/models-intro,
"Supported operations". Others stay on the processor, and all that follows them."""

from __future__ import annotations

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
