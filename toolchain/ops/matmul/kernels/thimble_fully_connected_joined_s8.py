"""`thimble_fully_connected_joined_s8`: a fully connected layer whose filters are joined two by two,
where an instruction has two products: it saves every other unpacking.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.matmul.kernels import dense

FUNCTION = "thimble_fully_connected_joined_s8"
_SUM_LIMIT = 1 << 23


def takes(op: kit.AnyOperator) -> bool:
    """Whether known filters [units, taps], with their largest sums, can be joined."""
    filters = dense.filters_of(op)
    bias = kit.bias_of(op, len(filters))
    largest = packing.largest_sums(bias, filters, op.input(kit.INPUT).q.zero_point, partial=False)
    wide = packing.filled_up(filters, 0, 4).astype(np.int64)
    both = 256 * wide[1::2] + wide[::2]
    fits = bool((both >= -(1 << 15)).all() and (both < 1 << 15).all())
    return fits and bool((largest[1::2] < _SUM_LIMIT).all())


def kernel(op: kit.Operator[Any]) -> kit.Kernel:
    """The kernel of filters that it `takes`. Raises UnsupportedError as `dense_scaling` does."""
    return dense.units_kernel(op, FUNCTION, dense.WORDS, pack=_packed, terms=_terms)


def _packed(scales: packing.Scaling) -> list[NDArray[np.generic]]:
    wide = packing.filled_up(packing.filled_up(scales.filters, 1, 4), 0, 4).astype(np.int64)
    bias = packing.filled_up(scales.bias, 0, 4).astype(np.int64)
    pairs = (wide[::2, ::2] * wide[::2, 1::2]).sum(axis=1)
    heads = np.stack((bias[::2] - pairs, 256 * bias[1::2] + bias[::2]), axis=1)
    both = (256 * wide[1::2] + wide[::2]).astype(np.int16)
    taps = both.reshape(len(wide) // 4, 2, -1, 4)[..., [0, 2, 1, 3]]
    turns = packing.as_words(taps.transpose(0, 2, 1, 3).reshape(len(taps), -1))
    return [packing.by_blocks(heads.reshape(-1).astype(np.int32), 4), turns]


def _terms(op: kit.AnyOperator, call: kit.Call) -> kit.Terms:
    terms, words = dense.block_terms(op, call), -(-call["depth"] // 4)
    quick = terms["quick block"]
    even = isinstance(call.arguments["common"], kit.Packed) and not call["depth"] % 4
    at_once = quick if even else 0
    return {
        **terms,
        "row word": call["rows"] * words,
        "quick block": quick - at_once,
        "block at once": at_once,
        "joined word": terms["block"] * words,
    }
