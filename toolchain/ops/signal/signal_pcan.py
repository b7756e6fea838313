"""Gain control of each channel by its noise. TFLM's SignalPCAN, uint32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Argument, Call, Input, Kernel, Output, Touched
from toolchain.ops.signal.common import QUANTISED, TYPES, binding, option, some, vector, within
from toolchain.ops.signal.spectrum import gain_at, shrunk
from toolchain.ops.spec import Array, TensorType

GAINS = 125
_GAIN = 2
_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class SignalPcan(Attributes):
    """`snr_shift`: fractional bits of signal times gain, above 12."""

    snr_shift: int = 0


def _attributes(op: Op) -> SignalPcan:
    assert isinstance(op.attributes, SignalPcan)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    count = vector(graph.input(op, 0), DType.UINT32, "signal")
    if vector(graph.input(op, 1), DType.UINT32, "noise") != count:
        raise ValueError(f"{graph.input(op, 1)} has not the {count} channels of the signal")
    if vector(graph.input(op, _GAIN), DType.INT16, "gains") < GAINS:
        raise ValueError(f"{graph.input(op, _GAIN)} has not {GAINS} gains")
    within("snr_shift", _attributes(op).snr_shift, 0, 63)
    return (TensorType((count,), DType.UINT32),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    signal, noise, table = inputs
    gains = [gain_at(int(value), table.astype(np.int16)) for value in noise]
    shift = _attributes(op).snr_shift
    snr = [int(s) * gain >> shift & _WORD for s, gain in zip(signal, gains, strict=True)]
    return (np.array([shrunk(value) & _WORD for value in snr], dtype=np.uint32),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    arguments: dict[str, Argument] = {
        "gain": Input(_GAIN),
        "snr_shift": _attributes(op).snr_shift,
        "channels": graph.input(op, 0).elements,
        "noise": Input(1),
        "signal": Input(0),
        "output": Output(0),
    }
    return Kernel((Call("thimble_pcan_u32", arguments),), _extents)


def _extents(touched: Touched) -> Extents:
    channels = whole(touched.call["channels"], 4)
    return Extents({0: channels, 1: channels, _GAIN: whole(GAINS, 2)}, {0: channels})


def _sample(rng: np.random.Generator) -> Graph:
    count = some(rng, 1, 20)
    gains = np.sort(rng.integers(0, 16000, GAINS))[::-1].astype(np.int16)
    tensors = [Tensor(name, (count,), DType.UINT32) for name in ("x", "noise", "y")]
    tensors.append(Tensor("gains", gains.shape, DType.INT16, constant=gains))
    attributes = SignalPcan(some(rng, 0, 20))
    op = Op("signal_pcan", "pcan", ("x", "noise", "gains"), ("y",), attributes)
    return Graph.build("sample", tensors, [op], ["x", "noise"], ["y"])


SPEC = OldForm(
    kind="signal_pcan",
    attributes=SignalPcan,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=binding("SignalPCAN", 3, lambda node: SignalPcan(option(node, "snr_shift"))),
    types=TYPES,
    quantised=QUANTISED,
    limits="uint32",
)
