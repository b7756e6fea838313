"""Operators of TFLite that are not read, and why.

The more common ones in public models, as far as known, come first. `docs/operators.md` prints the
list, and refusals quote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolchain.frontends.unread import ON_THE_HOST, Unread

_STABLEHLO = "STABLEHLO_"

UNREAD: Mapping[str, Unread] = MappingProxyType(
    {
        **dict.fromkeys(
            ("WHERE", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "UNIQUE"),
            Unread("the size of its output depends on the data", ON_THE_HOST),
        ),
        **dict.fromkeys(
            ("LSTM",),
            Unread(
                "an old form of one step, which tflite-micro lacks",
                "UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF have a kernel",
            ),
        ),
        **dict.fromkeys(
            ("CONV_3D_TRANSPOSE",),
            Unread(
                "tflite-micro lacks it; networks that make volumes are far above a "
                "microcontroller's RAM"
            ),
        ),
        **dict.fromkeys(
            ("SPARSE_TO_DENSE",),
            Unread(
                "tflite-micro lacks it; it has not been met in a network for microcontrollers",
                ON_THE_HOST,
            ),
        ),
        **dict.fromkeys(
            ("BUCKETIZE", "DILATE"),
            Unread("tflite-micro lacks it; it has not been met in a network for microcontrollers"),
        ),
        **dict.fromkeys(
            (
                "SEGMENT_SUM",
                "UNSORTED_SEGMENT_MAX",
                "UNSORTED_SEGMENT_MIN",
                "UNSORTED_SEGMENT_PROD",
                "UNSORTED_SEGMENT_SUM",
            ),
            Unread("it is of networks over graphs, which tflite-micro does not run"),
        ),
        **dict.fromkeys(
            (
                "RANDOM_STANDARD_NORMAL",
                "RANDOM_UNIFORM",
                "MULTINOMIAL",
                "STABLEHLO_RNG_BIT_GENERATOR",
            ),
            Unread(
                "it draws random numbers, so that no output could be compared",
                "give the random numbers as an input",
            ),
        ),
        **dict.fromkeys(
            (
                "HASHTABLE",
                "HASHTABLE_FIND",
                "HASHTABLE_IMPORT",
                "HASHTABLE_LOOKUP",
                "HASHTABLE_SIZE",
                "LSH_PROJECTION",
                "SKIP_GRAM",
                "EMBEDDING_LOOKUP_SPARSE",
                "CONCAT_EMBEDDINGS",
            ),
            Unread("it is about text and tables of strings", "look words up before the model"),
        ),
        **dict.fromkeys(("BITCAST",), Unread("it is about bits, of which no network computes")),
        **dict.fromkeys(
            ("FAKE_QUANT",),
            Unread(
                "it marks a network in training for quantisation",
                "convert the model to int8: the converter removes it",
            ),
        ),
        **dict.fromkeys(
            ("DENSIFY",), Unread("sparse weights are not supported", "convert with dense weights")
        ),
        **dict.fromkeys(
            ("REDUCE_WINDOW", f"{_STABLEHLO}..."),
            Unread(
                "LiteRT runs few of StableHLO's operators, as they stand before the conversion to "
                "TFLite's",
                "convert to TFLite's own operators",
            ),
        ),
        **dict.fromkeys(
            ("DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"),
            Unread("it is no operator that a file may have"),
        ),
    }
)
"""By operator; the last words on StableHLO are of all of its operators that are not named."""
UNKNOWN = Unread("there is no kernel for it")


def reason(operator: str) -> Unread:
    """Why an operator is not read, and what to do about it."""
    family = f"{_STABLEHLO}..." if operator.startswith(_STABLEHLO) else operator
    return UNREAD.get(operator) or UNREAD.get(family) or UNKNOWN
