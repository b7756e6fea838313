"""`thimble_fully_connected_s4`: `thimble_fully_connected_s8` with weights of four bits."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.matmul.kernels import dense

FUNCTION = "thimble_fully_connected_s4"


def kernel(op: kit.AnyOperator, activation: kit.Activation) -> kit.Kernel:
    """The kernel of filters that fit four bits. Raises UnsupportedError as `dense_scaling` does."""
    pack = dense.pack_by(packing.nibble_turns)
    return dense.units_kernel(op, FUNCTION, activation, dense.Layout(4, 2), pack=pack, terms=_terms)


def _terms(op: kit.AnyOperator, call: kit.Call) -> kit.Terms:
    terms, words = dense.block_terms(op, call), -(-call["depth"] // 4)
    return {
        **terms,
        "row word": call["rows"] * words,
        "four-bit word": terms["block"] * words,
    }
