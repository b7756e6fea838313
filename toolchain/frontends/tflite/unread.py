"""Operators of TFLite that are not read, and why.

The more common ones in public models, as far as known, come first. `docs/operators.md` prints the
list, and refusals quote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolchain.frontends.unread import DRAWS, ON_THE_HOST, Unread, listed

_STABLEHLO = "STABLEHLO_"

_NOT_MET = "tflite-micro lacks it; it has not been met in a network for microcontrollers"

UNREAD: Mapping[str, Unread] = MappingProxyType(
    {
        **listed(
            "WHERE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 UNIQUE",
            "the size of its output depends on the data",
            ON_THE_HOST,
        ),
        **listed(
            "LSTM",
            "an old form of one step, which tflite-micro lacks",
            "UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF have a kernel",
        ),
        **listed(
            "CONV_3D_TRANSPOSE",
            "tflite-micro lacks it; networks that make volumes are far above a microcontroller's "
            "RAM",
        ),
        **listed("SPARSE_TO_DENSE", _NOT_MET, ON_THE_HOST),
        **listed("BUCKETIZE DILATE", _NOT_MET),
        **listed(
            "SEGMENT_SUM UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD "
            "UNSORTED_SEGMENT_SUM",
            "it is of networks over graphs, which tflite-micro does not run",
        ),
        **listed(
            "RANDOM_STANDARD_NORMAL RANDOM_UNIFORM MULTINOMIAL STABLEHLO_RNG_BIT_GENERATOR", *DRAWS
        ),
        **listed(
            "HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_LOOKUP HASHTABLE_SIZE "
            "LSH_PROJECTION SKIP_GRAM EMBEDDING_LOOKUP_SPARSE CONCAT_EMBEDDINGS",
            "it is about text and tables of strings",
            "look words up before the model",
        ),
        **listed("BITCAST", "it is about bits, of which no network computes"),
        **listed(
            "FAKE_QUANT",
            "it marks a network in training for quantisation",
            "convert the model to int8: the converter removes it",
        ),
        **listed("DENSIFY", "sparse weights are not supported", "convert with dense weights"),
        **listed(
            f"REDUCE_WINDOW {_STABLEHLO}...",
            "LiteRT runs few of StableHLO's operators, as they stand before the conversion to "
            "TFLite's",
            "convert to TFLite's own operators",
        ),
        **listed(
            "DELEGATE PLACEHOLDER_FOR_GREATER_OP_CODES", "it is no operator that a file may have"
        ),
    }
)
"""By operator; the last words on StableHLO are of all of its operators that are not named."""
UNKNOWN = Unread("there is no kernel for it")


def reason(operator: str) -> Unread:
    """Why an operator is not read, and what to do about it."""
    family = f"{_STABLEHLO}..." if operator.startswith(_STABLEHLO) else operator
    return UNREAD.get(operator) or UNREAD.get(family) or UNKNOWN
