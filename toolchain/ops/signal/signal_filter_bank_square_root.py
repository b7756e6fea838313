"""Square roots, shifted right by an input. TFLM's SignalFilterBankSquareRoot, uint64 to uint32."""

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
from toolchain.ops.signal.spectrum import square_root
from toolchain.ops.spec import Array, TensorType

_MOST_SHIFT = 31
"""tflite-micro leaves others undefined; one that is computed is taken modulo 32."""


@dataclass(frozen=True)
class SignalFilterBankSquareRoot(Attributes):
    """No attributes."""


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    count = vector(graph.input(op, 0), DType.UINT64, "sums")
    shift = graph.input(op, 1)
    if shift.elements != 1 or shift.dtype is not DType.INT32:
        raise ValueError(f"the shift {shift} is no int32 scalar")
    if shift.constant is not None and not 0 <= int(shift.constant.reshape(-1)[0]) <= _MOST_SHIFT:
        raise ValueError(f"a shift of {shift.constant.reshape(-1)[0]}, beyond 0 to {_MOST_SHIFT}")
    return (TensorType((count,), DType.UINT32),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    shift = int(inputs[1].reshape(-1)[0]) & _MOST_SHIFT
    roots = [square_root(int(value)) >> shift for value in inputs[0]]
    return (np.array(roots, dtype=np.uint32),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    arguments: dict[str, Argument] = {
        "sums": Input(0),
        "count": graph.input(op, 0).elements,
        "shift": Input(1),
        "roots": Output(0),
    }
    return Kernel((Call("thimble_scaled_roots_u64", arguments),), _extents)


def _extents(touched: Touched) -> Extents:
    count = touched.call["count"]
    return Extents({0: whole(count, 8), 1: whole(1, 4)}, {0: whole(count, 4)})


def _sample(rng: np.random.Generator) -> Graph:
    count = some(rng, 1, 20)
    shift = np.array(some(rng, 0, _MOST_SHIFT), dtype=np.int32)
    tensors = [
        Tensor("x", (count,), DType.UINT64),
        Tensor("shift", (), DType.INT32, constant=shift),
        Tensor("y", (count,), DType.UINT32),
    ]
    attributes = SignalFilterBankSquareRoot()
    op = Op("signal_filter_bank_square_root", "root", ("x", "shift"), ("y",), attributes)
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = OldForm(
    kind="signal_filter_bank_square_root",
    attributes=SignalFilterBankSquareRoot,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=binding("SignalFilterBankSquareRoot", 2, lambda node: SignalFilterBankSquareRoot()),
    types=TYPES,
    quantised=QUANTISED,
    limits="uint64",
)
