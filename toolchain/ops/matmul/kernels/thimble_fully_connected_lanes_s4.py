"""`thimble_fully_connected_lanes_s4`: `thimble_fully_connected_lanes_s8` with weights of four bits,
whose inputs are prepared once a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.packing import VECTOR_BYTES, Int8, filled_up, vector_turns
from toolchain.ops.matmul.kernels.units import Layout, pack_by, units_kernel, vector_terms

FUNCTION = "thimble_fully_connected_lanes_s4"
_LAYOUT = Layout(VECTOR_BYTES, VECTOR_BYTES // 2)


def kernel(op: kit.AnyOperator, activation: Activation) -> kit.Kernel:
    """Of filters that fit four bits. Raises UnsupportedError as `dense_scaling` does."""
    pack = pack_by(_nibble_turns)
    return units_kernel(op, FUNCTION, activation, _LAYOUT, pack=pack, terms=_terms)


def _nibble_turns(filters: Int8, lanes: int) -> NDArray[np.int32]:
    """As `vector_turns`, two lanes in a byte: four bits of the second lane above those of the first
    plus 8, then the third and the fourth likewise.
    """
    padded = filled_up(filled_up(filters, 1, VECTOR_BYTES), 0, lanes).astype(np.int64)
    both = ((padded[1::2] << 4) + padded[::2] + 8).astype(np.int8)
    return vector_turns(both, lanes // 2)


def _terms(op: kit.AnyOperator, call: kit.Call) -> kit.Terms:
    return vector_terms(op, call, per_row=-(-call["depth"] // VECTOR_BYTES))
