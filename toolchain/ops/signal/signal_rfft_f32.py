"""The Fourier transform of real float32 samples. TFLM's SignalRfft, KissFFT's operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal.common import (
    FLOAT32,
    LENGTHS,
    QUANTISED,
    binding,
    check_length,
    length_of,
    some,
    transform_options,
    vector,
)
from toolchain.ops.signal.fourier_f32 import plan_bytes, real_plan, real_transform
from toolchain.ops.signal.signal_rfft_s16 import SignalRfft


def _length(op: kit.Operator[SignalRfft]) -> int:
    return op.attributes.length


def _infer(op: kit.Operator[SignalRfft]) -> tuple[kit.TensorType, ...]:
    check_length(_length(op), vector(op.x, kit.DType.FLOAT32, "input"))
    return (kit.TensorType((_length(op) + 2,), kit.DType.FLOAT32),)


def _reference(op: kit.Operator[SignalRfft], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
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


def _sample(rng: np.random.Generator) -> kit.Graph:
    length = LENGTHS[some(rng, 0, 7)]
    count = some(rng, 1, length)
    tensors = [
        kit.Tensor("x", (count,), kit.DType.FLOAT32),
        kit.Tensor("y", (length + 2,), kit.DType.FLOAT32),
    ]
    op = kit.Op("signal_rfft", "rfft", ("x",), ("y",), SignalRfft(length))
    return kit.Graph.build("sample", tensors, [op], ["x"], ["y"])


F32 = kit.Form(
    kind="signal_rfft",
    attributes=SignalRfft,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=binding(
        "SignalRfft",
        1,
        lambda node: SignalRfft(length_of(node)),
        lambda own: transform_options(FLOAT32, own.length),
    ),
    dtype=kit.DType.FLOAT32,
    quantised=QUANTISED,
    limits="float32; a power of 2 of samples, from 4 to 16384",
)
