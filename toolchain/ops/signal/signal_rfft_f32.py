"""The Fourier transform of real float32 samples. TFLM's SignalRfft, KissFFT's operations."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common
from toolchain.ops.signal.fourier_f32 import plan_bytes, real_plan, real_transform
from toolchain.ops.signal.signal_rfft_s16 import SignalRfft, rfft_form


def _length(op: kit.Operator[SignalRfft]) -> int:
    return op.attributes.length


def _reference(op: kit.Operator[SignalRfft], inputs: kit.Inputs) -> kit.Arrays:
    padded = np.zeros(_length(op), dtype=np.float32)
    padded[: len(inputs[0])] = inputs[0]
    with np.errstate(all="ignore"):
        return (real_transform(padded).reshape(-1),)


def _select(op: kit.Operator[SignalRfft], core: kit.Core) -> kit.Kernel:
    plan, constants = real_plan(_length(op))
    count = op.x.elements
    call = kit.Call(
        "thimble_rfft_f32",
        {"rfft": plan, "input": kit.Input(0), "count": count, "output": kit.Output(0)},
    )
    return kit.Kernel((call,), _extents, constants=constants)


def _extents(touched: kit.Touched) -> kit.Extents:
    length = 2 * touched.call["rfft.pairs.length"]
    return kit.Extents(
        {0: kit.whole(touched.call["count"], 4)}, {0: kit.whole(length + 2, 4)}, plan_bytes(length)
    )


F32 = rfft_form(kit.DType.FLOAT32, common.FLOAT32, frozenset(), _reference, _select)
