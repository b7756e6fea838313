"""Squared magnitudes of a part of a spectrum. TFLM's SignalEnergy, int16.

TFLM leaves what lies outside the part as it was; here that is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common

CUSTOM = "SignalEnergy"


@dataclass(frozen=True)
class SignalEnergy(kit.Attributes):
    """From `start_index` to before `end_index`."""

    end_index: int = 0
    start_index: int = 0


def _infer(op: kit.Operator[SignalEnergy]) -> kit.TensorTypes:
    count, rest = divmod(common.vector(op.x, kit.DType.INT16, "spectrum"), 2)
    attributes = op.attributes
    if rest or not 0 <= attributes.start_index <= attributes.end_index <= count:
        raise ValueError(
            f"numbers {attributes.start_index} to {attributes.end_index} of a spectrum of {count}"
        )
    return (kit.TensorType((count,), kit.DType.UINT32),)


def _reference(op: kit.Operator[SignalEnergy], inputs: kit.Inputs) -> kit.Arrays:
    attributes = op.attributes
    squares = (inputs[0].astype(np.int64).reshape(-1, 2) ** 2).sum(axis=1)
    energy = np.zeros_like(squares)
    part = slice(attributes.start_index, attributes.end_index)
    energy[part] = squares[part]
    return (energy.astype(np.uint32),)


def _select(op: kit.Operator[SignalEnergy], core: kit.Core) -> kit.Kernel:
    attributes = op.attributes
    arguments: dict[str, kit.Argument] = {
        "spectrum": kit.Input(0),
        "first": attributes.start_index,
        "end": attributes.end_index,
        "count": op.y.elements,
        "energy": kit.Output(0),
    }
    return kit.Kernel((kit.Call("thimble_energies_s16", arguments),), _extents)


def _extents(touched: kit.Touched) -> kit.Extents:
    count = touched.call["count"]
    return kit.Extents({0: kit.whole(count, 4)}, {0: kit.whole(count, 4)})


def _sample(rng: np.random.Generator) -> kit.Graph:
    count = common.some(rng, 1, 30)
    start = common.some(rng, 0, count)
    x = kit.Tensor("x", (2 * count,), kit.DType.INT16)
    attributes = SignalEnergy(common.some(rng, start, count), start)
    return kit.sample("signal_energy", attributes, x, name="energy")


SPEC = kit.Form(
    kind="signal_energy",
    attributes=SignalEnergy,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=common.binding(CUSTOM, 1, SignalEnergy),
    types=common.TYPES,
    quantised=common.QUANTISED,
    limits="int16",
)
