"""Frames of features beside those before and after them. TFLM's SignalStacker, int16.

The frames that a later stack needs are kept from run to run. The second output says whether there
were enough of them; if not the stack is 0, which TFLM leaves as it was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common

CUSTOM = "SignalStacker"
_FRAMES, _HELD = 1, 2
_VALID, _FRAMES_NEXT, _HELD_NEXT = 1, 2, 3
_NONE_YET = -1
_MOST = 1 << 20


@dataclass(frozen=True)
class SignalStacker(kit.Attributes):
    """Names and meanings are TFLM's: a stack has `stacker_left_context` + 1 +
    `stacker_right_context` frames of `num_channels` values, and moves by `stacker_step` frames.
    """

    num_channels: int = 1
    stacker_left_context: int = 0
    stacker_right_context: int = 0
    stacker_step: int = 1


def _frames(attributes: SignalStacker) -> int:
    return attributes.stacker_left_context + 1 + attributes.stacker_right_context


def _size(attributes: SignalStacker) -> int:
    return attributes.num_channels * _frames(attributes)


def _check(attributes: SignalStacker) -> None:
    least = min(
        attributes.num_channels, attributes.stacker_step, attributes.stacker_left_context + 1
    )
    fits = attributes.stacker_step <= _frames(attributes) and _size(attributes) <= _MOST
    if least < 1 or attributes.stacker_right_context < 0 or not fits:
        raise ValueError(
            f"stacks of {_frames(attributes)} frames, {attributes.stacker_step} apart: {attributes}"
        )


def _infer(op: kit.Operator[SignalStacker]) -> kit.TensorTypes:
    attributes = op.attributes
    _check(attributes)
    if common.vector(op.x, kit.DType.INT16, "frame") != attributes.num_channels:
        raise ValueError(f"{op.x} has not {attributes.num_channels} channels")
    state = op.input(_FRAMES)
    if state.shape != (_size(attributes),) or op.input(_HELD).shape != (1,):
        raise ValueError(f"{state} has no room for {_size(attributes)} values")
    stack = kit.TensorType((_size(attributes),), kit.DType.INT16)
    return stack, kit.TensorType((), kit.DType.BOOL), stack, kit.TensorType((1,), kit.DType.INT32)


def _reference(op: kit.Operator[SignalStacker], inputs: kit.Inputs) -> kit.Arrays:
    attributes, (x, kept, before) = op.attributes, inputs
    held, state, size = int(before[0]), kept.copy(), _size(attributes)
    times = 1 if held != _NONE_YET else 1 + attributes.stacker_left_context
    held = max(held, 0)
    state[held : held + times * len(x)] = np.tile(x, times)
    held += times * len(x)
    valid = held >= size
    stack = state.copy() if valid else np.zeros_like(state)
    if valid:
        step = attributes.stacker_step * attributes.num_channels
        state[: held - step] = state[step:held].copy()
        held -= step
    return stack, np.array(valid), state, np.array([held], np.int32)


def _select(op: kit.Operator[SignalStacker], core: kit.Core) -> kit.Kernel:
    attributes = op.attributes
    params = kit.Struct(
        "thimble_stack_params",
        {
            "channels": attributes.num_channels,
            "before": attributes.stacker_left_context,
            "size": _size(attributes),
            "step": attributes.num_channels * attributes.stacker_step,
        },
    )
    call = kit.Call(
        "thimble_stack_s16",
        {
            "params": params,
            "input": kit.Input(0),
            "state": kit.Output(_FRAMES_NEXT),
            "held": kit.Output(_HELD_NEXT),
            "output": kit.Output(0),
            "valid": kit.Output(_VALID),
        },
    )
    return kit.Kernel((call,), _extents)


def _extents(touched: kit.Touched) -> kit.Extents:
    stack = kit.whole(touched.call["params.size"], 2)
    return kit.Extents(
        {0: kit.whole(touched.call["params.channels"], 2)},
        {0: stack, _VALID: kit.whole(1), _FRAMES_NEXT: stack, _HELD_NEXT: kit.whole(1, 4)},
    )


def _first(attributes: SignalStacker) -> tuple[kit.Array, kit.Array]:
    """The samples that are kept before the first run."""
    return np.zeros(_size(attributes), np.int16), np.array([_NONE_YET], np.int32)


def _memories(node: kit.TfliteNode) -> kit.Arrays:
    attributes = common.attributes_of(node, SignalStacker)
    _check(attributes)
    return _first(attributes)


def _sample(rng: np.random.Generator) -> kit.Graph:
    left, right = common.some(rng, 0, 3), common.some(rng, 0, 3)
    attributes = SignalStacker(
        common.some(rng, 1, 12), left, right, common.some(rng, 1, left + 1 + right)
    )
    x = kit.Tensor("x", (attributes.num_channels,), kit.DType.INT16)
    first, outputs = _first(attributes), ("y", "valid")
    return common.sample_kept(
        "signal_stacker", attributes, x, firsts=first, outputs=outputs, name="stacker"
    )


SPEC = kit.Form(
    kind="signal_stacker",
    attributes=SignalStacker,
    infer=_infer,
    reference=_reference,
    select=_select,
    aliases=kit.kept((_FRAMES_NEXT, _FRAMES), (_HELD_NEXT, _HELD)),
    sample=_sample,
    tflite=common.binding(CUSTOM, 1, SignalStacker, memories=_memories),
    types=common.FRAMED,
    quantised=common.QUANTISED,
    limits="int16; frames are kept from run to run; a stack is 0 where it is not valid",
)
