"""The Fourier transform of real samples, as KissFFT rounds it. TFLM's SignalRfft, int16."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    Packed,
    Struct,
    Touched,
    constant,
)
from toolchain.ops.signal.common import QUANTISED, TYPES, binding, option, some, vector
from toolchain.ops.signal.fourier import fourier_tables, rfft
from toolchain.ops.spec import Array, OpSpec, TensorType, TfliteNode

_LENGTHS = tuple(4 << n for n in range(13))
_INT16 = 7
"""int16 in the schema's TensorType."""


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
    if length not in _LENGTHS or count > length:
        raise ValueError(f"a transform of {length} for {count} samples: it is a power of 2 from 4")
    return (TensorType((length + 2,), DType.INT16),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    padded = np.zeros(_attributes(op).length, dtype=np.int16)
    padded[: len(inputs[0])] = inputs[0]
    return (rfft(padded, fourier_tables(len(padded))).astype(np.int16).reshape(-1),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    tables = fourier_tables(_attributes(op).length)
    arrays = {"order": tables.order, "twiddles": tables.twiddles, "halves": tables.halves}
    plan = Struct(
        "thimble_rfft", {"length": tables.length, **{name: Packed(name) for name in arrays}}
    )
    count = graph.input(op, 0).elements
    arguments: dict[str, Argument] = {
        "rfft": plan,
        "input": Input(0),
        "count": count,
        "output": Output(0),
    }
    return Kernel(
        (Call("thimble_rfft_s16", arguments),),
        _extents,
        constants=tuple(constant(name, data) for name, data in arrays.items()),
    )


def _extents(touched: Touched) -> Extents:
    length = touched.call["rfft.length"]
    tables = fourier_tables(length)
    return Extents(
        {0: whole(touched.call["count"], 2)},
        {0: whole(length + 2, 2)},
        {
            "order": tables.order.nbytes,
            "twiddles": tables.twiddles.nbytes,
            "halves": tables.halves.nbytes,
        },
    )


def _read(node: TfliteNode) -> SignalRfft:
    if option(node, "T") != _INT16:
        raise node.unsupported("it transforms no int16", "use fft_ops.rfft of int16 samples")
    return SignalRfft(option(node, "fft_length"))


def _sample(rng: np.random.Generator) -> Graph:
    length = _LENGTHS[some(rng, 0, 7)]
    count = some(rng, 1, length)
    tensors = [Tensor("x", (count,), DType.INT16), Tensor("y", (length + 2,), DType.INT16)]
    op = Op("signal_rfft", "rfft", ("x",), ("y",), SignalRfft(length))
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = OpSpec(
    kind="signal_rfft",
    attributes=SignalRfft,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=binding("SignalRfft", 1, _read, lambda own: {"T": _INT16, "fft_length": own.length}),
    dtypes=TYPES,
    quantised=QUANTISED,
    limits="int16; a power of 2 of samples, from 4 to 16384",
)
