"""Operators that no kind reads, and why.

The more common ones in public models, as far as known, come first. `docs/operators.md` prints the
list, and refusals quote it.
"""

from __future__ import annotations

from toolchain.frontends.onnx.operators.row import Operator, Trait
from toolchain.frontends.unread import DRAWS, ON_THE_HOST, listed

CONSTANT, SHAPE, IF, LOOP = "Constant", "Shape", "If", "Loop"

_FOLDED = (
    "with known shapes it is computed while reading; where it depends on data it is not read",
    "export the model with fixed shapes",
)
_CONTROL = (
    "control flow whose course is known only while the model runs",
    "export the model without branches and loops",
)
_GROWS = Trait.FOLDED_ONLY | Trait.ENLARGES


def _rows(names: str, *reason: str, traits: Trait = Trait.NONE) -> tuple[Operator, ...]:
    return tuple(Operator(name, traits, unread=why) for name, why in listed(names, *reason).items())


ROWS = (
    *_rows(SHAPE, *_FOLDED, traits=Trait.FOLDED_ONLY),
    *_rows("Size", *_FOLDED),
    *_rows(CONSTANT, *_FOLDED, traits=Trait.NEVER_FOLDED),
    *_rows("ConstantOfShape Range", *_FOLDED, traits=_GROWS),
    *_rows("EyeLike", *_FOLDED, traits=Trait.ENLARGES),
    *_rows("CastLike", *_FOLDED),
    *_rows(
        "TensorScatter",
        "it writes the memory of language models, which do not fit a microcontroller",
    ),
    *_rows(
        "NonMaxSuppression NonZero Unique Compress",
        "the size of its output depends on the data",
        ON_THE_HOST,
    ),
    *_rows(f"{IF} {LOOP} Scan", *_CONTROL, traits=Trait.NEVER_FOLDED),
    *_rows("CumProd Trilu Hardmax", "ONNX Runtime has no quantised form of it"),
    *_rows(
        "Attention LinearAttention RotaryEmbedding CausalConvWithState SwiGLU",
        "language models that use it do not fit a microcontroller",
    ),
    *_rows(
        "LRN LpPool GlobalLpPool MaxUnpool MaxRoiPool RoiAlign DeformConv",
        "it has not been met in a network for microcontrollers",
    ),
    *_rows("GridSample AffineGrid Col2Im CenterCropPad", "it is of large image networks"),
    *_rows(
        "Acos Acosh Asin Asinh Atan Atanh Cosh Sinh Tan Shrink Det",
        "it has not been met in a quantised network",
    ),
    *_rows(
        "DFT STFT MelWeightMatrix HannWindow HammingWindow BlackmanWindow",
        "spectra are computed before the model (--preprocess audio)",
    ),
    *_rows(
        "BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BitCast",
        "it is about bits, of which no network computes",
    ),
    *_rows("IsInf IsNaN", "int8 has neither"),
    *_rows(
        "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
        *DRAWS,
        traits=Trait.NEVER_FOLDED,
    ),
    *_rows("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", "it is of training"),
    *_rows(
        "ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase "
        "SequenceInsert SequenceLength SequenceMap SplitToSequence Optional OptionalGetElement "
        "OptionalHasElement",
        "there are tensors alone, no sequences",
    ),
    *_rows(
        "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer ImageDecoder",
        "it is about strings and files",
        "look words up before the model",
    ),
)
