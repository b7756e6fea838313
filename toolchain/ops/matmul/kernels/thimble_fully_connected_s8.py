"""`thimble_fully_connected_s8`, and `thimble_fully_connected_s4` of weights of four bits: a fully
connected layer, four units and a word of taps at a time.

CMSIS-NN's kernel rounds twice, LiteRT once.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.matmul.kernels import dense

FUNCTIONS = MappingProxyType({8: "thimble_fully_connected_s8", 4: "thimble_fully_connected_s4"})
_FOUR_BITS = dense.Layout(4, 2, packing.nibble_turns)


def kernel(op: kit.Operator[Any], bits: int = 8) -> kit.Kernel:
    """The kernel of known filters that fit so many bits. Raises UnsupportedError as `dense_scaling`
    does.
    """
    if bits == 4:
        return dense.units_kernel(op, FUNCTIONS[4], _FOUR_BITS, terms=_four_bit_terms)
    return dense.units_kernel(op, FUNCTIONS[8], dense.WORDS, terms=_terms)


def _terms(op: kit.AnyOperator, call: kit.Call) -> kit.Terms:
    terms = dense.block_terms(op, call)
    return {**terms, "word": terms["block"] * -(-call["depth"] // 4)}


def _four_bit_terms(op: kit.AnyOperator, call: kit.Call) -> kit.Terms:
    terms, words = dense.block_terms(op, call), -(-call["depth"] // 4)
    return {
        **terms,
        "row word": call["rows"] * words,
        "four-bit word": terms["block"] * words,
    }
