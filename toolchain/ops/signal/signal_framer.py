"""Frames of a stream of samples, which overlap. TFLM's SignalFramer, int16.

Samples that a later frame needs are kept from run to run. The second output says whether there were
enough samples for each frame of the run; if not they all are 0, where TFLM leaves some of them as
they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, State, Tensor
from toolchain.ops.extents import Extents, round_up, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Call, Input, Kernel, Output, Struct, Touched
from toolchain.ops.signal.common import FRAMED, MEMORIES, QUANTISED, binding, option, rows_of, some
from toolchain.ops.spec import Alias, Array, TensorType, TfliteNode

CUSTOM = "SignalFramer"
_SAMPLES, _HELD = 1, 2
_VALID, _SAMPLES_NEXT, _HELD_NEXT = 1, 2, 3
_LONGEST = 1 << 24


@dataclass(frozen=True)
class SignalFramer(Attributes):
    """Samples of a frame, and from one frame to the next. `prefill`: zeros come before the stream,
    so that the first frame is complete with the first step.
    """

    frame_size: int = 1
    frame_step: int = 1
    prefill: int = 0


def _attributes(op: Op) -> SignalFramer:
    assert isinstance(op.attributes, SignalFramer)
    return op.attributes


def _check(own: SignalFramer) -> None:
    if not 1 <= own.frame_step <= own.frame_size <= _LONGEST:
        raise ValueError(f"frames of {own.frame_size} samples, {own.frame_step} apart")


def _capacity(own: SignalFramer) -> int:
    return round_up(own.frame_size, own.frame_step)


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, state, own = graph.input(op, 0), graph.input(op, _SAMPLES), _attributes(op)
    _check(own)
    if x.dtype is not DType.INT16 or not x.shape or x.shape[-1] % own.frame_step:
        raise ValueError(f"{x} is no int16 with a multiple of {own.frame_step} samples")
    kept = (rows_of(x.shape), _capacity(own))
    if state.shape != kept or graph.input(op, _HELD).shape != (1,):
        raise ValueError(f"{state} has no room for {kept[1]} samples of {kept[0]} rows")
    frames = (*x.shape[:-1], x.shape[-1] // own.frame_step, own.frame_size)
    return (
        TensorType(frames, DType.INT16),
        TensorType((), DType.BOOL),
        TensorType(kept, DType.INT16),
        TensorType((1,), DType.INT32),
    )


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    own, (x, kept, before) = _attributes(op), inputs
    step, size = own.frame_step, own.frame_size
    frames = np.zeros(graph.output(op).shape, np.int16).reshape(len(kept), -1, size)
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
    return made.reshape(graph.output(op).shape), np.array(valid), state, np.array([held], np.int32)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x, own = graph.input(op, 0), _attributes(op)
    params = Struct(
        "thimble_frame_params",
        {
            "rows": rows_of(x.shape),
            "frames": x.shape[-1] // own.frame_step,
            "size": own.frame_size,
            "step": own.frame_step,
            "capacity": _capacity(own),
        },
    )
    call = Call(
        "thimble_frame_s16",
        {
            "params": params,
            "input": Input(0),
            "state": Output(_SAMPLES_NEXT),
            "held": Output(_HELD_NEXT),
            "output": Output(0),
            "valid": Output(_VALID),
        },
    )
    return Kernel((call,), _extents)


def _extents(touched: Touched) -> Extents:
    rows, frames, size, step, capacity = (
        touched.call[f"params.{name}"] for name in ("rows", "frames", "size", "step", "capacity")
    )
    return Extents(
        {0: whole(rows * frames * step, 2)},
        {
            0: whole(rows * frames * size, 2),
            _VALID: whole(1),
            _SAMPLES_NEXT: whole(rows * capacity, 2),
            _HELD_NEXT: whole(1, 4),
        },
        largest=rows * frames * size + capacity,
    )


def _aliases(op: Op, graph: Graph) -> tuple[Alias, ...]:
    return (
        Alias(op.outputs[_SAMPLES_NEXT], op.inputs[_SAMPLES]),
        Alias(op.outputs[_HELD_NEXT], op.inputs[_HELD]),
    )


def _read(node: TfliteNode) -> SignalFramer:
    names = ("frame_size", "frame_step", "prefill")
    return SignalFramer(*(option(node, name) for name in names))


def _first(own: SignalFramer, rows: int) -> tuple[Array, Array]:
    """What is kept before the first run."""
    held = own.frame_size - own.frame_step if own.prefill else 0
    return np.zeros((rows, _capacity(own)), np.int16), np.array([held], np.int32)


def _memories(node: TfliteNode) -> tuple[Array, ...]:
    x, own = node.inputs[0], _read(node)
    _check(own)
    assert x is not None
    return _first(own, rows_of(x.shape))


def _options(own: SignalFramer) -> dict[str, int]:
    return {**vars(own), "prefill": bool(own.prefill)}


def _sample(rng: np.random.Generator) -> Graph:
    step = some(rng, 1, 8)
    own = SignalFramer(some(rng, step, 25), step, some(rng, 0, 1))
    shape = (some(rng, 1, 3),) if rng.random() < 0.4 else ()
    frames = some(rng, 1, 5)
    first = _first(own, rows_of((*shape, 1)))
    tensors = [
        Tensor("x", (*shape, frames * step), DType.INT16),
        Tensor("y", (*shape, frames, own.frame_size), DType.INT16),
        Tensor("valid", (), DType.BOOL),
        *(Tensor(name, first[0].shape, DType.INT16) for name in MEMORIES[0]),
        *(Tensor(name, (1,), DType.INT32) for name in MEMORIES[1]),
    ]
    (before, after), (held, held_after) = MEMORIES
    outputs = ("y", "valid", after, held_after)
    op = Op("signal_framer", "framer", ("x", before, held), outputs, own)
    states = [State(before, after, first[0]), State(held, held_after, first[1])]
    return Graph.build("sample", tensors, [op], ["x"], ["y", "valid"], states)


SPEC = OldForm(
    kind="signal_framer",
    attributes=SignalFramer,
    infer=_infer,
    reference=_reference,
    select=_select,
    aliases=_aliases,
    sample=_sample,
    tflite=binding(CUSTOM, 1, _read, _options, _memories),
    types=FRAMED,
    quantised=QUANTISED,
    limits="int16; a frame has at least a step's samples, which are kept from run to run; its "
    "frames are 0 where they are not valid",
)
