"""Parts of the kernels of fully connected layers: sizes, scales of sums, and the loops over packed
filters of four units at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit, walks
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.requant import requant

_SCALING_BYTES = 4 * 9
"""Words that end the sums of four units: multipliers, their low parts, shift codes."""


@dataclass(frozen=True)
class Layout:
    """How filters lie: so many `taps` of a unit together, in so many bytes, by `turns`."""

    taps: int
    size_bytes: int
    turns: packing.Turns

    def parameter_bytes(self, units: int, depth: int) -> int:
        """Biases and filters of units, four at a time."""
        return kit.round_up(units, 4) * (4 + self.size_bytes * -(-depth // self.taps))


WORDS = Layout(4, 4, packing.word_turns)
VECTORS = Layout(packing.VECTOR_BYTES, packing.VECTOR_BYTES, packing.vector_turns)


def sizes_of(op: kit.AnyOperator) -> dict[str, int]:
    """Rows, inputs and outputs of each."""
    units, depth = op.input(kit.WEIGHTS).shape
    return {"rows": op.input(kit.INPUT).elements // depth, "depth": depth, "units": units}


def sum_factors(op: kit.AnyOperator) -> NDArray[np.float64]:
    """The real scale of a sum in steps of the output: one per output, or one for all."""
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    factors: NDArray[np.float64] = x.q.scale * np.array(weights.q.scales) / y.q.scale
    return factors


def known_filters(weights: kit.Tensor) -> NDArray[np.int8] | None:
    """Filters less their zero point; None where they are computed, or int8 does not hold that."""
    if weights.constant is None:
        return None
    zero_point = 0 if weights.q.per_channel else weights.q.zero_point
    centred = weights.constant.astype(np.int16) - zero_point
    fit = centred.min(initial=0) >= -128 and centred.max(initial=0) <= 127
    return centred.astype(np.int8) if fit else None


def filters_of(op: kit.AnyOperator) -> NDArray[np.int8]:
    """The filters of a layer where they are known."""
    filters = known_filters(op.input(kit.WEIGHTS))
    assert filters is not None
    return filters


def dense_scaling(op: kit.Operator[Any]) -> packing.Scaling:
    """How sums are scaled. Raises UnsupportedError if no integers scale them as LiteRT does."""
    x, y = op.input(kit.INPUT), op.y
    filters, factors = filters_of(op), sum_factors(op)
    bias = kit.bias_of(op, len(filters))
    clamp = kit.clamp_range(op.attributes.activation, y)
    scales = packing.single_rounding_scaling(
        bias, filters, x.q.zero_point, factors, clamp, y.q.zero_point
    )
    if scales is None:
        raise no_multiplier(op, float(factors.max()))
    return scales


def no_multiplier(op: kit.AnyOperator, factor: float) -> kit.UnsupportedError:
    """The refusal of a layer whose sums no integers scale."""
    return kit.UnsupportedError(
        f"operator {op.name!r}: no integer multiplier rounds as LiteRT's double scale {factor} "
        "does; change the output scale in its last digits"
    )


def units_kernel(
    op: kit.Operator[Any],
    function: str,
    layout: Layout,
    *,
    terms: Callable[[kit.Operator[Any], kit.Call], kit.Terms],
    pack: Callable[[packing.Scaling], list[NDArray[np.generic]]] | None = None,
) -> kit.Kernel:
    """A call of `function`. `pack` gives the biases and filters of each four units, where these do
    not just lie by the layout; the scaling of all is a constant of its own where units have the
    same.

    Raises UnsupportedError as `dense_scaling` does.
    """
    scales, y = dense_scaling(op), op.y
    common = len(sum_factors(op)) == 1
    arguments: dict[str, kit.Argument] = {
        **sizes_of(op),
        "requant": requant(y.q.zero_point, *kit.clamp_range(op.attributes.activation, y)),
        "input": kit.Input(kit.INPUT),
        "parameters": kit.Packed("parameters"),
        "common": kit.Packed("scaling") if common else kit.NULL,
        "output": kit.Output(0),
    }
    call = kit.Call(function, arguments)

    def packed() -> kit.Int32:
        plain = [packing.by_blocks(scales.bias, 4), layout.turns(scales.filters, 4)]
        units = pack(scales) if pack else plain
        return packing.joined(units + ([] if common else _scaling_of(scales)))

    parameters = kit.Constant("parameters", packed, "biases, filters and requantisation")
    scaling = kit.Constant("scaling", lambda: _common_scaling(scales), "multipliers and shifts")
    return kit.Kernel(
        (call,),
        lambda touched: _extents(touched, layout),
        constants=(parameters, scaling) if common else (parameters,),
        find_overlaps=lambda: (kit.SafeOverlap(kit.INPUT, 0, _lead_bytes(call)),),
        find_terms=lambda: terms(op, call),
    )


def _common_scaling(scales: packing.Scaling) -> kit.Int32:
    """The `common` argument: as of four units that are alike."""
    four = np.zeros(4, dtype=np.int64)
    return packing.joined(
        _scaling_of(
            packing.Scaling(
                scales.filters[:1],
                scales.bias[:1],
                scales.multiplier[four],
                scales.low[four],
                scales.code[four],
            )
        )
    )


def _scaling_of(scales: packing.Scaling) -> list[NDArray[np.generic]]:
    return [
        packing.by_blocks(scales.multiplier, 4),
        packing.by_blocks(scales.low, 4),
        packing.as_words(packing.by_blocks(scales.code, 4)),
    ]


def _lead_bytes(call: kit.Call) -> int:
    """Row by row; four units are written before the row is read again for the next four."""
    units, depth, rows = call["units"], call["depth"], np.arange(call["rows"])
    early = (units - 1) // 4 * 4
    lead = walks.lead_bytes(rows * units + early, rows * depth) if early else 0
    return max(lead, walks.lead_bytes(rows * units, rows * depth))


def _extents(touched: kit.Touched, layout: Layout) -> kit.Extents:
    call = touched.call
    constants = {"parameters": layout.parameter_bytes(call["units"], call["depth"])}
    if isinstance(call.arguments["common"], kit.Packed):
        constants["scaling"] = _SCALING_BYTES
    else:
        constants["parameters"] += kit.round_up(call["units"], 4) // 4 * _SCALING_BYTES
    read, written = (kit.whole(call["rows"] * call[size]) for size in ("depth", "units"))
    return kit.Extents({0: read}, {0: written}, constants)


def block_terms(op: kit.AnyOperator, call: kit.Call) -> dict[str, float]:
    """Terms of blocks of four units; blocks whose units all end quickly are counted apart."""
    rows, depth, units = call["rows"], call["depth"], call["units"]
    blocks = rows * -(-units // 4)
    _, slow = kit.slow_channels(op)
    fours = slow[: units // 4 * 4].reshape(-1, 4)
    slow_units = 4 * rows * int(fours.any(axis=1).sum())
    quick = 0 if kit.is_narrow(op) else rows * (units // 4) - slow_units // 4
    return {
        "call": 1.0,
        "row": rows,
        "block": blocks,
        "quick block": quick,
        "lone unit": rows * units - 4 * quick - slow_units,
        "slow unit": slow_units,
        "uneven block": blocks * bool(depth % 4),
    }


def vector_terms(op: kit.AnyOperator, call: kit.Call, *, prepared: bool) -> kit.Terms:
    """Terms of blocks of four units in vectors of Helium; `prepared`: inputs, too, once a row."""
    rows, units = call["rows"], call["units"]
    blocks, vectors = rows * -(-units // 4), -(-call["depth"] // packing.VECTOR_BYTES)
    _, slow = kit.slow_channels(op)
    slow_units = int(np.repeat(np.logical_or.reduceat(slow, range(0, units, 4)), 4)[:units].sum())
    return {
        "call": 1.0,
        "row": rows,
        "row vector": rows * vectors * prepared,
        "block": blocks,
        "vector": blocks * vectors,
        "slow unit": rows * slow_units,
    }
