"""A window: samples times weights, shifted right and clamped. TFLM's SignalWindow, int16."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common


@dataclass(frozen=True)
class SignalWindow(kit.Attributes):
    """`shift`: fractional bits of the weights."""

    shift: int = 0


def _infer(op: kit.Operator[SignalWindow]) -> kit.TensorTypes:
    x = op.x
    size = common.vector(op.input(1), kit.DType.INT16, "weights")
    if x.dtype is not kit.DType.INT16 or not x.shape or x.shape[-1] != size:
        raise ValueError(f"{x} is no int16 with {size} samples, as its weights have")
    common.within("shift", op.attributes.shift, 0, 31)
    return (kit.TensorType(x.shape, kit.DType.INT16),)


def _reference(op: kit.Operator[SignalWindow], inputs: kit.Inputs) -> kit.Arrays:
    product = inputs[0].astype(np.int64) * inputs[1].astype(np.int64) >> op.attributes.shift
    limits = np.iinfo(np.int16)
    return (np.clip(product, limits.min, limits.max).astype(np.int16),)


def _select(op: kit.Operator[SignalWindow], core: kit.Core) -> kit.Kernel:
    x = op.x
    call = kit.Call(
        "thimble_window_s16",
        {
            "input": kit.Input(0),
            "weights": kit.Input(1),
            "size": x.shape[-1],
            "count": x.elements // x.shape[-1],
            "shift": op.attributes.shift,
            "output": kit.Output(0),
        },
    )
    return kit.Kernel((call,), _extents, find_overlaps=lambda: (kit.SafeOverlap(0),))


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    elements = call["size"] * call["count"]
    return kit.Extents(
        {0: kit.whole(elements, 2), 1: kit.whole(call["size"], 2)}, {0: kit.whole(elements, 2)}
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    size, count = common.some(rng, 1, 40), common.some(rng, 1, 3)
    weights = rng.integers(-32768, 32768, size).astype(np.int16)
    x = kit.Tensor("x", (count, size), kit.DType.INT16)
    attributes = SignalWindow(common.some(rng, 0, 16))
    w = kit.constant_sample("w", weights)
    return kit.sample("signal_window", attributes, x, w, name="window")


SPEC = kit.Form(
    kind="signal_window",
    attributes=SignalWindow,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=common.binding("SignalWindow", 2, SignalWindow),
    types=common.TYPES,
    quantised=common.QUANTISED,
    limits="int16",
)
