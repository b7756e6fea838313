"""A window: samples times weights, shifted right and clamped. TFLM's SignalWindow, int16."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Call, Input, Kernel, Output, SafeOverlap, Touched
from toolchain.ops.signal.common import QUANTISED, TYPES, binding, option, some, vector, within
from toolchain.ops.spec import Array, TensorType


@dataclass(frozen=True)
class SignalWindow(Attributes):
    """`shift`: fractional bits of the weights."""

    shift: int = 0


def _attributes(op: Op) -> SignalWindow:
    assert isinstance(op.attributes, SignalWindow)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x = graph.input(op, 0)
    size = vector(graph.input(op, 1), DType.INT16, "weights")
    if x.dtype is not DType.INT16 or not x.shape or x.shape[-1] != size:
        raise ValueError(f"{x} is no int16 with {size} samples, as its weights have")
    within("shift", _attributes(op).shift, 0, 31)
    return (TensorType(x.shape, DType.INT16),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    product = inputs[0].astype(np.int64) * inputs[1].astype(np.int64) >> _attributes(op).shift
    limits = np.iinfo(np.int16)
    return (np.clip(product, limits.min, limits.max).astype(np.int16),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x = graph.input(op, 0)
    call = Call(
        "thimble_window_s16",
        {
            "input": Input(0),
            "weights": Input(1),
            "size": x.shape[-1],
            "count": x.elements // x.shape[-1],
            "shift": _attributes(op).shift,
            "output": Output(0),
        },
    )
    return Kernel((call,), _extents, find_overlaps=lambda: (SafeOverlap(0),))


def _extents(touched: Touched) -> Extents:
    call = touched.call
    elements = call["size"] * call["count"]
    return Extents({0: whole(elements, 2), 1: whole(call["size"], 2)}, {0: whole(elements, 2)})


def _sample(rng: np.random.Generator) -> Graph:
    size, count = some(rng, 1, 40), some(rng, 1, 3)
    weights = rng.integers(-32768, 32768, size).astype(np.int16)
    tensors = [Tensor(name, (count, size), DType.INT16) for name in "xy"]
    tensors.append(Tensor("w", (size,), DType.INT16, constant=weights))
    attributes = SignalWindow(some(rng, 0, 16))
    op = Op("signal_window", "window", ("x", "w"), ("y",), attributes)
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = OldForm(
    kind="signal_window",
    attributes=SignalWindow,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=binding("SignalWindow", 2, lambda node: SignalWindow(option(node, "shift"))),
    types=TYPES,
    quantised=QUANTISED,
    limits="int16",
)
