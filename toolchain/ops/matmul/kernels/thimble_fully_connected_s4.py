"""`thimble_fully_connected_s4`: `thimble_fully_connected_s8` with weights of four bits."""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.packing import nibble_turns
from toolchain.ops.kernel import Call, Kernel, Terms
from toolchain.ops.matmul.kernels.units import Layout, block_terms, pack_by, units_kernel

FUNCTION = "thimble_fully_connected_s4"


def kernel(op: Op, graph: Graph, activation: Activation) -> Kernel:
    """Of filters that fit four bits. Raises UnsupportedError as `dense_scaling` does."""
    pack = pack_by(nibble_turns)
    return units_kernel(op, graph, FUNCTION, activation, Layout(4, 2), pack=pack, terms=_terms)


def _terms(op: Op, graph: Graph, call: Call) -> Terms:
    terms, words = block_terms(op, graph, call), -(-call["depth"] // 4)
    return {
        **terms,
        "row word": call["rows"] * words,
        "four-bit word": terms["block"] * words,
    }
