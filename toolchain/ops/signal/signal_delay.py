"""Samples that come some samples later. TFLM's SignalDelay, int16.

The last `delay_length` samples of each row are kept from run to run, zeros before the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common

_LONGEST = 1 << 24


@dataclass(frozen=True)
class SignalDelay(kit.Attributes):
    """`delay_length` in samples."""

    delay_length: int = 1


def _delay(op: kit.Operator[SignalDelay]) -> int:
    return op.attributes.delay_length


def _infer(op: kit.Operator[SignalDelay]) -> kit.TensorTypes:
    x, state = op.x, op.input(1)
    common.within("delay_length", _delay(op), 1, _LONGEST)
    if x.dtype is not kit.DType.INT16 or not x.shape:
        raise ValueError(f"{x} is no int16 with samples")
    kept = kit.TensorType((common.rows_of(x.shape), _delay(op)), kit.DType.INT16)
    if (state.shape, state.dtype) != (kept.shape, kept.dtype):
        raise ValueError(f"{state} does not hold {_delay(op)} samples of {kept.shape[0]} rows")
    return kit.TensorType(x.shape, x.dtype), kept


def _reference(op: kit.AnyOperator, inputs: kit.Inputs) -> kit.Arrays:
    x, state = inputs
    size = x.shape[-1]
    stream = np.concatenate([state, x.reshape(len(state), size)], axis=1)
    return stream[:, :size].reshape(x.shape), stream[:, size:]


def _select(op: kit.Operator[SignalDelay], core: kit.Core) -> kit.Kernel:
    x = op.x
    call = kit.Call(
        "thimble_delay_s16",
        {
            "input": kit.Input(0),
            "rows": common.rows_of(x.shape),
            "size": x.shape[-1],
            "delay": _delay(op),
            "state": kit.Output(1),
            "output": kit.Output(0),
        },
    )
    return kit.Kernel((call,), _extents)


def _extents(touched: kit.Touched) -> kit.Extents:
    rows, size, delay = (touched.call[name] for name in ("rows", "size", "delay"))
    samples = kit.whole(rows * size, 2)
    return kit.Extents({0: samples}, {0: samples, 1: kit.whole(rows * delay, 2)})


def _memories(node: kit.TfliteNode) -> kit.Arrays:
    x, delay = node.inputs[0], common.option(node, "delay_length")
    if x is None or not x.shape or not 0 < delay <= _LONGEST:
        raise node.unsupported(f"its delay is of {delay} samples", f"1 to {_LONGEST} are read")
    return (np.zeros((common.rows_of(x.shape), delay), dtype=np.int16),)


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = tuple(common.some(rng, 1, 6) for _ in range(common.some(rng, 0, 2)))
    shape, delay = (*shape, common.some(rng, 1, 30)), common.some(rng, 1, 40)
    x = kit.Tensor("x", shape, kit.DType.INT16)
    first = np.zeros((common.rows_of(shape), delay), np.int16)
    return common.sample_kept("signal_delay", SignalDelay(delay), x, firsts=[first], name="delay")


SPEC = kit.Form(
    kind="signal_delay",
    attributes=SignalDelay,
    infer=_infer,
    reference=_reference,
    select=_select,
    aliases=kit.kept((1, 1)),
    sample=_sample,
    tflite=common.binding("SignalDelay", 1, SignalDelay, memories=_memories),
    types=common.TYPES,
    quantised=common.QUANTISED,
    limits="int16; the samples on their way are kept from run to run",
)
