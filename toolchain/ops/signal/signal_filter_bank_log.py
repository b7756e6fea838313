"""Scaled natural logarithms. TFLM's SignalFilterBankLog, uint32 to int16."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common
from toolchain.ops.signal.spectrum import logarithm

_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class SignalFilterBankLog(kit.Attributes):
    """`output_scale` times ln(input * 2^`input_correction_bits`)."""

    input_correction_bits: int = 0
    output_scale: int = 1


def _infer(op: kit.Operator[SignalFilterBankLog]) -> kit.TensorTypes:
    count = common.vector(op.x, kit.DType.UINT32, "signal")
    attributes = op.attributes
    common.within("input_correction_bits", attributes.input_correction_bits, 0, 31)
    common.within("output_scale", attributes.output_scale, 0, (1 << 31) - 1)
    return (kit.TensorType((count,), kit.DType.INT16),)


def _reference(op: kit.Operator[SignalFilterBankLog], inputs: kit.Inputs) -> kit.Arrays:
    attributes = op.attributes
    values = [int(value) << attributes.input_correction_bits & _WORD for value in inputs[0]]
    return (np.array([logarithm(v, attributes.output_scale) for v in values], dtype=np.int16),)


def _select(op: kit.Operator[SignalFilterBankLog], core: kit.Core) -> kit.Kernel:
    attributes = op.attributes
    arguments: dict[str, kit.Argument] = {
        "signal": kit.Input(0),
        "count": op.x.elements,
        "scale": attributes.output_scale,
        "correction_bits": attributes.input_correction_bits,
        "logs": kit.Output(0),
    }
    return kit.Kernel(
        (kit.Call("thimble_logs_u32", arguments),),
        lambda touched: common.same_length(touched, "count", (4, 2)),
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    x = kit.Tensor("x", (common.some(rng, 1, 20),), kit.DType.UINT32)
    attributes = SignalFilterBankLog(common.some(rng, 0, 12), common.some(rng, 1, 3000))
    return kit.sample("signal_filter_bank_log", attributes, x, name="log")


SPEC = kit.Form(
    kind="signal_filter_bank_log",
    attributes=SignalFilterBankLog,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=common.binding("SignalFilterBankLog", 1, SignalFilterBankLog),
    types=common.TYPES,
    quantised=common.QUANTISED,
    limits="uint32",
)
