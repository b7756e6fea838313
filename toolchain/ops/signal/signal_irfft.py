"""Real samples from their Fourier transform. TFLM's SignalIrfft, int16 and float32 as KissFFT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm, OpSpec
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Output,
    Struct,
    Touched,
)
from toolchain.ops.signal.common import (
    FLOAT32,
    INT16,
    LENGTHS,
    QUANTISED,
    TYPES,
    binding,
    check_length,
    length_of,
    rows_of,
    some,
    transform_options,
)
from toolchain.ops.signal.fourier import fourier_tables, irfft
from toolchain.ops.signal.fourier_f32 import plan_bytes, real_inverse, real_plan
from toolchain.ops.signal.signal_rfft_s16 import rfft_plan, rfft_plan_bytes
from toolchain.ops.spec import Array, TensorType


@dataclass(frozen=True)
class SignalIrfft(Attributes):
    """`length`: samples of the transform."""

    length: int = 4


def _length(op: Op) -> int:
    assert isinstance(op.attributes, SignalIrfft)
    return op.attributes.length


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, length = graph.input(op, 0), _length(op)
    check_length(length, 0)
    if not x.shape or x.shape[-1] != length + 2:
        raise ValueError(f"{x} holds no transform of {length} samples")
    return (TensorType((*x.shape[:-1], length), x.dtype),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    y, length = graph.output(op), _length(op)
    numbers = inputs[0].reshape(-1, length // 2 + 1, 2)
    if y.dtype is DType.FLOAT32:
        with np.errstate(all="ignore"):
            return (real_inverse(numbers.astype(np.float32)).reshape(y.shape),)
    tables = fourier_tables(length)
    rows = [irfft(row.astype(np.int16), tables) for row in numbers]
    return (np.stack(rows).astype(np.int16).reshape(y.shape),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x = graph.input(op, 0)
    real = x.dtype is DType.FLOAT32
    plan: tuple[Struct, tuple[Constant, ...]]
    plan = real_plan(_length(op)) if real else rfft_plan(_length(op))
    arguments: dict[str, Argument] = {
        "rfft": plan[0],
        "input": Input(0),
        "rows": rows_of(x.shape),
        "output": Output(0),
    }
    call = Call(f"thimble_irfft_{'f32' if real else 's16'}", arguments)
    return Kernel((call,), _extents, constants=plan[1])


def _extents(touched: Touched) -> Extents:
    call = touched.call
    real = call.function.endswith("f32")
    length = 2 * call["rfft.pairs.length"] if real else call["rfft.length"]
    width = 4 if real else 2
    return Extents(
        {0: whole(call["rows"] * (length + 2), width)},
        {0: whole(call["rows"] * length, width)},
        plan_bytes(length) if real else rfft_plan_bytes(length),
    )


def _sample(dtype: DType) -> Callable[[np.random.Generator], Graph]:
    def made(rng: np.random.Generator) -> Graph:
        length = LENGTHS[some(rng, 0, 7)]
        shape = (some(rng, 1, 3),) if rng.random() < 0.4 else ()
        ends = [Tensor("x", (*shape, length + 2), dtype), Tensor("y", (*shape, length), dtype)]
        op = Op("signal_irfft", "irfft", ("x",), ("y",), SignalIrfft(length))
        return Graph.build("sample", ends, [op], ["x"], ["y"])

    return made


def _spec(dtype: DType, code: int, dtypes: frozenset[DType]) -> OldForm:
    return OldForm(
        kind="signal_irfft",
        attributes=SignalIrfft,
        infer=_infer,
        reference=_reference,
        select=_select,
        sample=_sample(dtype),
        tflite=binding(
            "SignalIrfft",
            1,
            lambda node: SignalIrfft(length_of(node)),
            lambda own: transform_options(code, own.length),
        ),
        types=dtypes,
        quantised=QUANTISED,
        dtype=dtype,
        limits=f"{dtype.value}; a power of 2 of samples, from 4 to 16384",
    )


SPEC = OpSpec((_spec(DType.INT16, INT16, TYPES), _spec(DType.FLOAT32, FLOAT32, frozenset())))
