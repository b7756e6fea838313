"""Frames joined to a stream of samples, added where they overlap. TFLM's SignalOverlapAdd.

int16 sums are clamped; float32 ones are not. The ends of frames that later ones overlap are kept
from run to run, zeros before the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common

_FUNCTIONS = {
    kit.DType.INT16: ("thimble_overlap_add_s16", 2),
    kit.DType.FLOAT32: ("thimble_overlap_add_f32", 4),
}
"""The C function by element type, and the bytes of an element."""


@dataclass(frozen=True)
class SignalOverlapAdd(kit.Attributes):
    """`frame_step`: samples from one frame to the next."""

    frame_step: int = 1


def _step(op: kit.Operator[SignalOverlapAdd]) -> int:
    return op.attributes.frame_step


def _infer(op: kit.Operator[SignalOverlapAdd]) -> kit.TensorTypes:
    x, state = op.x, op.input(1)
    if len(x.shape) < 2 or not 1 <= _step(op) <= x.shape[-1]:
        raise ValueError(f"frames {x}, {_step(op)} apart")
    kept = (common.rows_of(x.shape, 2), x.shape[-1])
    if (state.shape, state.dtype) != (kept, x.dtype):
        raise ValueError(f"{state} has no room for {kept[1]} samples of {kept[0]} rows")
    stream = (*x.shape[:-2], x.shape[-2] * _step(op))
    return kit.TensorType(stream, x.dtype), kit.TensorType(kept, x.dtype)


def _reference(op: kit.Operator[SignalOverlapAdd], inputs: kit.Inputs) -> kit.Arrays:
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
    return np.concatenate(made, axis=1).reshape(op.y.shape), kept


def _select(op: kit.Operator[SignalOverlapAdd], core: kit.Core) -> kit.Kernel:
    x = op.x
    params = kit.Struct(
        "thimble_overlap_params",
        {
            "rows": common.rows_of(x.shape, 2),
            "frames": x.shape[-2],
            "size": x.shape[-1],
            "step": _step(op),
        },
    )
    function, element_bytes = _FUNCTIONS[x.dtype]
    call = kit.Call(
        function,
        {"params": params, "input": kit.Input(0), "state": kit.Output(1), "output": kit.Output(0)},
    )
    return kit.Kernel((call,), lambda touched: _extents(touched, element_bytes))


def _extents(touched: kit.Touched, element_bytes: int) -> kit.Extents:
    rows, frames, size, step = touched.call.params("rows", "frames", "size", "step")
    return kit.Extents(
        {0: kit.whole(rows * frames * size, element_bytes)},
        {
            0: kit.whole(rows * frames * step, element_bytes),
            1: kit.whole(rows * size, element_bytes),
        },
    )


def _read(node: kit.TfliteNode) -> SignalOverlapAdd:
    common.check_type(node)
    return SignalOverlapAdd(common.option(node, "frame_step"))


def _memories(node: kit.TfliteNode) -> kit.Arrays:
    x = node.inputs[0]
    if x is None or len(x.shape) < 2:
        raise ValueError(f"its input {x} has no frames")
    return (np.zeros((common.rows_of(x.shape, 2), x.shape[-1]), x.dtype.numpy),)


def _sample(dtype: kit.DType) -> Callable[[np.random.Generator], kit.Graph]:
    def made(rng: np.random.Generator) -> kit.Graph:
        size, frames = common.some(rng, 1, 20), common.some(rng, 1, 5)
        step = common.some(rng, 1, size)
        shape = (common.some(rng, 1, 3),) if rng.random() < 0.4 else ()
        x = kit.Tensor("x", (*shape, frames, size), dtype)
        first = np.zeros((common.rows_of((*shape, 1)), size), dtype.numpy)
        attributes = SignalOverlapAdd(step)
        return common.sample_kept(
            "signal_overlap_add", attributes, x, firsts=[first], name="overlap"
        )

    return made


def _spec(
    dtype: kit.DType, code: int, dtypes: frozenset[kit.DType], limits: str
) -> kit.Form[SignalOverlapAdd]:
    return kit.Form(
        kind="signal_overlap_add",
        attributes=SignalOverlapAdd,
        infer=_infer,
        reference=_reference,
        select=_select,
        aliases=kit.kept((1, 1)),
        sample=_sample(dtype),
        tflite=common.binding(
            "SignalOverlapAdd",
            1,
            SignalOverlapAdd,
            _read,
            lambda attributes: {"T": code, "frame_step": attributes.frame_step},
            _memories,
        ),
        types=dtypes,
        quantised=common.QUANTISED,
        dtype=dtype,
        limits=limits,
    )


SPEC = kit.OpSpec(
    (
        _spec(
            kit.DType.INT16,
            common.INT16,
            common.TYPES,
            "int16; the ends of frames are kept from run to run",
        ),
        _spec(kit.DType.FLOAT32, common.FLOAT32, frozenset(), "float32, likewise"),
    )
)
