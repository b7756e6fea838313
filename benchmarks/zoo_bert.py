"""BERT-Tiny (Turc et al., 2019): two layers of two heads, 128 wide, over 512 tokens."""

from __future__ import annotations

import math

from toolchain.contact.network import ACTIVATION, Network
from toolchain.ir import Graph, Quantisation
from toolchain.ops.elementwise.rows import Lookup
from toolchain.ops.matmul.batch_matmul import BatchMatMul
from toolchain.ops.movement.slice import Slice
from toolchain.ops.normalisation.softmax_s8 import Softmax

SQUARES = Quantisation((0.140625,), (-128,))
INVERSES = Quantisation((0.0078125,), (-128,))
SCORES = Quantisation((2.0,), (0,))
SHARES = Quantisation((1 / 256,), (-128,))


def _normalised(net: Network, x: str) -> str:
    """Layer normalisation of each token; the learned factor and offset at the end."""
    centred = net.sub(x, net.mean(x, (-1,)))
    variance = net.mean(net.mul(centred, centred, SQUARES), (-1,), SQUARES)
    inverse = net.op("lookup", [variance], Lookup("Pow", (-0.5,)), INVERSES)
    width = net.channels(x)
    factor = net.constant((width,), 1 / 40, 30, 90)
    offset = net.constant((width,), 1 / 127)
    return net.add(net.mul(net.mul(centred, inverse), factor), offset)


def _attention(net: Network, x: str, heads: int) -> str:
    """Softmax(Q K' / sqrt(d)) V, head by head."""
    depth = net.channels(x) // heads
    results = []
    for _ in range(heads):
        q, k, v = (net.dense(x, depth, keep_dims=True) for _ in range(3))
        scores = net.op("batch_matmul", [q, k], BatchMatMul(adjoint_y=True), SCORES)
        shares = net.op("softmax", [scores], Softmax(1 / math.sqrt(depth)), SHARES)
        results.append(net.op("batch_matmul", [shares, v], BatchMatMul(), ACTIVATION))
    return net.dense(net.concat(results), net.channels(x), keep_dims=True)


def bert_tiny(name: str, tokens: int = 512, width: int = 128, layers: int = 2) -> Graph:
    """From the sum of the embeddings to two classes, by the pooled first token."""
    net = Network(name, (1, tokens, width))
    x = _normalised(net, net.input)
    for _ in range(layers):
        x = _normalised(net, net.add(x, _attention(net, x, 2)))
        inner = net.op("lookup", [net.dense(x, 4 * width, keep_dims=True)], Lookup("Gelu"))
        x = _normalised(net, net.add(x, net.dense(inner, width, keep_dims=True)))
    sizes = (1, 1, width)
    first = net.op("slice", [x], Slice((0, 0, 0), sizes, (1, 1, 1), sizes))
    pooled = net.dense(net.reshape(first, (1, width)), width)
    return net.graph(net.dense(net.op("lookup", [pooled], Lookup("Tanh")), 2))
