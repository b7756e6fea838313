"""Frames joined to a stream of samples, added where they overlap. TFLM's SignalOverlapAdd.

int16 sums are clamped; float32 ones are not. The ends of frames that later ones overlap are kept
from run to run, zeros before the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, State, Tensor
from toolchain.ops.extents import Extents, whole, widths
from toolchain.ops.forms import OldForm, OpSpec
from toolchain.ops.kernel import Call, Input, Kernel, Output, Struct, Touched
from toolchain.ops.signal.common import (
    FLOAT32,
    INT16,
    QUANTISED,
    TYPES,
    binding,
    check_type,
    option,
    rows_of,
    some,
)
from toolchain.ops.spec import Alias, Array, TensorType, TfliteNode


@dataclass(frozen=True)
class SignalOverlapAdd(Attributes):
    """`frame_step`: samples from one frame to the next."""

    frame_step: int = 1


def _step(op: Op) -> int:
    assert isinstance(op.attributes, SignalOverlapAdd)
    return op.attributes.frame_step


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, state = graph.input(op, 0), graph.input(op, 1)
    if len(x.shape) < 2 or not 1 <= _step(op) <= x.shape[-1]:
        raise ValueError(f"frames {x}, {_step(op)} apart")
    kept = (rows_of(x.shape, 2), x.shape[-1])
    if (state.shape, state.dtype) != (kept, x.dtype):
        raise ValueError(f"{state} has no room for {kept[1]} samples of {kept[0]} rows")
    stream = (*x.shape[:-2], x.shape[-2] * _step(op))
    return TensorType(stream, x.dtype), TensorType(kept, x.dtype)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, state = inputs
    rows, size = state.shape
    step, frames = _step(op), x.reshape(rows, -1, size)
    whole_range = np.iinfo(np.int16)
    kept, made = state.copy(), []
    for i in range(frames.shape[1]):
        if x.dtype == np.float32:
            sums = (kept.astype(np.float32) + frames[:, i].astype(np.float32)).astype(x.dtype)
        else:
            wide = kept.astype(np.int64) + frames[:, i].astype(np.int64)
            sums = np.clip(wide, whole_range.min, whole_range.max).astype(x.dtype)
        made.append(sums[:, :step])
        kept = np.concatenate([sums[:, step:], np.zeros_like(sums[:, :step])], axis=1)
    return np.concatenate(made, axis=1).reshape(graph.output(op).shape), kept


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x = graph.input(op, 0)
    params = Struct(
        "thimble_overlap_params",
        {
            "rows": rows_of(x.shape, 2),
            "frames": x.shape[-2],
            "size": x.shape[-1],
            "step": _step(op),
        },
    )
    suffix = "f32" if x.dtype is DType.FLOAT32 else "s16"
    call = Call(
        f"thimble_overlap_add_{suffix}",
        {"params": params, "input": Input(0), "state": Output(1), "output": Output(0)},
    )
    return Kernel((call,), _extents)


def _extents(touched: Touched) -> Extents:
    rows, frames, size, step = (
        touched.call[f"params.{name}"] for name in ("rows", "frames", "size", "step")
    )
    width, _ = widths(touched.call.function)
    return Extents(
        {0: whole(rows * frames * size, width)},
        {0: whole(rows * frames * step, width), 1: whole(rows * size, width)},
    )


def _aliases(op: Op, graph: Graph) -> tuple[Alias, ...]:
    return (Alias(op.outputs[1], op.inputs[1]),)


def _read(node: TfliteNode) -> SignalOverlapAdd:
    check_type(node)
    return SignalOverlapAdd(option(node, "frame_step"))


def _memories(node: TfliteNode) -> tuple[Array, ...]:
    x = node.inputs[0]
    if x is None or len(x.shape) < 2:
        raise ValueError(f"its input {x} has no frames")
    return (np.zeros((rows_of(x.shape, 2), x.shape[-1]), x.dtype.numpy),)


def _sample(dtype: DType) -> Callable[[np.random.Generator], Graph]:
    def made(rng: np.random.Generator) -> Graph:
        size, frames = some(rng, 1, 20), some(rng, 1, 5)
        step = some(rng, 1, size)
        shape = (some(rng, 1, 3),) if rng.random() < 0.4 else ()
        kept = (rows_of((*shape, 1)), size)
        tensors = [
            Tensor("x", (*shape, frames, size), dtype),
            Tensor("y", (*shape, frames * step), dtype),
            *(Tensor(name, kept, dtype) for name in ("y_memory", "y_memory_next")),
        ]
        outputs, own = ("y", "y_memory_next"), SignalOverlapAdd(step)
        op = Op("signal_overlap_add", "overlap", ("x", "y_memory"), outputs, own)
        state = State("y_memory", "y_memory_next", np.zeros(kept, dtype.numpy))
        return Graph.build("sample", tensors, [op], ["x"], ["y"], [state])

    return made


def _spec(dtype: DType, code: int, dtypes: frozenset[DType], limits: str) -> OldForm:
    return OldForm(
        kind="signal_overlap_add",
        attributes=SignalOverlapAdd,
        infer=_infer,
        reference=_reference,
        select=_select,
        aliases=_aliases,
        sample=_sample(dtype),
        tflite=binding(
            "SignalOverlapAdd",
            1,
            _read,
            lambda own: {"T": code, "frame_step": own.frame_step},
            _memories,
        ),
        types=dtypes,
        quantised=QUANTISED,
        dtype=dtype,
        limits=limits,
    )


SPEC = OpSpec(
    (
        _spec(DType.INT16, INT16, TYPES, "int16; the ends of frames are kept from run to run"),
        _spec(DType.FLOAT32, FLOAT32, frozenset(), "float32, likewise"),
    )
)
