"""`thimble_partial_fully_connected_s8` and `thimble_partial_fully_connected_lanes_s8`: int32 sums
of a fully connected layer over some of its inputs, of four units at a time, by words of taps or in
Helium's vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.matmul.kernels import dense

FUNCTIONS = WORDS, LANES = (
    "thimble_partial_fully_connected_s8",
    "thimble_partial_fully_connected_lanes_s8",
)
SUMS = 3
"""The input with the sums of the blocks before."""


def kernel(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    """The kernel of any partial layer."""
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    layout = dense.VECTORS if core.mve else dense.WORDS

    def packed() -> NDArray[np.int32]:
        filters = kit.constant_of(weights).astype(np.int8)
        bias = packing.folded_bias(kit.bias_of(op, len(filters)), filters, x.q.zero_point)
        return packing.pack_sums(filters, bias, layout.turns)

    arguments: dict[str, kit.Argument] = {
        **dense.sizes_of(op),
        "input": kit.Input(kit.INPUT),
        "parameters": kit.Packed("parameters"),
        "sums": kit.Input(SUMS),
        "output": kit.Output(0),
    }
    call, adds = kit.Call(LANES if core.mve else WORDS, arguments), op.inputs[SUMS] is not None
    return kit.Kernel(
        (call,),
        lambda touched: _extents(touched, layout),
        constants=(kit.Constant("parameters", packed, "biases and filters"),),
        # Each sum is read just before it is written.
        find_overlaps=lambda: (kit.SafeOverlap(SUMS),) if adds else (),
        find_terms=lambda: _terms(call, layout, adds=adds),
    )


def _extents(touched: kit.Touched, layout: dense.Layout) -> kit.Extents:
    call = touched.call
    sums = kit.whole(call["rows"] * call["units"], 4)
    read = {0: kit.whole(call["rows"] * call["depth"])}
    if touched.has(SUMS):
        read[SUMS] = sums
    parameters = layout.parameter_bytes(call["units"], call["depth"])
    return kit.Extents(read, {0: sums}, {"parameters": parameters})


def _terms(call: kit.Call, layout: dense.Layout, *, adds: bool) -> kit.Terms:
    rows, depth, outputs = call["rows"], call["depth"], call["rows"] * call["units"]
    blocks = rows * -(-call["units"] // 4)
    runs = blocks * -(-depth // layout.taps)
    terms = {"call": 1.0, "row": rows, "block": blocks}
    if layout is dense.VECTORS:
        terms |= {"vector": runs}
    else:
        terms |= {"word": runs, "uneven block": blocks * bool(depth % layout.taps)}
    return terms | {"output": outputs, "added": outputs * adds}
