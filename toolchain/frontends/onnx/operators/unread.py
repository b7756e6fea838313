"""Operators that no kind reads, and why.

The more common ones in public models, as far as known, come first. `docs/operators.md` prints the
list, and refusals quote it.
"""

from __future__ import annotations

from toolchain.frontends.onnx.operators.row import Operator, Trait
from toolchain.frontends.unread import ON_THE_HOST, Unread

CONSTANT, SHAPE, IF, LOOP = "Constant", "Shape", "If", "Loop"

_FOLDED = Unread(
    "with known shapes it is computed while reading; where it depends on data it is not read",
    "export the model with fixed shapes",
)
_GROWS = Trait.FOLDED_ONLY | Trait.ENLARGES
_CONTROL = Unread(
    "control flow whose course is known only while the model runs",
    "export the model without branches and loops",
)
_RANDOM = Unread(
    "it draws random numbers, so that no output could be compared",
    "give the random numbers as an input",
)


def _rows(
    names: tuple[str, ...], unread: Unread, traits: Trait = Trait.NONE
) -> tuple[Operator, ...]:
    return tuple(Operator(name, traits, unread=unread) for name in names)


ROWS = (
    *_rows((SHAPE,), _FOLDED, Trait.FOLDED_ONLY),
    *_rows(("Size",), _FOLDED),
    *_rows((CONSTANT,), _FOLDED, Trait.NEVER_FOLDED),
    *_rows(("ConstantOfShape", "Range"), _FOLDED, _GROWS),
    *_rows(("EyeLike",), _FOLDED, Trait.ENLARGES),
    *_rows(("CastLike",), _FOLDED),
    *_rows(
        ("TensorScatter",),
        Unread("it writes the memory of language models, which do not fit a microcontroller"),
    ),
    *_rows(
        ("NonMaxSuppression", "NonZero", "Unique", "Compress"),
        Unread("the size of its output depends on the data", ON_THE_HOST),
    ),
    *_rows((IF, LOOP, "Scan"), _CONTROL, Trait.NEVER_FOLDED),
    *_rows(("CumProd", "Trilu", "Hardmax"), Unread("ONNX Runtime has no quantised form of it")),
    *_rows(
        ("Attention", "LinearAttention", "RotaryEmbedding", "CausalConvWithState", "SwiGLU"),
        Unread("language models that use it do not fit a microcontroller"),
    ),
    *_rows(
        ("LRN", "LpPool", "GlobalLpPool", "MaxUnpool", "MaxRoiPool", "RoiAlign", "DeformConv"),
        Unread("it has not been met in a network for microcontrollers"),
    ),
    *_rows(
        ("GridSample", "AffineGrid", "Col2Im", "CenterCropPad"),
        Unread("it is of large image networks"),
    ),
    *_rows(
        ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan", "Shrink", "Det"),
        Unread("it has not been met in a quantised network"),
    ),
    *_rows(
        ("DFT", "STFT", "MelWeightMatrix", "HannWindow", "HammingWindow", "BlackmanWindow"),
        Unread("spectra are computed before the model (--preprocess audio)"),
    ),
    *_rows(
        ("BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "BitCast"),
        Unread("it is about bits, of which no network computes"),
    ),
    *_rows(("IsInf", "IsNaN"), Unread("int8 has neither")),
    *_rows(
        (
            *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"),
            "RandomUniformLike",
        ),
        _RANDOM,
        Trait.NEVER_FOLDED,
    ),
    *_rows(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), Unread("it is of training")),
    *_rows(
        (
            *("ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty"),
            *("SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap"),
            *("SplitToSequence", "Optional", "OptionalGetElement", "OptionalHasElement"),
        ),
        Unread("there are tensors alone, no sequences"),
    ),
    *_rows(
        (
            *("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"),
            *("TfIdfVectorizer", "ImageDecoder"),
        ),
        Unread("it is about strings and files", "look words up before the model"),
    ),
)
