"""Samples shifted left as far as the largest allows. TFLM's SignalFftAutoScale, int16."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common


@dataclass(frozen=True)
class SignalFftAutoScale(kit.Attributes):
    """No attributes."""


def _infer(op: kit.AnyOperator) -> kit.TensorTypes:
    size = common.vector(op.x, kit.DType.INT16, "input")
    return kit.TensorType((size,), kit.DType.INT16), kit.TensorType((), kit.DType.INT32)


def scale_bits(samples: kit.Array) -> int:
    """By how many bits; 0 for silence, and where -32768 is the last largest: int16 wraps."""
    largest = 0
    for sample in samples.tolist():
        if sample > largest:
            largest = sample
        elif -sample > largest:
            largest = -32768 if sample == -32768 else -sample
    return 15 - largest.bit_length() if largest > 0 else 0


def _reference(op: kit.AnyOperator, inputs: kit.Inputs) -> kit.Arrays:
    bits = scale_bits(inputs[0])
    scaled = (inputs[0].astype(np.int64) << bits).astype(np.int16)
    return scaled, np.array(bits, dtype=np.int32)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    arguments: dict[str, kit.Argument] = {
        "input": kit.Input(0),
        "size": op.x.elements,
        "output": kit.Output(0),
        "bits": kit.Output(1),
    }
    return kit.Kernel((kit.Call("thimble_auto_scale_s16", arguments),), _extents)


def _extents(touched: kit.Touched) -> kit.Extents:
    size = touched.call["size"]
    return kit.Extents({0: kit.whole(size, 2)}, {0: kit.whole(size, 2), 1: kit.whole(1, 4)})


def _sample(rng: np.random.Generator) -> kit.Graph:
    x = kit.Tensor("x", (common.some(rng, 1, 40),), kit.DType.INT16)
    kind, attributes = "signal_fft_auto_scale", SignalFftAutoScale()
    return kit.sample(kind, attributes, x, outputs=("y", "bits"), name="scale")


SPEC = kit.Form(
    kind="signal_fft_auto_scale",
    attributes=SignalFftAutoScale,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=common.binding("SignalFftAutoScale", 1, SignalFftAutoScale),
    types=common.TYPES,
    quantised=common.QUANTISED,
    limits="int16",
)
