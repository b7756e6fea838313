"""Squared magnitudes of a part of a spectrum. TFLM's SignalEnergy, int16.

TFLM leaves what lies outside the part as it was; here that is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Argument, Call, Input, Kernel, Output, Touched
from toolchain.ops.signal.common import QUANTISED, TYPES, binding, option, some, vector
from toolchain.ops.spec import Array, TensorType

CUSTOM = "SignalEnergy"


@dataclass(frozen=True)
class SignalEnergy(Attributes):
    """From `start_index` to before `end_index`."""

    end_index: int = 0
    start_index: int = 0


def _attributes(op: Op) -> SignalEnergy:
    assert isinstance(op.attributes, SignalEnergy)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    count, rest = divmod(vector(graph.input(op, 0), DType.INT16, "spectrum"), 2)
    own = _attributes(op)
    if rest or not 0 <= own.start_index <= own.end_index <= count:
        raise ValueError(f"numbers {own.start_index} to {own.end_index} of a spectrum of {count}")
    return (TensorType((count,), DType.UINT32),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    own = _attributes(op)
    squares = (inputs[0].astype(np.int64).reshape(-1, 2) ** 2).sum(axis=1)
    energy = np.zeros_like(squares)
    part = slice(own.start_index, own.end_index)
    energy[part] = squares[part]
    return (energy.astype(np.uint32),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    own = _attributes(op)
    arguments: dict[str, Argument] = {
        "spectrum": Input(0),
        "first": own.start_index,
        "end": own.end_index,
        "count": graph.output(op).elements,
        "energy": Output(0),
    }
    return Kernel((Call("thimble_energies_s16", arguments),), _extents)


def _extents(touched: Touched) -> Extents:
    count = touched.call["count"]
    return Extents({0: whole(count, 4)}, {0: whole(count, 4)})


def _sample(rng: np.random.Generator) -> Graph:
    count = some(rng, 1, 30)
    start = some(rng, 0, count)
    tensors = [Tensor("x", (2 * count,), DType.INT16), Tensor("y", (count,), DType.UINT32)]
    attributes = SignalEnergy(some(rng, start, count), start)
    op = Op("signal_energy", "energy", ("x",), ("y",), attributes)
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = OldForm(
    kind="signal_energy",
    attributes=SignalEnergy,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=binding(
        CUSTOM,
        1,
        lambda node: SignalEnergy(option(node, "end_index"), option(node, "start_index")),
    ),
    types=TYPES,
    quantised=QUANTISED,
    limits="int16",
)
