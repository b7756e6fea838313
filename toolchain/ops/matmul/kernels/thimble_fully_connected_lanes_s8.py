"""`thimble_fully_connected_lanes_s8`: a fully connected layer in Helium's vectors; filters lie in
the order in which these are loaded.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.matmul.kernels import dense

FUNCTION = "thimble_fully_connected_lanes_s8"
CODE_BYTES = {FUNCTION: kit.CodeBytes.LANES}


def kernel(op: kit.AnyOperator, activation: kit.Activation) -> kit.Kernel:
    """The kernel of known filters. Raises UnsupportedError as `dense_scaling` does."""
    pack = dense.pack_by(packing.vector_turns)
    return dense.units_kernel(op, FUNCTION, activation, dense.VECTORS, pack=pack, terms=_terms)


def _terms(op: kit.AnyOperator, call: kit.Call) -> kit.Terms:
    return dense.vector_terms(op, call, per_row=0)
