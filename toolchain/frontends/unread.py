"""Operators of TFLite and ONNX that are not read, and why.

Those that are more common in public models, as far as known, come first. `docs/operators.md` prints
the list, and refusals of TFLite operators quote it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Unread:
    """Operators that are not read for one reason, and what to do instead."""

    operators: tuple[str, ...]
    why: str
    remedy: str = "replace it in the model (`thimble ops` lists what there is)"


_HOST = "leave it out of the model and compute it on the host"
TFLITE = (
    Unread(
        ("WHERE", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "UNIQUE"),
        "the size of its output depends on the data",
        _HOST,
    ),
    Unread(
        ("LSTM",),
        "an old form of one step, which tflite-micro lacks",
        "UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF have a kernel",
    ),
    Unread(
        ("CONV_3D_TRANSPOSE",),
        "tflite-micro lacks it; networks that make volumes are far above a microcontroller's RAM",
    ),
    Unread(
        ("SPARSE_TO_DENSE",),
        "tflite-micro lacks it; it has not been met in a network for microcontrollers",
        _HOST,
    ),
    Unread(
        ("BUCKETIZE", "DILATE"),
        "tflite-micro lacks it; it has not been met in a network for microcontrollers",
    ),
    Unread(
        (
            "SEGMENT_SUM",
            "UNSORTED_SEGMENT_MAX",
            "UNSORTED_SEGMENT_MIN",
            "UNSORTED_SEGMENT_PROD",
            "UNSORTED_SEGMENT_SUM",
        ),
        "it is of networks over graphs, which tflite-micro does not run",
    ),
    Unread(
        ("RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "MULTINOMIAL", "STABLEHLO_RNG_BIT_GENERATOR"),
        "it draws random numbers, so that no output could be compared",
        "give the random numbers as an input",
    ),
    Unread(
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
        "it is about text and tables of strings",
        "look words up before the model",
    ),
    Unread(("BITCAST",), "it is about bits, of which no network computes"),
    Unread(
        ("FAKE_QUANT",),
        "it marks a network in training for quantisation",
        "convert the model to int8: the converter removes it",
    ),
    Unread(("DENSIFY",), "sparse weights are not supported", "convert with dense weights"),
    Unread(
        ("REDUCE_WINDOW", "STABLEHLO_..."),
        "LiteRT runs few of StableHLO's operators, as they stand before the conversion to TFLite's",
        "convert to TFLite's own operators",
    ),
    Unread(
        ("DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"), "it is no operator that a file may have"
    ),
)
ONNX = (
    Unread(
        ("Shape", "Size", "Constant", "ConstantOfShape", "Range", "EyeLike", "CastLike"),
        "with known shapes it is computed while reading; where it depends on data it is not read",
    ),
    Unread(
        ("Where", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Not"),
        "ONNX Runtime has no quantised form of it; TFLite's counterparts are read",
    ),
    Unread(
        ("TensorScatter",),
        "it writes the memory of language models, which do not fit a microcontroller",
    ),
    Unread(
        ("NonMaxSuppression", "NonZero", "Unique", "Compress"),
        "the size of its output depends on the data",
    ),
    Unread(("If", "Loop", "Scan"), "control flow is read from TFLite alone"),
    Unread(
        ("CumProd", "Trilu", "Hardmax"),
        "ONNX Runtime has no quantised form of it",
    ),
    Unread(
        ("Attention", "LinearAttention", "RotaryEmbedding", "CausalConvWithState", "SwiGLU"),
        "language models that use it do not fit a microcontroller",
    ),
    Unread(
        ("LRN", "LpPool", "GlobalLpPool", "MaxUnpool", "MaxRoiPool", "RoiAlign", "DeformConv"),
        "it has not been met in a network for microcontrollers",
    ),
    Unread(
        ("GridSample", "AffineGrid", "Col2Im", "CenterCropPad"), "it is of large image networks"
    ),
    Unread(
        ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan", "Shrink", "Det"),
        "it has not been met in a quantised network",
    ),
    Unread(
        ("DFT", "STFT", "MelWeightMatrix", "HannWindow", "HammingWindow", "BlackmanWindow"),
        "spectra are computed before the model (--preprocess audio)",
    ),
    Unread(
        ("BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "BitCast", "Xor"),
        "it is about bits, of which no network computes",
    ),
    Unread(("IsInf", "IsNaN"), "int8 has neither"),
    Unread(
        (
            *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"),
            "RandomUniformLike",
        ),
        "it draws random numbers, so that no output could be compared",
    ),
    Unread(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), "it is of training"),
    Unread(
        (
            *("ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty"),
            *("SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap"),
            *("SplitToSequence", "Optional", "OptionalGetElement", "OptionalHasElement"),
        ),
        "there are tensors alone, no sequences",
    ),
    Unread(
        (
            *("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"),
            *("TfIdfVectorizer", "ImageDecoder"),
        ),
        "it is about strings and files",
    ),
)
FORMATS: Mapping[str, tuple[Unread, ...]] = MappingProxyType({"TFLite": TFLITE, "ONNX": ONNX})


def reason(operator: str) -> tuple[str, str]:
    """Why a TFLite operator is not read, and what to do about it."""
    name = "STABLEHLO_..." if operator.startswith("STABLEHLO_") else operator
    for group in sorted(TFLITE, key=lambda group: operator not in group.operators):
        if {name, operator} & set(group.operators):
            return group.why, group.remedy
    return "there is no kernel for it", Unread((), "").remedy


def lines(form: str, read: Collection[str]) -> list[str]:
    """The list of a format, without what is `read` by now."""
    found = []
    for group in FORMATS[form]:
        left = [name for name in group.operators if name not in read]
        if left:
            found.append(f"- {', '.join(left)}: {group.why}.")
    return found
