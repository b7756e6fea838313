"""`thimble_fully_connected_s4`: `thimble_fully_connected_s8` with weights of four bits."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.packing import nibble_turns
from toolchain.ops.matmul.kernels.units import Layout, block_terms, pack_by, units_kernel

FUNCTION = "thimble_fully_connected_s4"


def kernel(op: kit.AnyOperator, activation: Activation) -> kit.Kernel:
    """Of filters that fit four bits. Raises UnsupportedError as `dense_scaling` does."""
    pack = pack_by(nibble_turns)
    return units_kernel(op, FUNCTION, activation, Layout(4, 2), pack=pack, terms=_terms)


def _terms(op: kit.AnyOperator, call: kit.Call) -> kit.Terms:
    terms, words = block_terms(op, call), -(-call["depth"] // 4)
    return {
        **terms,
        "row word": call["rows"] * words,
        "four-bit word": terms["block"] * words,
    }
