"""Makes int8 of int32 sums: the last operator of one that was summed in parts.

How a sum is scaled depends on the operator that was split (`Law`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.onnx_rounding import FLOAT_CODE
from toolchain.ops.arithmetic.requant import requant
from toolchain.ops.arithmetic.single_rounding import SingleRounding


class Law(Enum):
    """How a sum is scaled and rounded.

    - TWICE: `MultiplyByQuantizedMultiplier`, which rounds twice, as TFLite's convolutions, sums and
      means do; or ONNX Runtime's float32, if the shift code says so.
    - ONCE: one multiplication and one rounding, as LiteRT's fully connected kernels do.
    - AWAY: division, halves away from zero, as average pools do.
    - EVEN: division, halves to even, as ONNX Runtime's means do.
    """

    TWICE = "twice"
    ONCE = "once"
    AWAY = "away"
    EVEN = "even"


@dataclass(frozen=True)
class RequantiseSums(kit.Attributes):
    """output = clamp(scaled(sum + bias) + offset).

    TWICE and ONCE use `multipliers` and shift `codes` (ONCE also `lows`, the multipliers' low
    parts): one for all channels or one for each index of the last axis. AWAY and EVEN divide by
    `count`.
    """

    law: Law = Law.TWICE
    multipliers: tuple[int, ...] = ()
    codes: tuple[int, ...] = ()
    lows: tuple[int, ...] = ()
    count: int = 1
    bias: int = 0
    offset: int = 0
    activation: kit.Activation = kit.Activation.NONE

    @property
    def scales(self) -> bool:
        """Whether sums are multiplied; if not, they are divided."""
        return self.law in (Law.TWICE, Law.ONCE)


def _infer(op: kit.Operator[RequantiseSums]) -> kit.TensorTypes:
    sums, attributes = op.x, op.attributes
    if sums.dtype is not kit.DType.INT32:
        raise ValueError(f"needs int32 sums, got {sums}")
    if attributes.scales:
        lengths = {len(attributes.multipliers), len(attributes.codes)}
        lengths |= {len(attributes.lows)} if attributes.law is Law.ONCE else set()
        if len(lengths) != 1 or not lengths <= {1, sums.shape[-1] if sums.shape else 1}:
            raise ValueError(f"{len(attributes.multipliers)} multipliers for {sums}")
    elif attributes.count < 1:
        raise ValueError(f"a division by {attributes.count}")
    return (kit.TensorType(sums.shape, kit.DType.INT8),)


def _scaled(sums: NDArray[np.int64], attributes: RequantiseSums) -> NDArray[np.int64]:
    if attributes.law is Law.AWAY:
        magnitude = (np.abs(sums) + attributes.count // 2) // attributes.count
        away: NDArray[np.int64] = np.sign(sums) * magnitude
        return away
    if attributes.law is Law.EVEN:
        return np.rint(sums / attributes.count).astype(np.int64)
    columns = []
    channels = sums.shape[-1]
    for channel in range(channels):
        at = channel if len(attributes.multipliers) == channels else 0
        multiplier, code = attributes.multipliers[at], attributes.codes[at]
        column = sums[..., channel]
        if attributes.law is Law.ONCE:
            columns.append(
                SingleRounding(multiplier, attributes.lows[at], packing.left_shift(code)).apply(
                    column
                )
            )
        elif code == FLOAT_CODE:
            factor = np.array(multiplier, dtype=np.int32).view(np.float32)
            columns.append(np.rint(column.astype(np.float32) * factor).astype(np.int64))
        else:
            columns.append(
                kit.multiply_by_quantized_multiplier(column, multiplier, packing.left_shift(code))
            )
    return np.stack(columns, axis=-1)


def _reference(op: kit.Operator[RequantiseSums], inputs: kit.Inputs) -> kit.Arrays:
    y, attributes = op.y, op.attributes
    sums = kit.wrap_int32(inputs[0].astype(np.int64) + attributes.bias).reshape(*y.shape[:-1], -1)
    low, high = kit.clamp_range(attributes.activation, y)
    scaled = _scaled(sums, attributes) + attributes.offset
    return (np.clip(scaled, low, high).astype(np.int8).reshape(y.shape),)


def _select(op: kit.Operator[RequantiseSums], core: kit.Core) -> kit.Kernel:
    y, attributes = op.y, op.attributes
    low, high = kit.clamp_range(attributes.activation, y)
    channels = len(attributes.multipliers) if attributes.scales else 1
    pixels, elements, narrow = y.elements // channels, y.elements, (low, high) != (-128, 127)
    ending: dict[str, kit.Argument] = {
        "requant": requant(attributes.offset, low, high),
        "sums": kit.Input(0),
    }
    constants: tuple[kit.Constant, ...] = ()
    if attributes.scales:
        call, constants = _scaling_call(attributes, pixels, channels, ending)
        extents = _once_extents if attributes.law is Law.ONCE else _scaling_extents
    else:
        given: dict[str, kit.Argument] = {
            "size": pixels,
            "bias": attributes.bias,
            "count": attributes.count,
            "to_even": int(attributes.law is Law.EVEN),
        }
        call = kit.Call("thimble_average_sums_s8", {**given, **ending, "output": kit.Output(0)})
        extents = _average_extents

    by_lanes = core.mve and attributes.law is Law.TWICE and FLOAT_CODE not in attributes.codes

    def terms() -> kit.Terms:
        if by_lanes:
            vectors = -(-pixels // 4) if channels == 1 else pixels * -(-channels // 4)
            several = channels > 1
            return {
                "call": 1.0,
                "channel": channels,
                "lone vector": vectors * (not several),
                "pixel vector": vectors * several,
                "pixel of vectors": pixels * several,
            }
        return {
            "call": 1.0,
            "pixel": pixels,
            "narrow pixel": pixels * narrow,
            "narrow element": elements * narrow,
            "element": elements * (not narrow),
        }

    return kit.Kernel(
        (call,),
        extents,
        constants=constants,
        # One byte is written after every four that were read.
        find_overlaps=lambda: (kit.SafeOverlap(0),),
        find_terms=terms,
    )


def _scaling_call(
    attributes: RequantiseSums, pixels: int, channels: int, ending: dict[str, kit.Argument]
) -> tuple[kit.Call, tuple[kit.Constant, ...]]:
    once = attributes.law is Law.ONCE
    parts = (attributes.multipliers, attributes.codes, *((attributes.lows,) if once else ()))
    packed = np.array(parts, dtype=np.int32).T.reshape(-1)
    comment = "multipliers, shift codes, low parts" if once else "multipliers, shift codes"
    name = "thimble_requantize_sums_once_s8" if once else "thimble_requantize_sums_s8"
    given: dict[str, kit.Argument] = {
        "pixels": pixels,
        "channels": channels,
        "bias": attributes.bias,
    }
    arguments = {**given, **ending, "parameters": kit.Packed("parameters"), "output": kit.Output(0)}
    return kit.Call(name, arguments), (kit.constant("parameters", packed, comment),)


def _average_extents(touched: kit.Touched) -> kit.Extents:
    size = touched.call["size"]
    return kit.Extents({0: kit.whole(size, 4)}, {0: kit.whole(size)})


def _once_extents(touched: kit.Touched) -> kit.Extents:
    return _scaling_extents(touched, words=3)


def _scaling_extents(touched: kit.Touched, words: int = 2) -> kit.Extents:
    """`words`: parameters of a channel."""
    call, channels = touched.call, touched.call["channels"]
    size = call["pixels"] * channels
    return kit.Extents(
        {0: kit.whole(size, 4)}, {0: kit.whole(size)}, {"parameters": 4 * words * channels}
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = (1, *(int(n) for n in rng.integers(1, 7, 3)))
    law = Law(rng.choice([law.value for law in Law]))
    channels = shape[3] if rng.random() < 0.7 else 1
    pairs = [kit.quantize_multiplier(float(2.0 ** rng.uniform(-26, -20))) for _ in range(channels)]
    multipliers, shifts = zip(*pairs, strict=True)
    attributes = RequantiseSums(
        law,
        multipliers,
        tuple(shift - packing.SHIFT_BIAS for shift in shifts),
        tuple(int(low) for low in rng.integers(0, 1 << 22, channels)),
        int(rng.integers(1, 1 << 24)),
        int(rng.integers(-(1 << 20), 1 << 20)),
        int(rng.integers(-128, 128)),
        kit.sample_activation(rng),
    )
    q = kit.Quantisation((0.0625,), (attributes.offset,))
    sums = kit.Tensor("sums", shape, kit.DType.INT32)
    return kit.sample("requantise_sums", attributes, sums, q=q, name="requantise")


SPEC = kit.Form(
    kind="requantise_sums",
    attributes=RequantiseSums,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    types=frozenset({kit.DType.INT8, kit.DType.INT32}),
    made_by_passes=True,
    limits="int32 sums to int8; made by rewriting only",
)
