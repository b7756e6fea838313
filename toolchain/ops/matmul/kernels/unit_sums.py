"""Parts of the kernels of a fully connected layer's int32 sums over some of its inputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.matmul.kernels import dense

SUMS = 3
"""The input with the sums of the blocks before."""


def sums_kernel(
    op: kit.AnyOperator,
    function: str,
    layout: dense.Layout,
    turns: packing.Turns,
    terms: Callable[[kit.Call], kit.Terms],
) -> kit.Kernel:
    """A call of `function`, whose filters are packed by `turns`. `terms` are those of the sums."""
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)

    def packed() -> NDArray[np.int32]:
        filters = kit.constant_of(weights).astype(np.int8)
        bias = packing.folded_bias(kit.bias_of(op, len(filters)), filters, x.q.zero_point)
        return packing.pack_sums(filters, bias, turns)

    arguments: dict[str, kit.Argument] = {
        **dense.sizes_of(op),
        "input": kit.Input(kit.INPUT),
        "parameters": kit.Packed("parameters"),
        "sums": kit.Input(SUMS),
        "output": kit.Output(0),
    }
    call, adds = kit.Call(function, arguments), op.inputs[SUMS] is not None
    outputs = call["rows"] * call["units"]
    return kit.Kernel(
        (call,),
        lambda touched: _extents(touched, layout),
        constants=(kit.Constant("parameters", packed, "biases and filters"),),
        # Each sum is read just before it is written.
        find_overlaps=lambda: (kit.SafeOverlap(SUMS),) if adds else (),
        find_terms=lambda: {**terms(call), "output": outputs, "added": outputs * adds},
    )


def _extents(touched: kit.Touched, layout: dense.Layout) -> kit.Extents:
    call = touched.call
    sums = kit.whole(call["rows"] * call["units"], 4)
    read = {0: kit.whole(call["rows"] * call["depth"])}
    if touched.has(SUMS):
        read[SUMS] = sums
    parameters = layout.parameter_bytes(call["units"], call["depth"])
    return kit.Extents(read, {0: sums}, {"parameters": parameters})
