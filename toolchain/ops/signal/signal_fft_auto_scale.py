"""Samples shifted left as far as the largest allows. TFLM's SignalFftAutoScale, int16."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Argument, Call, Input, Kernel, Output, Touched
from toolchain.ops.signal.common import QUANTISED, TYPES, binding, some, vector
from toolchain.ops.spec import Array, TensorType


@dataclass(frozen=True)
class SignalFftAutoScale(Attributes):
    """No attributes."""


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    size = vector(graph.input(op, 0), DType.INT16, "input")
    return TensorType((size,), DType.INT16), TensorType((), DType.INT32)


def scale_bits(samples: Array) -> int:
    """By how many bits; 0 for silence, and where -32768 is the last largest: int16 wraps."""
    largest = 0
    for sample in samples.tolist():
        if sample > largest:
            largest = sample
        elif -sample > largest:
            largest = -32768 if sample == -32768 else -sample
    return 15 - largest.bit_length() if largest > 0 else 0


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    bits = scale_bits(inputs[0])
    scaled = (inputs[0].astype(np.int64) << bits).astype(np.int16)
    return scaled, np.array(bits, dtype=np.int32)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    arguments: dict[str, Argument] = {
        "input": Input(0),
        "size": graph.input(op, 0).elements,
        "output": Output(0),
        "bits": Output(1),
    }
    return Kernel((Call("thimble_auto_scale_s16", arguments),), _extents)


def _extents(touched: Touched) -> Extents:
    size = touched.call["size"]
    return Extents({0: whole(size, 2)}, {0: whole(size, 2), 1: whole(1, 4)})


def _sample(rng: np.random.Generator) -> Graph:
    size = some(rng, 1, 40)
    tensors = [Tensor(name, (size,), DType.INT16) for name in "xy"]
    tensors.append(Tensor("bits", (), DType.INT32))
    op = Op("signal_fft_auto_scale", "scale", ("x",), ("y", "bits"), SignalFftAutoScale())
    return Graph.build("sample", tensors, [op], ["x"], ["y", "bits"])


SPEC = OldForm(
    kind="signal_fft_auto_scale",
    attributes=SignalFftAutoScale,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=binding("SignalFftAutoScale", 1, lambda node: SignalFftAutoScale()),
    types=TYPES,
    quantised=QUANTISED,
    limits="int16",
)
