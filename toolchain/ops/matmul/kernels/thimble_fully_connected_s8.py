"""`thimble_fully_connected_s8`: a fully connected layer, four units and a word of taps at a time.

CMSIS-NN's kernel rounds twice, LiteRT once.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.packing import word_turns
from toolchain.ops.matmul.kernels.units import WORDS, block_terms, pack_by, units_kernel

FUNCTION = "thimble_fully_connected_s8"


def kernel(op: kit.AnyOperator, activation: Activation) -> kit.Kernel:
    """Of known filters. Raises UnsupportedError as `dense_scaling` does."""
    pack = pack_by(word_turns)
    return units_kernel(op, FUNCTION, activation, WORDS, pack=pack, terms=_terms)


def _terms(op: kit.AnyOperator, call: kit.Call) -> kit.Terms:
    terms = block_terms(op, call)
    return {**terms, "word": terms["block"] * -(-call["depth"] // 4)}
