"""The Fourier transform of real float32 samples. TFLM's SignalRfft, KissFFT's operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Call, Input, Kernel, Output, Touched
from toolchain.ops.signal.common import (
    FLOAT32,
    LENGTHS,
    QUANTISED,
    binding,
    check_length,
    length_of,
    some,
    transform_options,
    vector,
)
from toolchain.ops.signal.fourier_f32 import plan_bytes, real_plan, real_transform
from toolchain.ops.signal.signal_rfft_s16 import SignalRfft
from toolchain.ops.spec import Array, TensorType


def _length(op: Op) -> int:
    assert isinstance(op.attributes, SignalRfft)
    return op.attributes.length


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    check_length(_length(op), vector(graph.input(op, 0), DType.FLOAT32, "input"))
    return (TensorType((_length(op) + 2,), DType.FLOAT32),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    padded = np.zeros(_length(op), dtype=np.float32)
    padded[: len(inputs[0])] = inputs[0]
    with np.errstate(all="ignore"):
        return (real_transform(padded).reshape(-1),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    plan, constants = real_plan(_length(op))
    count = graph.input(op, 0).elements
    call = Call(
        "thimble_rfft_f32",
        {"rfft": plan, "input": Input(0), "count": count, "output": Output(0)},
    )
    return Kernel((call,), _extents, constants=constants)


def _extents(touched: Touched) -> Extents:
    length = 2 * touched.call["rfft.pairs.length"]
    return Extents(
        {0: whole(touched.call["count"], 4)}, {0: whole(length + 2, 4)}, plan_bytes(length)
    )


def _sample(rng: np.random.Generator) -> Graph:
    length = LENGTHS[some(rng, 0, 7)]
    count = some(rng, 1, length)
    tensors = [Tensor("x", (count,), DType.FLOAT32), Tensor("y", (length + 2,), DType.FLOAT32)]
    op = Op("signal_rfft", "rfft", ("x",), ("y",), SignalRfft(length))
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


F32 = OldForm(
    kind="signal_rfft",
    attributes=SignalRfft,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=binding(
        "SignalRfft",
        1,
        lambda node: SignalRfft(length_of(node)),
        lambda own: transform_options(FLOAT32, own.length),
    ),
    dtype=DType.FLOAT32,
    quantised=QUANTISED,
    limits="float32; a power of 2 of samples, from 4 to 16384",
)
