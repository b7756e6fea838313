"""A signal less its noise, and the noise. TFLM's SignalFilterBankSpectralSubtraction, uint32.

The noise is kept from run to run: the last input is what it was, the last output what it becomes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common

_MEMORY, _NEXT = 1, 2
_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class SignalSpectralSubtraction(kit.Attributes):
    """Names and meanings are TFLM's; parts have `spectral_subtraction_bits` fractional bits."""

    num_channels: int = 1
    smoothing: int = 0
    one_minus_smoothing: int = 0
    alternate_smoothing: int = 0
    alternate_one_minus_smoothing: int = 0
    min_signal_remaining: int = 0
    smoothing_bits: int = 0
    spectral_subtraction_bits: int = 0
    clamping: int = 0


def _infer(op: kit.Operator[SignalSpectralSubtraction]) -> kit.TensorTypes:
    attributes = op.attributes
    for index in (0, _MEMORY):
        if common.vector(op.input(index), kit.DType.UINT32, "signal") != attributes.num_channels:
            raise ValueError(f"{op.input(index)} has not {attributes.num_channels} channels")
    common.within("smoothing_bits", attributes.smoothing_bits, 0, 31)
    common.within("spectral_subtraction_bits", attributes.spectral_subtraction_bits, 0, 31)
    for name, value in vars(attributes).items():
        common.within(name, value, 0, (1 << 31) - 1)
    if attributes.smoothing + attributes.one_minus_smoothing >= 1 << 32:
        raise ValueError("its smoothing adds up to more than 32 bits")
    return (kit.TensorType((attributes.num_channels,), kit.DType.UINT32),) * 3


def _reference(op: kit.Operator[SignalSpectralSubtraction], inputs: kit.Inputs) -> kit.Arrays:
    attributes = op.attributes
    bits, outputs, noise = attributes.spectral_subtraction_bits, [], []
    for channel, (value, old) in enumerate(zip(*(x.tolist() for x in inputs), strict=True)):
        smoothing, rest = (
            (attributes.alternate_smoothing, attributes.alternate_one_minus_smoothing)
            if channel % 2
            else (attributes.smoothing, attributes.one_minus_smoothing)
        )
        scaled = value << attributes.smoothing_bits & _WORD
        mean = (scaled * smoothing + old * rest) % (1 << 64) >> bits & _WORD
        held = min(mean, scaled)
        noise.append(held if attributes.clamping else mean)
        floor = value * attributes.min_signal_remaining >> bits & _WORD
        outputs.append(max((scaled - held) >> attributes.smoothing_bits, floor))
    made = np.array(noise, dtype=np.uint32)
    return np.array(outputs, dtype=np.uint32), made, made.copy()


def _select(op: kit.Operator[SignalSpectralSubtraction], core: kit.Core) -> kit.Kernel:
    attributes = op.attributes
    params = kit.Struct(
        "thimble_noise",
        {
            "smoothing": kit.numbers((attributes.smoothing, attributes.alternate_smoothing)),
            "rest": kit.numbers(
                (attributes.one_minus_smoothing, attributes.alternate_one_minus_smoothing)
            ),
            "floor": attributes.min_signal_remaining,
            "bits": attributes.spectral_subtraction_bits,
            "scale_bits": attributes.smoothing_bits,
            "clamping": attributes.clamping,
        },
    )
    call = kit.Call(
        "thimble_subtract_noise_u32",
        {
            "params": params,
            "channels": attributes.num_channels,
            "signal": kit.Input(0),
            "noise": kit.Output(_NEXT),
            "output": kit.Output(0),
            "estimates": kit.Output(1),
        },
    )
    return kit.Kernel((call,), _extents)


def _extents(touched: kit.Touched) -> kit.Extents:
    channels = kit.whole(touched.call["channels"], 4)
    return kit.Extents({0: channels}, {0: channels, 1: channels, _NEXT: channels})


def _memories(node: kit.TfliteNode) -> kit.Arrays:
    return (np.zeros(common.option(node, "num_channels"), dtype=np.uint32),)


def _sample(rng: np.random.Generator) -> kit.Graph:
    channels, bits = common.some(rng, 1, 12), common.some(rng, 8, 15)
    one = 1 << bits
    even, odd = common.some(rng, 0, one), common.some(rng, 0, one)
    attributes = SignalSpectralSubtraction(
        *(channels, even, one - even, odd, one - odd, common.some(rng, 0, one)),
        *(common.some(rng, 0, 12), bits, common.some(rng, 0, 1)),
    )
    kind, x = "signal_spectral_subtraction", kit.Tensor("x", (channels,), kit.DType.UINT32)
    first, outputs = np.zeros(channels, np.uint32), ("y", "noise")
    return common.sample_kept(kind, attributes, x, firsts=[first], outputs=outputs, name="noise")


SPEC = kit.Form(
    kind="signal_spectral_subtraction",
    attributes=SignalSpectralSubtraction,
    infer=_infer,
    reference=_reference,
    select=_select,
    aliases=kit.kept((_NEXT, _MEMORY)),
    sample=_sample,
    tflite=common.binding(
        "SignalFilterBankSpectralSubtraction", 1, SignalSpectralSubtraction, memories=_memories
    ),
    types=common.TYPES,
    quantised=common.QUANTISED,
    limits="uint32; the noise is kept from run to run",
)
