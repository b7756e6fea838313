"""The Fourier transform of real samples, as KissFFT rounds it. TFLM's SignalRfft, int16."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Output,
    Packed,
    Struct,
    Touched,
    constant,
)
from toolchain.ops.signal.common import (
    INT16,
    LENGTHS,
    QUANTISED,
    TYPES,
    binding,
    check_length,
    length_of,
    some,
    transform_options,
    vector,
)
from toolchain.ops.signal.fourier import fourier_tables, rfft
from toolchain.ops.spec import Array, TensorType


@dataclass(frozen=True)
class SignalRfft(Attributes):
    """`length`: samples of the transform; the input may have fewer, and zeros follow."""

    length: int = 4


def _attributes(op: Op) -> SignalRfft:
    assert isinstance(op.attributes, SignalRfft)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    length = _attributes(op).length
    count = vector(graph.input(op, 0), DType.INT16, "input")
    check_length(length, count)
    return (TensorType((length + 2,), DType.INT16),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    padded = np.zeros(_attributes(op).length, dtype=np.int16)
    padded[: len(inputs[0])] = inputs[0]
    return (rfft(padded, fourier_tables(len(padded))).astype(np.int16).reshape(-1),)


def rfft_plan(length: int) -> tuple[Struct, tuple[Constant, ...]]:
    """The argument for transforms of `length` samples, and the constants that it names."""
    tables = fourier_tables(length)
    arrays = {"order": tables.order, "twiddles": tables.twiddles, "halves": tables.halves}
    plan = Struct(
        "thimble_rfft", {"length": tables.length, **{name: Packed(name) for name in arrays}}
    )
    return plan, tuple(constant(name, data) for name, data in arrays.items())


def rfft_plan_bytes(length: int) -> dict[str, int]:
    """The bytes of these constants that a transform reads."""
    tables = fourier_tables(length)
    return {
        "order": tables.order.nbytes,
        "twiddles": tables.twiddles.nbytes,
        "halves": tables.halves.nbytes,
    }


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    plan, constants = rfft_plan(_attributes(op).length)
    arguments: dict[str, Argument] = {
        "rfft": plan,
        "input": Input(0),
        "count": graph.input(op, 0).elements,
        "output": Output(0),
    }
    return Kernel((Call("thimble_rfft_s16", arguments),), _extents, constants=constants)


def _extents(touched: Touched) -> Extents:
    length = touched.call["rfft.length"]
    return Extents(
        {0: whole(touched.call["count"], 2)}, {0: whole(length + 2, 2)}, rfft_plan_bytes(length)
    )


def _sample(rng: np.random.Generator) -> Graph:
    length = LENGTHS[some(rng, 0, 7)]
    count = some(rng, 1, length)
    tensors = [Tensor("x", (count,), DType.INT16), Tensor("y", (length + 2,), DType.INT16)]
    op = Op("signal_rfft", "rfft", ("x",), ("y",), SignalRfft(length))
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


S16 = OldForm(
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
        lambda own: transform_options(INT16, own.length),
    ),
    types=TYPES,
    quantised=QUANTISED,
    dtype=DType.INT16,
    limits="int16; a power of 2 of samples, from 4 to 16384",
)
