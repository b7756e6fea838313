"""The Fourier transform of real samples, as KissFFT rounds it. TFLM's SignalRfft, int16."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common
from toolchain.ops.signal.fourier import fourier_tables, rfft


@dataclass(frozen=True)
class SignalRfft(kit.Attributes):
    """`length`: samples of the transform; the input may have fewer, and zeros follow."""

    length: int = 4


def _reference(op: kit.Operator[SignalRfft], inputs: kit.Inputs) -> kit.Arrays:
    padded = np.zeros(op.attributes.length, dtype=np.int16)
    padded[: len(inputs[0])] = inputs[0]
    return (rfft(padded, fourier_tables(len(padded))).astype(np.int16).reshape(-1),)


def rfft_plan(length: int) -> tuple[kit.Struct, tuple[kit.Constant, ...]]:
    """The argument for transforms of `length` samples, and the constants that it names."""
    tables = fourier_tables(length)
    arrays = {"order": tables.order, "twiddles": tables.twiddles, "halves": tables.halves}
    plan = kit.Struct(
        "thimble_rfft", {"length": tables.length, **{name: kit.Packed(name) for name in arrays}}
    )
    return plan, tuple(kit.constant(name, data) for name, data in arrays.items())


def rfft_plan_bytes(length: int) -> dict[str, int]:
    """The bytes of these constants that a transform reads."""
    tables = fourier_tables(length)
    return {
        "order": tables.order.nbytes,
        "twiddles": tables.twiddles.nbytes,
        "halves": tables.halves.nbytes,
    }


def _select(op: kit.Operator[SignalRfft], core: kit.Core) -> kit.Kernel:
    plan, constants = rfft_plan(op.attributes.length)
    arguments: dict[str, kit.Argument] = {
        "rfft": plan,
        "input": kit.Input(0),
        "count": op.x.elements,
        "output": kit.Output(0),
    }
    return kit.Kernel((kit.Call("thimble_rfft_s16", arguments),), _extents, constants=constants)


def _extents(touched: kit.Touched) -> kit.Extents:
    length = touched.call["rfft.length"]
    return kit.Extents(
        {0: kit.whole(touched.call["count"], 2)},
        {0: kit.whole(length + 2, 2)},
        rfft_plan_bytes(length),
    )


def rfft_form(
    dtype: kit.DType,
    code: int,
    types: frozenset[kit.DType],
    reference: Callable[[kit.Operator[SignalRfft], kit.Inputs], kit.Arrays],
    select: kit.Select,
) -> kit.Form[SignalRfft]:
    """The form for samples of this element type, which the file calls `code`."""

    def infer(op: kit.Operator[SignalRfft]) -> kit.TensorTypes:
        common.check_length(op.attributes.length, common.vector(op.x, dtype, "input"))
        return (kit.TensorType((op.attributes.length + 2,), dtype),)

    def sample(rng: np.random.Generator) -> kit.Graph:
        length = common.LENGTHS[common.some(rng, 0, 7)]
        x = kit.Tensor("x", (common.some(rng, 1, length),), dtype)
        return kit.sample("signal_rfft", SignalRfft(length), x, name="rfft")

    return kit.Form(
        kind="signal_rfft",
        attributes=SignalRfft,
        infer=infer,
        reference=reference,
        select=select,
        sample=sample,
        tflite=common.transform_binding("SignalRfft", SignalRfft, code),
        types=types,
        quantised=common.QUANTISED,
        dtype=dtype,
        limits=f"{dtype.value}; a power of 2 of samples, from 4 to 16384",
    )


S16 = rfft_form(kit.DType.INT16, common.INT16, common.TYPES, _reference, _select)
