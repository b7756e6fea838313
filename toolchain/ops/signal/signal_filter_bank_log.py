"""Scaled natural logarithms. TFLM's SignalFilterBankLog, uint32 to int16."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Argument, Call, Input, Kernel, Output
from toolchain.ops.signal.common import (
    QUANTISED,
    TYPES,
    binding,
    option,
    same_length,
    some,
    vector,
    within,
)
from toolchain.ops.signal.spectrum import logarithm
from toolchain.ops.spec import Array, TensorType

_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class SignalFilterBankLog(Attributes):
    """`output_scale` times ln(input * 2^`input_correction_bits`)."""

    input_correction_bits: int = 0
    output_scale: int = 1


def _attributes(op: Op) -> SignalFilterBankLog:
    assert isinstance(op.attributes, SignalFilterBankLog)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    count = vector(graph.input(op, 0), DType.UINT32, "signal")
    own = _attributes(op)
    within("input_correction_bits", own.input_correction_bits, 0, 31)
    within("output_scale", own.output_scale, 0, (1 << 31) - 1)
    return (TensorType((count,), DType.INT16),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    own = _attributes(op)
    values = [int(value) << own.input_correction_bits & _WORD for value in inputs[0]]
    return (np.array([logarithm(v, own.output_scale) for v in values], dtype=np.int16),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    own = _attributes(op)
    arguments: dict[str, Argument] = {
        "signal": Input(0),
        "count": graph.input(op, 0).elements,
        "scale": own.output_scale,
        "correction_bits": own.input_correction_bits,
        "logs": Output(0),
    }
    return Kernel(
        (Call("thimble_logs_u32", arguments),),
        lambda touched: same_length(touched, "count", (4, 2)),
    )


def _sample(rng: np.random.Generator) -> Graph:
    count = some(rng, 1, 20)
    tensors = [Tensor("x", (count,), DType.UINT32), Tensor("y", (count,), DType.INT16)]
    attributes = SignalFilterBankLog(some(rng, 0, 12), some(rng, 1, 3000))
    op = Op("signal_filter_bank_log", "log", ("x",), ("y",), attributes)
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = OldForm(
    kind="signal_filter_bank_log",
    attributes=SignalFilterBankLog,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=binding(
        "SignalFilterBankLog",
        1,
        lambda node: SignalFilterBankLog(
            option(node, "input_correction_bits"), option(node, "output_scale")
        ),
    ),
    types=TYPES,
    quantised=QUANTISED,
    limits="uint32",
)
