"""The known versions of TFLite's operators. The meaning of later versions is not known.

They are the last versions that ai-edge-litert 2.3's own kernels take, by either of its resolvers;
`tests/pure/test_judges.py` checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolchain.errors import InputError

LAST: Mapping[str, int] = MappingProxyType(
    {
        "ABS": 5,
        "ADD": 6,
        "ARG_MAX": 3,
        "ARG_MIN": 3,
        "ASSIGN_VARIABLE": 1,
        "AVERAGE_POOL_2D": 3,
        "BATCH_MATMUL": 4,
        "BATCH_TO_SPACE_ND": 4,
        "BROADCAST_TO": 4,
        "CALL_ONCE": 1,
        "CAST": 9,
        "CONCATENATION": 7,
        "CONV_2D": 8,
        "CUMSUM": 1,
        "DEPTHWISE_CONV_2D": 7,
        "DEPTH_TO_SPACE": 2,
        "DEQUANTIZE": 9,
        "DIV": 2,
        "ELU": 1,
        "EMBEDDING_LOOKUP": 5,
        "EQUAL": 5,
        "EXP": 2,
        "EXPAND_DIMS": 1,
        "FULLY_CONNECTED": 14,
        "GATHER": 8,
        "GELU": 3,
        "GREATER": 2,
        "GREATER_EQUAL": 3,
        "HARD_SWISH": 1,
        "L2_NORMALIZATION": 2,
        "LEAKY_RELU": 2,
        "LESS": 3,
        "LESS_EQUAL": 2,
        "LOG": 2,
        "LOGICAL_AND": 1,
        "LOGICAL_NOT": 1,
        "LOGICAL_OR": 1,
        "LOGISTIC": 3,
        "LOG_SOFTMAX": 2,
        "MAXIMUM": 4,
        "MAX_POOL_2D": 3,
        "MEAN": 3,
        "MINIMUM": 4,
        "MIRROR_PAD": 3,
        "MUL": 8,
        "NEG": 1,
        "NOT_EQUAL": 4,
        "PACK": 5,
        "PAD": 6,
        "PADV2": 6,
        "PRELU": 1,
        "QUANTIZE": 6,
        "READ_VARIABLE": 1,
        "REDUCE_MAX": 3,
        "REDUCE_MIN": 3,
        "REDUCE_PROD": 2,
        "RELU": 3,
        "RELU6": 3,
        "RELU_0_TO_1": 1,
        "RELU_N1_TO_1": 1,
        "RESHAPE": 1,
        "RESIZE_BILINEAR": 4,
        "RESIZE_NEAREST_NEIGHBOR": 4,
        "REVERSE_V2": 4,
        "RSQRT": 3,
        "SELECT": 4,
        "SELECT_V2": 2,
        "SHAPE": 1,
        "SLICE": 8,
        "SOFTMAX": 4,
        "SPACE_TO_BATCH_ND": 4,
        "SPACE_TO_DEPTH": 2,
        "SPLIT": 5,
        "SPLIT_V": 3,
        "SQRT": 2,
        "SQUARE": 1,
        "SQUARED_DIFFERENCE": 2,
        "SQUEEZE": 2,
        "STRIDED_SLICE": 8,
        "SUB": 5,
        "SUM": 2,
        "SVDF": 4,
        "TANH": 3,
        "TILE": 3,
        "TOPK_V2": 3,
        "TRANSPOSE": 9,
        "TRANSPOSE_CONV": 5,
        "UNIDIRECTIONAL_SEQUENCE_LSTM": 4,
        "UNPACK": 6,
        "VAR_HANDLE": 1,
    }
)


def check_version(code: str, version: int, operator: str) -> None:
    """Raise InputError for a version that no runtime has. Unlisted operators are not checked."""
    last = LAST.get(code)
    if last is not None and not 1 <= version <= last:
        raise InputError(
            f"{operator} has version {version}; the versions known are 1 to {last}: the file is "
            "damaged, or newer than this version of Thimble"
        )
