"""Sums of energies in triangular bands. TFLM's SignalFilterBank, uint32 to uint64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import common
from toolchain.ops.signal.spectrum import FilterBank, bank_sums

_WEIGHTS, _UNWEIGHTS, _STARTS, _WEIGHT_STARTS, _WIDTHS = range(1, 6)


@dataclass(frozen=True)
class SignalFilterBank(kit.Attributes):
    """`energies`: how many of the input the bands reach."""

    num_channels: int = 1
    energies: int = 0


def _infer(op: kit.Operator[SignalFilterBank]) -> kit.TensorTypes:
    attributes = op.attributes
    count = common.vector(op.x, kit.DType.UINT32, "energies")
    for index in range(_WEIGHTS, _WIDTHS + 1):
        size = common.vector(op.input(index), kit.DType.INT16, "table")
        if index >= _STARTS and size != attributes.num_channels + 1:
            raise ValueError(
                f"a table has {size} entries for {attributes.num_channels} channels and one"
            )
    if attributes.num_channels < 1 or attributes.energies > count:
        raise ValueError(f"its bands reach {attributes.energies} of {count} energies")
    return (kit.TensorType((attributes.num_channels,), kit.DType.UINT64),)


def _reference(op: kit.AnyOperator, inputs: kit.Inputs) -> kit.Arrays:
    energy, weights, unweights, starts, weight_starts, widths = (
        table.astype(np.int64) for table in inputs
    )
    tables = (t.astype(np.int16) for t in (starts, weight_starts, widths, weights, unweights))
    sums = bank_sums(FilterBank(0, 0, *tables), energy)
    return (np.array([value % (1 << 64) for value in sums], dtype=np.uint64),)


def _select(op: kit.Operator[SignalFilterBank], core: kit.Core) -> kit.Kernel:
    attributes = op.attributes
    bank = kit.Struct(
        "thimble_filter_bank",
        {
            "channels": attributes.num_channels,
            "starts": kit.Input(_STARTS),
            "weight_starts": kit.Input(_WEIGHT_STARTS),
            "widths": kit.Input(_WIDTHS),
            "weights": kit.Input(_WEIGHTS),
            "unweights": kit.Input(_UNWEIGHTS),
        },
    )
    call = kit.Call(
        "thimble_filter_bank_u32", {"bank": bank, "energy": kit.Input(0), "sums": kit.Output(0)}
    )
    weights = op.input(_WEIGHTS).elements

    def extents(touched: kit.Touched) -> kit.Extents:
        """The tables say what is touched; reading checked them."""
        channels = touched.call["bank.channels"]
        table = kit.whole(channels + 1, 2)
        read = {0: kit.Extent(0, 4 * attributes.energies), _WEIGHTS: kit.whole(weights, 2)}
        read |= {_UNWEIGHTS: kit.whole(weights, 2), _STARTS: table}
        read |= {_WEIGHT_STARTS: table, _WIDTHS: table}
        return kit.Extents(read, {0: kit.whole(channels, 8)})

    return kit.Kernel((call,), extents)


def _read(node: kit.TfliteNode) -> SignalFilterBank:
    tables = [node.constant(index).astype(np.int64) for index in range(_WEIGHTS, _WIDTHS + 1)]
    weights, unweights, starts, weight_starts, widths = tables
    channels = common.option(node, "num_channels")
    if len({len(starts), len(weight_starts), len(widths), channels + 1}) != 1:
        raise ValueError(f"its tables are not of {channels} channels and one")
    ends = (weight_starts + widths).max()
    if min(map(np.min, tables)) < 0 or ends > min(len(weights), len(unweights)):
        raise ValueError("its tables point beyond the weights, or hold numbers below 0")
    return SignalFilterBank(channels, int((starts + widths).max()))


def _sample(rng: np.random.Generator) -> kit.Graph:
    channels, count = common.some(rng, 1, 6), common.some(rng, 4, 30)
    widths = rng.integers(1, 5, channels + 1)
    starts = rng.integers(0, count - widths + 1)
    weight_starts = np.cumsum(widths) - widths
    size = int(widths.sum())
    weights = rng.integers(0, 4097, size)
    tables = (weights, 4096 - weights, starts, weight_starts, widths)
    x = kit.Tensor("x", (count,), kit.DType.UINT32)
    held = [kit.constant_sample(f"t{i}", t.astype(np.int16)) for i, t in enumerate(tables)]
    attributes = SignalFilterBank(channels, int((starts + widths).max()))
    return kit.sample("signal_filter_bank", attributes, x, *held, name="bank")


SPEC = kit.Form(
    kind="signal_filter_bank",
    attributes=SignalFilterBank,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=common.binding(
        "SignalFilterBank",
        6,
        SignalFilterBank,
        _read,
        lambda own: {"num_channels": own.num_channels},
    ),
    types=common.TYPES,
    quantised=common.QUANTISED,
    limits="uint32; constant tables",
)
