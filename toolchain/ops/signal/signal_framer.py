"""Frames of a stream of samples, which overlap. TFLM's SignalFramer, int16.

Samples that a later frame needs are kept from run to run. The second output says whether there were
enough samples for each frame of the run; if not they all are 0, where TFLM leaves some of them as
they were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common

CUSTOM = "SignalFramer"
_SAMPLES, _HELD = 1, 2
_VALID, _SAMPLES_NEXT, _HELD_NEXT = 1, 2, 3
_LONGEST = 1 << 24


@dataclass(frozen=True)
class SignalFramer(kit.Attributes):
    """Samples of a frame, and from one frame to the next. `prefill`: zeros come before the stream,
    so that the first frame is complete with the first step.
    """

    frame_size: int = 1
    frame_step: int = 1
    prefill: int = 0


def _check(attributes: SignalFramer) -> None:
    if not 1 <= attributes.frame_step <= attributes.frame_size <= _LONGEST:
        raise ValueError(
            f"frames of {attributes.frame_size} samples, {attributes.frame_step} apart"
        )


def _capacity(attributes: SignalFramer) -> int:
    return kit.round_up(attributes.frame_size, attributes.frame_step)


def _infer(op: kit.Operator[SignalFramer]) -> kit.TensorTypes:
    x, state, attributes = op.x, op.input(_SAMPLES), op.attributes
    _check(attributes)
    if x.dtype is not kit.DType.INT16 or not x.shape or x.shape[-1] % attributes.frame_step:
        raise ValueError(f"{x} is no int16 with a multiple of {attributes.frame_step} samples")
    kept = (common.rows_of(x.shape), _capacity(attributes))
    if state.shape != kept or op.input(_HELD).shape != (1,):
        raise ValueError(f"{state} has no room for {kept[1]} samples of {kept[0]} rows")
    frames = (*x.shape[:-1], x.shape[-1] // attributes.frame_step, attributes.frame_size)
    return (
        kit.TensorType(frames, kit.DType.INT16),
        kit.TensorType((), kit.DType.BOOL),
        kit.TensorType(kept, kit.DType.INT16),
        kit.TensorType((1,), kit.DType.INT32),
    )


def _reference(op: kit.Operator[SignalFramer], inputs: kit.Inputs) -> kit.Arrays:
    attributes, (x, kept, before) = op.attributes, inputs
    step, size = attributes.frame_step, attributes.frame_size
    frames = np.zeros(op.y.shape, np.int16).reshape(len(kept), -1, size)
    held, state, valid = int(before[0]), kept.copy(), True
    samples = x.reshape(len(kept), -1, step)
    for i in range(samples.shape[1]):
        state[:, held : held + step] = samples[:, i]
        held += step
        if held >= size:
            frames[:, i] = state[:, :size]
            state[:, : held - step] = state[:, step:held].copy()
            held -= step
        else:
            valid = False
    made = frames if valid else np.zeros_like(frames)
    return made.reshape(op.y.shape), np.array(valid), state, np.array([held], np.int32)


def _select(op: kit.Operator[SignalFramer], core: kit.Core) -> kit.Kernel:
    x, attributes = op.x, op.attributes
    params = kit.Struct(
        "thimble_frame_params",
        {
            "rows": common.rows_of(x.shape),
            "frames": x.shape[-1] // attributes.frame_step,
            "size": attributes.frame_size,
            "step": attributes.frame_step,
            "capacity": _capacity(attributes),
        },
    )
    call = kit.Call(
        "thimble_frame_s16",
        {
            "params": params,
            "input": kit.Input(0),
            "state": kit.Output(_SAMPLES_NEXT),
            "held": kit.Output(_HELD_NEXT),
            "output": kit.Output(0),
            "valid": kit.Output(_VALID),
        },
    )
    return kit.Kernel((call,), _extents)


def _extents(touched: kit.Touched) -> kit.Extents:
    rows, frames, size, step, capacity = touched.call.params(
        "rows", "frames", "size", "step", "capacity"
    )
    return kit.Extents(
        {0: kit.whole(rows * frames * step, 2)},
        {
            0: kit.whole(rows * frames * size, 2),
            _VALID: kit.whole(1),
            _SAMPLES_NEXT: kit.whole(rows * capacity, 2),
            _HELD_NEXT: kit.whole(1, 4),
        },
        largest=rows * frames * size + capacity,
    )


def _first(attributes: SignalFramer, rows: int) -> tuple[kit.Array, kit.Array]:
    """The samples that are kept before the first run."""
    held = attributes.frame_size - attributes.frame_step if attributes.prefill else 0
    return np.zeros((rows, _capacity(attributes)), np.int16), np.array([held], np.int32)


def _memories(node: kit.TfliteNode) -> kit.Arrays:
    x, attributes = node.inputs[0], common.attributes_of(node, SignalFramer)
    _check(attributes)
    assert x is not None
    return _first(attributes, common.rows_of(x.shape))


def _options(attributes: SignalFramer) -> dict[str, int]:
    return {**vars(attributes), "prefill": bool(attributes.prefill)}


def _sample(rng: np.random.Generator) -> kit.Graph:
    step = common.some(rng, 1, 8)
    attributes = SignalFramer(common.some(rng, step, 25), step, common.some(rng, 0, 1))
    shape = (common.some(rng, 1, 3),) if rng.random() < 0.4 else ()
    x = kit.Tensor("x", (*shape, common.some(rng, 1, 5) * step), kit.DType.INT16)
    first = _first(attributes, common.rows_of(x.shape))
    outputs = ("y", "valid")
    return common.sample_kept(
        "signal_framer", attributes, x, firsts=first, outputs=outputs, name="framer"
    )


SPEC = kit.Form(
    kind="signal_framer",
    attributes=SignalFramer,
    infer=_infer,
    reference=_reference,
    select=_select,
    aliases=kit.kept((_SAMPLES_NEXT, _SAMPLES), (_HELD_NEXT, _HELD)),
    sample=_sample,
    tflite=common.binding(CUSTOM, 1, SignalFramer, options=_options, memories=_memories),
    types=common.FRAMED,
    quantised=common.QUANTISED,
    limits="int16; a frame has at least a step's samples, which are kept from run to run; its "
    "frames are 0 where they are not valid",
)
