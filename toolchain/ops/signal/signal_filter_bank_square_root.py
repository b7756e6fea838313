"""Square roots, shifted right by an input. TFLM's SignalFilterBankSquareRoot, uint64 to uint32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common
from toolchain.ops.signal.spectrum import square_root

_MOST_SHIFT = 31
"""tflite-micro leaves others undefined; one that is computed is taken modulo 32."""


@dataclass(frozen=True)
class SignalFilterBankSquareRoot(kit.Attributes):
    """No attributes."""


def _infer(op: kit.AnyOperator) -> kit.TensorTypes:
    count = common.vector(op.x, kit.DType.UINT64, "sums")
    shift = op.input(1)
    if shift.elements != 1 or shift.dtype is not kit.DType.INT32:
        raise ValueError(f"the shift {shift} is no int32 scalar")
    if shift.constant is not None and not 0 <= int(shift.constant.reshape(-1)[0]) <= _MOST_SHIFT:
        raise ValueError(f"a shift of {shift.constant.reshape(-1)[0]}, beyond 0 to {_MOST_SHIFT}")
    return (kit.TensorType((count,), kit.DType.UINT32),)


def _reference(op: kit.AnyOperator, inputs: kit.Inputs) -> kit.Arrays:
    shift = int(inputs[1].reshape(-1)[0]) & _MOST_SHIFT
    roots = [square_root(int(value)) >> shift for value in inputs[0]]
    return (np.array(roots, dtype=np.uint32),)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    arguments: dict[str, kit.Argument] = {
        "sums": kit.Input(0),
        "count": op.x.elements,
        "shift": kit.Input(1),
        "roots": kit.Output(0),
    }
    return kit.Kernel((kit.Call("thimble_scaled_roots_u64", arguments),), _extents)


def _extents(touched: kit.Touched) -> kit.Extents:
    count = touched.call["count"]
    return kit.Extents({0: kit.whole(count, 8), 1: kit.whole(1, 4)}, {0: kit.whole(count, 4)})


def _sample(rng: np.random.Generator) -> kit.Graph:
    x = kit.Tensor("x", (common.some(rng, 1, 20),), kit.DType.UINT64)
    shift = kit.constant_sample("shift", np.array(common.some(rng, 0, _MOST_SHIFT), np.int32))
    kind, attributes = "signal_filter_bank_square_root", SignalFilterBankSquareRoot()
    return kit.sample(kind, attributes, x, shift, name="root")


SPEC = kit.Form(
    kind="signal_filter_bank_square_root",
    attributes=SignalFilterBankSquareRoot,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=common.binding("SignalFilterBankSquareRoot", 2, SignalFilterBankSquareRoot),
    types=common.TYPES,
    quantised=common.QUANTISED,
    limits="uint64",
)
