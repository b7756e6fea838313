"""The known versions of TFLite's operators. The meaning of later versions is not known.

They are the last versions that ai-edge-litert 2.3's own kernels take, by either of its resolvers.
The table lists every operator that these kernels compute, whether Thimble reads it or not, so a new
operator kind needs no change here; `tests/pure/test_judges.py` checks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolchain.errors import InputError

_BY_VERSION: Mapping[int, str] = MappingProxyType(
    {
        1: (
            "ADD_N ASSIGN_VARIABLE ATAN2 BITCAST BITWISE_XOR BROADCAST_ARGS BUCKETIZE CALL_ONCE "
            "CEIL COMPLEX_ABS CONV_3D CONV_3D_TRANSPOSE CUMSUM DENSIFY DILATE ELU "
            "EMBEDDING_LOOKUP_SPARSE EXPAND_DIMS FLOOR HARD_SWISH HASHTABLE HASHTABLE_FIND "
            "HASHTABLE_IMPORT HASHTABLE_LOOKUP HASHTABLE_SIZE IF IMAG L2_POOL_2D "
            "LOCAL_RESPONSE_NORMALIZATION LOGICAL_AND LOGICAL_NOT LOGICAL_OR LSH_PROJECTION "
            "MATRIX_DIAG MATRIX_SET_DIAG MULTINOMIAL NEG NON_MAX_SUPPRESSION_V4 "
            "NON_MAX_SUPPRESSION_V5 ONE_HOT POW PRELU RANDOM_STANDARD_NORMAL RANDOM_UNIFORM RANK "
            "READ_VARIABLE REAL REDUCE_ALL REDUCE_ANY REDUCE_WINDOW RELU_0_TO_1 RELU_N1_TO_1 "
            "RESHAPE REVERSE_SEQUENCE RFFT2D RIGHT_SHIFT ROUND SCATTER_ND SEGMENT_SUM SHAPE "
            "SKIP_GRAM SQUARE STABLEHLO_ADD STABLEHLO_AND STABLEHLO_CASE STABLEHLO_COMPOSITE "
            "STABLEHLO_GATHER STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_MULTIPLY "
            "STABLEHLO_PAD STABLEHLO_REDUCE_WINDOW STABLEHLO_RNG_BIT_GENERATOR STABLEHLO_SCATTER "
            "STABLEHLO_SHIFT_LEFT UNIQUE UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN "
            "UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM VAR_HANDLE WHILE ZEROS_LIKE"
        ),
        2: (
            "COS DEPTH_TO_SPACE DIV EXP FAKE_QUANT FLOOR_MOD GREATER L2_NORMALIZATION LEAKY_RELU "
            "LESS_EQUAL LOG LOG_SOFTMAX RANGE REDUCE_PROD SELECT_V2 SIGN SIN SPACE_TO_DEPTH SQRT "
            "SQUARED_DIFFERENCE SQUEEZE SUM WHERE"
        ),
        3: (
            "ARG_MAX ARG_MIN AVERAGE_POOL_2D BIDIRECTIONAL_SEQUENCE_LSTM "
            "BIDIRECTIONAL_SEQUENCE_RNN FLOOR_DIV GELU GREATER_EQUAL LESS LOGISTIC MAX_POOL_2D "
            "MEAN MIRROR_PAD REDUCE_MAX REDUCE_MIN RELU RELU6 RNN RSQRT SPARSE_TO_DENSE SPLIT_V "
            "TANH TILE TOPK_V2 UNIDIRECTIONAL_SEQUENCE_RNN"
        ),
        4: (
            "BATCH_MATMUL BATCH_TO_SPACE_ND BROADCAST_TO LSTM MAXIMUM MINIMUM NOT_EQUAL "
            "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 SELECT SOFTMAX SPACE_TO_BATCH_ND "
            "SVDF UNIDIRECTIONAL_SEQUENCE_LSTM"
        ),
        5: "ABS EMBEDDING_LOOKUP EQUAL FILL PACK SPLIT SUB TRANSPOSE_CONV",
        6: "ADD DYNAMIC_UPDATE_SLICE GATHER_ND PAD PADV2 QUANTIZE UNPACK",
        7: "CONCATENATION DEPTHWISE_CONV_2D",
        8: "CONV_2D GATHER MUL SLICE STRIDED_SLICE",
        9: "CAST DEQUANTIZE TRANSPOSE",
        14: "FULLY_CONNECTED",
    }
)
LAST: Mapping[str, int] = MappingProxyType(
    {name: last for last, names in _BY_VERSION.items() for name in names.split()}
)
"""By operator, the last version of it."""


def check_version(code: str, version: int, operator: str) -> None:
    """Raise InputError for a version that no runtime has. Unlisted operators are not checked."""
    last = LAST.get(code)
    if last is not None and not 1 <= version <= last:
        raise InputError(
            f"{operator} has version {version}; the versions known are 1 to {last}: the file is "
            "damaged, or newer than this version of Thimble"
        )
