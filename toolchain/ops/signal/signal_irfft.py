"""Real samples from their Fourier transform. TFLM's SignalIrfft, int16 and float32 as KissFFT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common
from toolchain.ops.signal.fourier import fourier_tables, irfft
from toolchain.ops.signal.fourier_f32 import plan_bytes, real_inverse, real_plan
from toolchain.ops.signal.signal_rfft_s16 import rfft_plan, rfft_plan_bytes


@dataclass(frozen=True)
class SignalIrfft(kit.Attributes):
    """`length`: samples of the transform."""

    length: int = 4


def _length(op: kit.Operator[SignalIrfft]) -> int:
    return op.attributes.length


def _infer(op: kit.Operator[SignalIrfft]) -> kit.TensorTypes:
    x, length = op.x, _length(op)
    common.check_length(length, 0)
    if not x.shape or x.shape[-1] != length + 2:
        raise ValueError(f"{x} holds no transform of {length} samples")
    return (kit.TensorType((*x.shape[:-1], length), x.dtype),)


def _reference(op: kit.Operator[SignalIrfft], inputs: kit.Inputs) -> kit.Arrays:
    y, length = op.y, _length(op)
    numbers = inputs[0].reshape(-1, length // 2 + 1, 2)
    if y.dtype is kit.DType.FLOAT32:
        with np.errstate(all="ignore"):
            return (real_inverse(numbers.astype(np.float32)).reshape(y.shape),)
    tables = fourier_tables(length)
    rows = [irfft(row.astype(np.int16), tables) for row in numbers]
    return (np.stack(rows).astype(np.int16).reshape(y.shape),)


def _select(op: kit.Operator[SignalIrfft], core: kit.Core) -> kit.Kernel:
    x = op.x
    real = x.dtype is kit.DType.FLOAT32
    plan: tuple[kit.Struct, tuple[kit.Constant, ...]]
    plan = real_plan(_length(op)) if real else rfft_plan(_length(op))
    arguments: dict[str, kit.Argument] = {
        "rfft": plan[0],
        "input": kit.Input(0),
        "rows": common.rows_of(x.shape),
        "output": kit.Output(0),
    }
    call = kit.Call(f"thimble_irfft_{'f32' if real else 's16'}", arguments)
    return kit.Kernel((call,), lambda touched: _extents(touched, real), constants=plan[1])


def _extents(touched: kit.Touched, real: bool) -> kit.Extents:
    """`real`: of float32, not of int16."""
    call = touched.call
    length = 2 * call["rfft.pairs.length"] if real else call["rfft.length"]
    width = 4 if real else 2
    return kit.Extents(
        {0: kit.whole(call["rows"] * (length + 2), width)},
        {0: kit.whole(call["rows"] * length, width)},
        plan_bytes(length) if real else rfft_plan_bytes(length),
    )


def _sample(dtype: kit.DType) -> Callable[[np.random.Generator], kit.Graph]:
    def made(rng: np.random.Generator) -> kit.Graph:
        length = common.LENGTHS[common.some(rng, 0, 7)]
        shape = (common.some(rng, 1, 3),) if rng.random() < 0.4 else ()
        x = kit.Tensor("x", (*shape, length + 2), dtype)
        return kit.sample("signal_irfft", SignalIrfft(length), x, name="irfft")

    return made


def _spec(dtype: kit.DType, code: int, dtypes: frozenset[kit.DType]) -> kit.Form[SignalIrfft]:
    return kit.Form(
        kind="signal_irfft",
        attributes=SignalIrfft,
        infer=_infer,
        reference=_reference,
        select=_select,
        sample=_sample(dtype),
        tflite=common.transform_binding("SignalIrfft", SignalIrfft, code),
        types=dtypes,
        quantised=common.QUANTISED,
        dtype=dtype,
        limits=f"{dtype.value}; a power of 2 of samples, from 4 to 16384",
    )


SPEC = kit.OpSpec(
    (
        _spec(kit.DType.INT16, common.INT16, common.TYPES),
        _spec(kit.DType.FLOAT32, common.FLOAT32, frozenset()),
    )
)
