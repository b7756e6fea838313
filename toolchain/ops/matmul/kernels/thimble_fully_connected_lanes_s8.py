"""`thimble_fully_connected_lanes_s8`: a fully connected layer in Helium's vectors; filters lie in
the order in which these are loaded.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.packing import vector_turns
from toolchain.ops.matmul.kernels.units import VECTORS, pack_by, units_kernel, vector_terms

FUNCTION = "thimble_fully_connected_lanes_s8"


def kernel(op: kit.AnyOperator, activation: Activation) -> kit.Kernel:
    """Of known filters. Raises UnsupportedError as `dense_scaling` does."""
    pack = pack_by(vector_turns)
    return units_kernel(op, FUNCTION, activation, VECTORS, pack=pack, terms=_terms)


def _terms(op: kit.AnyOperator, call: kit.Call) -> kit.Terms:
    return vector_terms(op, call, per_row=0)
