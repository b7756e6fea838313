"""Gain control of each channel by its noise. TFLM's SignalPCAN, uint32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common
from toolchain.ops.signal.spectrum import gain_at, shrunk

GAINS = 125
_GAIN = 2
_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class SignalPcan(kit.Attributes):
    """`snr_shift`: fractional bits of signal times gain, above 12."""

    snr_shift: int = 0


def _infer(op: kit.Operator[SignalPcan]) -> kit.TensorTypes:
    count = common.vector(op.x, kit.DType.UINT32, "signal")
    if common.vector(op.input(1), kit.DType.UINT32, "noise") != count:
        raise ValueError(f"{op.input(1)} has not the {count} channels of the signal")
    if common.vector(op.input(_GAIN), kit.DType.INT16, "gains") < GAINS:
        raise ValueError(f"{op.input(_GAIN)} has not {GAINS} gains")
    common.within("snr_shift", op.attributes.snr_shift, 0, 63)
    return (kit.TensorType((count,), kit.DType.UINT32),)


def _reference(op: kit.Operator[SignalPcan], inputs: kit.Inputs) -> kit.Arrays:
    signal, noise, table = inputs
    gains = [gain_at(int(value), table.astype(np.int16)) for value in noise]
    shift = op.attributes.snr_shift
    snr = [int(s) * gain >> shift & _WORD for s, gain in zip(signal, gains, strict=True)]
    return (np.array([shrunk(value) & _WORD for value in snr], dtype=np.uint32),)


def _select(op: kit.Operator[SignalPcan], core: kit.Core) -> kit.Kernel:
    arguments: dict[str, kit.Argument] = {
        "gain": kit.Input(_GAIN),
        "snr_shift": op.attributes.snr_shift,
        "channels": op.x.elements,
        "noise": kit.Input(1),
        "signal": kit.Input(0),
        "output": kit.Output(0),
    }
    return kit.Kernel((kit.Call("thimble_pcan_u32", arguments),), _extents)


def _extents(touched: kit.Touched) -> kit.Extents:
    channels = kit.whole(touched.call["channels"], 4)
    return kit.Extents({0: channels, 1: channels, _GAIN: kit.whole(GAINS, 2)}, {0: channels})


def _sample(rng: np.random.Generator) -> kit.Graph:
    count = common.some(rng, 1, 20)
    gains = np.sort(rng.integers(0, 16000, GAINS))[::-1].astype(np.int16)
    x, noise = (kit.Tensor(name, (count,), kit.DType.UINT32) for name in ("x", "noise"))
    table = kit.constant_sample("gains", gains)
    return kit.sample(
        "signal_pcan", SignalPcan(common.some(rng, 0, 20)), x, noise, table, name="pcan"
    )


SPEC = kit.Form(
    kind="signal_pcan",
    attributes=SignalPcan,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=common.binding("SignalPCAN", 3, SignalPcan),
    types=common.TYPES,
    quantised=common.QUANTISED,
    limits="uint32",
)
