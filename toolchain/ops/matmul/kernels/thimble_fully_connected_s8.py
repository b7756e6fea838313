"""`thimble_fully_connected_s8`: a fully connected layer, four units and a word of taps at a time.

CMSIS-NN's kernel rounds twice, LiteRT once.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.matmul.kernels import dense

FUNCTION = "thimble_fully_connected_s8"


def kernel(op: kit.AnyOperator, activation: kit.Activation) -> kit.Kernel:
    """The kernel of known filters. Raises UnsupportedError as `dense_scaling` does."""
    pack = dense.pack_by(packing.word_turns)
    return dense.units_kernel(op, FUNCTION, activation, dense.WORDS, pack=pack, terms=_terms)


def _terms(op: kit.AnyOperator, call: kit.Call) -> kit.Terms:
    terms = dense.block_terms(op, call)
    return {**terms, "word": terms["block"] * -(-call["depth"] // 4)}
