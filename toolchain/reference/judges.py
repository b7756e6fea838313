"""Which runtime judges which operator of a TFLite file, and why: the only place that says so.

Found by running random single operators of every kind through all three (ai-edge-litert 2.3,
tflite-micro 0.dev20261023); `tests/pure/test_judges.py` repeats it.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolchain.frontends.tflite.control import reached
from toolchain.frontends.tflite.file import FileModel, FileOp
from toolchain.frontends.tflite.mediapipe import POOLED, TRANSPOSED, UNPOOLED
from toolchain.ir import DType
from toolchain.reference.process import Runtime

_REF, _PLAIN, _MICRO = Runtime.LITERT_REFERENCE, Runtime.LITERT_DEFAULT, Runtime.TFLITE_MICRO
_NARROW, _WIDE, _QUANTISED = ("INT8",), ("INT16",), ("INT8", "INT16")

SIGNAL = (
    *("SignalWindow", "SignalFftAutoScale", "SignalRfft", "SignalEnergy", "SignalFilterBank"),
    *("SignalFilterBankSquareRoot", "SignalFilterBankSpectralSubtraction", "SignalPCAN"),
    *("SignalFilterBankLog", "SignalDelay", "SignalFramer", "SignalStacker", "SignalOverlapAdd"),
    "SignalIrfft",
)
"""Custom operators of tflite-micro's signal library."""


@dataclass(frozen=True)
class Rule:
    """`judges` are tried in turn for these operators, by the schema's names of operator and type.

    `types` are those of the data (of `operand`, by its place); empty for any. `least_weights`: only
    operators with int8 constants that hold -128. `tolerance`: the difference in units that a
    judge's own arithmetic allows.
    """

    codes: tuple[str, ...]
    types: tuple[str, ...]
    judges: tuple[Runtime, ...]
    why: str
    operand: int = 0
    since_version: int | None = None
    least_weights: bool = False
    tolerance: tuple[tuple[Runtime, int], ...] = ()

    def takes(self, op: FileOp, model: FileModel) -> bool:
        """Whether the rule is for this operator."""
        if self.codes and op.name not in self.codes:
            return False
        if self.since_version is not None and op.version < self.since_version:
            return False
        if self.least_weights and not _hold_the_least(op, model):
            return False
        if not self.types:
            return True
        place = op.inputs[self.operand] if self.operand < len(op.inputs) else -1
        return place >= 0 and model.tensors[place].type_name in self.types


def _hold_the_least(op: FileOp, model: FileModel) -> bool:
    inputs = [model.tensors[index].tensor for index in op.inputs if index >= 0]
    constants = [x.constant for x in inputs if x is not None and x.dtype is DType.INT8]
    return any(x is not None and (x == -128).any() for x in constants)


_OF_X86 = (
    Rule(
        ("FULLY_CONNECTED", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
        ("FLOAT32",),
        (),
        "on x86, LiteRT multiplies weights of -128 by negative inputs as if they were 128 "
        "(_mm_sign_epi8); on Arm it does not",
        least_weights=True,
    ),
)
"""Where LiteRT's results depend on the processor, and are wrong on this one: no judge is left."""
RULES: tuple[Rule, ...] = (
    *(_OF_X86 if platform.machine().lower() in ("x86_64", "amd64", "i686") else ()),
    Rule(
        ("SUM",),
        _QUANTISED,
        (_MICRO, _PLAIN),
        "LiteRT's reference kernel reads int8 and int16 as uint8; its default one rescales in "
        "float32, where tflite-micro keeps the fixed point that both have for MEAN",
        tolerance=((_PLAIN, 1),),
    ),
    Rule(
        ("LOCAL_RESPONSE_NORMALIZATION",),
        (),
        (_PLAIN,),
        "LiteRT's reference kernel leaves out the last element of each window",
    ),
    Rule(("ADD_N", "CUMSUM"), _NARROW, (_MICRO,), "LiteRT lacks it in int8"),
    Rule(("SQUARED_DIFFERENCE",), _WIDE, (_MICRO,), "LiteRT lacks it in int16"),
    Rule(
        ("ABS",), ("INT32",), (_PLAIN,), "LiteRT's reference resolver ends before the version of it"
    ),
    Rule(("CEIL", "ELU", "ROUND"), (), (_PLAIN, _MICRO), "LiteRT's reference resolver lacks it"),
    Rule(
        ("TILE",), (), (_PLAIN,), "LiteRT's reference resolver ends at version 2", since_version=3
    ),
    Rule(
        ("SVDF",),
        _NARROW,
        (_MICRO,),
        "LiteRT takes an int8 state for int16 and reads beyond it",
        operand=4,
    ),
    Rule(
        ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "TANH"),
        _QUANTISED,
        (_REF, _PLAIN),
        "tflite-micro rescales otherwise than LiteRT",
    ),
    Rule(
        ("FULLY_CONNECTED",),
        _QUANTISED,
        (_REF,),
        "tflite-micro, and LiteRT's default kernel, round twice",
    ),
    Rule(
        ("LEAKY_RELU",),
        _WIDE,
        (_REF,),
        "tflite-micro, and LiteRT's default kernel, round twice",
    ),
    Rule(
        ("UNIDIRECTIONAL_SEQUENCE_LSTM",),
        (),
        (_REF, _PLAIN),
        "tflite-micro takes the gates' sigmoid and tanh from tables, LiteRT from gemmlowp",
    ),
    Rule(("SPACE_TO_BATCH_ND",), (), (_REF, _PLAIN), "tflite-micro leaves parts of it unwritten"),
    Rule(
        ("MEAN", "SOFTMAX", "LOGISTIC", "DEPTHWISE_CONV_2D"),
        (),
        (_REF, _MICRO),
        "LiteRT's default kernels round otherwise, or crash",
    ),
    Rule((*SIGNAL, "CIRCULAR_BUFFER", "TFLM_DECODE"), (), (_MICRO,), "LiteRT does not know them"),
    Rule((TRANSPOSED, POOLED, UNPOOLED), (), (), "MediaPipe alone knows it"),
    Rule((), (), (_REF, _PLAIN, _MICRO), "LiteRT's reference kernels say what TFLite means"),
)


def rule_of(op: FileOp, model: FileModel) -> Rule:
    """The first rule that takes the operator; the last rule takes all.

    An operator that calls subgraphs has the judges that are right on every operator in these, too.
    """
    outer = _rule_of(op, model)
    called = [model.others[number - 1] for number in sorted(reached(model, op))]
    inner = {_rule_of(each, subgraph): None for subgraph in called for each in subgraph.ops}
    special = [rule for rule in inner if rule is not outer]
    judges = tuple(judge for judge in outer.judges if all(judge in r.judges for r in special))
    if not special or (not judges and all(rule.judges for rule in special)):
        return outer
    why = "; ".join(rule.why for rule in special)
    tolerance = tuple(each for rule in special for each in rule.tolerance)
    return replace(outer, judges=judges, why=why, tolerance=tolerance)


def _rule_of(op: FileOp, model: FileModel) -> Rule:
    return next(rule for rule in RULES if rule.takes(op, model))


def tolerance_of(used: Sequence[tuple[Rule, Runtime]]) -> int:
    """The difference in units that these judges' arithmetic allows."""
    return max((dict(rule.tolerance).get(judge, 0) for rule, judge in used), default=0)
