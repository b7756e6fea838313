"""`thimble_fully_connected_lanes_s4`: `thimble_fully_connected_lanes_s8` with weights of four bits,
whose inputs are prepared once a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.matmul.kernels import dense

FUNCTION = "thimble_fully_connected_lanes_s4"
CODE_BYTES = {FUNCTION: kit.CodeBytes.LANES}
_LAYOUT = dense.Layout(packing.VECTOR_BYTES, packing.VECTOR_BYTES // 2)


def kernel(op: kit.AnyOperator, activation: kit.Activation) -> kit.Kernel:
    """The kernel of filters that fit four bits. Raises UnsupportedError as `dense_scaling` does."""
    pack = dense.pack_by(_nibble_turns)
    return dense.units_kernel(op, FUNCTION, activation, _LAYOUT, pack=pack, terms=_terms)


def _nibble_turns(filters: packing.Int8, lanes: int) -> NDArray[np.int32]:
    """As `vector_turns`, two lanes in a byte: four bits of the second lane above those of the first
    plus 8, then the third and the fourth likewise.
    """
    padded = packing.filled_up(
        packing.filled_up(filters, 1, packing.VECTOR_BYTES), 0, lanes
    ).astype(np.int64)
    both = ((padded[1::2] << 4) + padded[::2] + 8).astype(np.int8)
    return packing.vector_turns(both, lanes // 2)


def _terms(op: kit.AnyOperator, call: kit.Call) -> kit.Terms:
    return dense.vector_terms(op, call, per_row=-(-call["depth"] // packing.VECTOR_BYTES))
