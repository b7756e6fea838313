"""`thimble_fully_connected_lanes_s8`: a fully connected layer in Helium's vectors; filters lie in
the order in which these are loaded. `thimble_fully_connected_lanes_s4` has weights of four bits,
and prepares its inputs once a row.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.matmul.kernels import dense

FUNCTIONS = MappingProxyType(
    {8: "thimble_fully_connected_lanes_s8", 4: "thimble_fully_connected_lanes_s4"}
)


def kernel(op: kit.Operator[Any], bits: int = 8) -> kit.Kernel:
    """The kernel of known filters that fit so many bits. Raises UnsupportedError as `dense_scaling`
    does.
    """
    layout = _FOUR_BITS if bits == 4 else dense.VECTORS
    return dense.units_kernel(
        op,
        FUNCTIONS[bits],
        layout,
        terms=lambda op, call: dense.vector_terms(op, call, prepared=bits == 4),
    )


def _nibble_turns(filters: packing.Int8, lanes: int) -> NDArray[np.int32]:
    """As `vector_turns`, two lanes in a byte: four bits of the second lane above those of the first
    plus 8, then the third and the fourth likewise.
    """
    padded = packing.filled_up(
        packing.filled_up(filters, 1, packing.VECTOR_BYTES), 0, lanes
    ).astype(np.int64)
    both = ((padded[1::2] << 4) + padded[::2] + 8).astype(np.int8)
    return packing.vector_turns(both, lanes // 2)


_FOUR_BITS = dense.Layout(packing.VECTOR_BYTES, packing.VECTOR_BYTES // 2, _nibble_turns)
