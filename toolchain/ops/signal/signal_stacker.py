"""Frames of features beside those before and after them. TFLM's SignalStacker, int16.

The frames that a later stack needs are kept from run to run. The second output says whether there
were enough of them; if not the stack is 0, which TFLM leaves as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, State, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Call, Input, Kernel, Output, Struct, Touched
from toolchain.ops.signal.common import FRAMED, MEMORIES, QUANTISED, binding, option, some, vector
from toolchain.ops.spec import Alias, Array, TensorType, TfliteNode

CUSTOM = "SignalStacker"
_FRAMES, _HELD = 1, 2
_VALID, _FRAMES_NEXT, _HELD_NEXT = 1, 2, 3
_NONE_YET = -1
_MOST = 1 << 20


@dataclass(frozen=True)
class SignalStacker(Attributes):
    """Names and meanings are TFLM's: a stack has `stacker_left_context` + 1 +
    `stacker_right_context` frames of `num_channels` values, and moves by `stacker_step` frames.
    """

    num_channels: int = 1
    stacker_left_context: int = 0
    stacker_right_context: int = 0
    stacker_step: int = 1


def _attributes(op: Op) -> SignalStacker:
    assert isinstance(op.attributes, SignalStacker)
    return op.attributes


def _frames(own: SignalStacker) -> int:
    return own.stacker_left_context + 1 + own.stacker_right_context


def _size(own: SignalStacker) -> int:
    return own.num_channels * _frames(own)


def _check(own: SignalStacker) -> None:
    least = min(own.num_channels, own.stacker_step, own.stacker_left_context + 1)
    fits = own.stacker_step <= _frames(own) and _size(own) <= _MOST
    if least < 1 or own.stacker_right_context < 0 or not fits:
        raise ValueError(f"stacks of {_frames(own)} frames, {own.stacker_step} apart: {own}")


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    own = _attributes(op)
    _check(own)
    if vector(graph.input(op, 0), DType.INT16, "frame") != own.num_channels:
        raise ValueError(f"{graph.input(op, 0)} has not {own.num_channels} channels")
    state = graph.input(op, _FRAMES)
    if state.shape != (_size(own),) or graph.input(op, _HELD).shape != (1,):
        raise ValueError(f"{state} has no room for {_size(own)} values")
    stack = TensorType((_size(own),), DType.INT16)
    return stack, TensorType((), DType.BOOL), stack, TensorType((1,), DType.INT32)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    own, (x, kept, before) = _attributes(op), inputs
    held, state, size = int(before[0]), kept.copy(), _size(own)
    times = 1 if held != _NONE_YET else 1 + own.stacker_left_context
    held = max(held, 0)
    state[held : held + times * len(x)] = np.tile(x, times)
    held += times * len(x)
    valid = held >= size
    stack = state.copy() if valid else np.zeros_like(state)
    if valid:
        step = own.stacker_step * own.num_channels
        state[: held - step] = state[step:held].copy()
        held -= step
    return stack, np.array(valid), state, np.array([held], np.int32)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    own = _attributes(op)
    params = Struct(
        "thimble_stack_params",
        {
            "channels": own.num_channels,
            "before": own.stacker_left_context,
            "size": _size(own),
            "step": own.num_channels * own.stacker_step,
        },
    )
    call = Call(
        "thimble_stack_s16",
        {
            "params": params,
            "input": Input(0),
            "state": Output(_FRAMES_NEXT),
            "held": Output(_HELD_NEXT),
            "output": Output(0),
            "valid": Output(_VALID),
        },
    )
    return Kernel((call,), _extents)


def _extents(touched: Touched) -> Extents:
    stack = whole(touched.call["params.size"], 2)
    return Extents(
        {0: whole(touched.call["params.channels"], 2)},
        {0: stack, _VALID: whole(1), _FRAMES_NEXT: stack, _HELD_NEXT: whole(1, 4)},
    )


def _aliases(op: Op, graph: Graph) -> tuple[Alias, ...]:
    return (
        Alias(op.outputs[_FRAMES_NEXT], op.inputs[_FRAMES]),
        Alias(op.outputs[_HELD_NEXT], op.inputs[_HELD]),
    )


def _read(node: TfliteNode) -> SignalStacker:
    return SignalStacker(**{name: option(node, name) for name in vars(SignalStacker())})


def _first(own: SignalStacker) -> tuple[Array, Array]:
    """What is kept before the first run."""
    return np.zeros(_size(own), np.int16), np.array([_NONE_YET], np.int32)


def _memories(node: TfliteNode) -> tuple[Array, ...]:
    own = _read(node)
    _check(own)
    return _first(own)


def _sample(rng: np.random.Generator) -> Graph:
    left, right = some(rng, 0, 3), some(rng, 0, 3)
    own = SignalStacker(some(rng, 1, 12), left, right, some(rng, 1, left + 1 + right))
    first = _first(own)
    tensors = [
        Tensor("x", (own.num_channels,), DType.INT16),
        Tensor("y", first[0].shape, DType.INT16),
        Tensor("valid", (), DType.BOOL),
        *(Tensor(name, first[0].shape, DType.INT16) for name in MEMORIES[0]),
        *(Tensor(name, (1,), DType.INT32) for name in MEMORIES[1]),
    ]
    (before, after), (held, held_after) = MEMORIES
    outputs = ("y", "valid", after, held_after)
    op = Op("signal_stacker", "stacker", ("x", before, held), outputs, own)
    states = [State(before, after, first[0]), State(held, held_after, first[1])]
    return Graph.build("sample", tensors, [op], ["x"], ["y", "valid"], states)


SPEC = OldForm(
    kind="signal_stacker",
    attributes=SignalStacker,
    infer=_infer,
    reference=_reference,
    select=_select,
    aliases=_aliases,
    sample=_sample,
    tflite=binding(CUSTOM, 1, _read, memories=_memories),
    types=FRAMED,
    quantised=QUANTISED,
    limits="int16; frames are kept from run to run; a stack is 0 where it is not valid",
)
