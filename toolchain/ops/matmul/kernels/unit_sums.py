"""What the kernels of int32 sums of a fully connected layer over some of its inputs share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import Graph, Op
from toolchain.ops.convolution.packing import Turns, folded_bias, pack_sums
from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Output,
    Packed,
    SafeOverlap,
    Terms,
    Touched,
)
from toolchain.ops.matmul.kernels.units import Layout, sizes_of
from toolchain.ops.weighted import (
    INPUT,
    WEIGHTS,
    bias_of,
    constant_of,
)

SUMS = 3
"""The input with the sums of the blocks before."""


def sums_kernel(
    op: Op,
    graph: Graph,
    function: str,
    layout: Layout,
    turns: Turns,
    terms: Callable[[Call], Terms],
) -> Kernel:
    """A call of `function`, whose filters are packed by `turns`. `terms` are those of the sums."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)

    def packed() -> NDArray[np.int32]:
        filters = constant_of(weights).astype(np.int8)
        bias = folded_bias(bias_of(op, graph, len(filters)), filters, x.q.zero_point)
        return pack_sums(filters, bias, turns)

    arguments: dict[str, Argument] = {
        **sizes_of(op, graph),
        "input": Input(INPUT),
        "parameters": Packed("parameters"),
        "sums": Input(SUMS),
        "output": Output(0),
    }
    call, adds = Call(function, arguments), bool(op.inputs[SUMS])
    outputs = call["rows"] * call["units"]
    return Kernel(
        (call,),
        lambda touched: _extents(touched, layout),
        constants=(Constant("parameters", packed, "biases and filters"),),
        # Each sum is read just before it is written.
        find_overlaps=lambda: (SafeOverlap(SUMS),) if adds else (),
        find_terms=lambda: {**terms(call), "output": outputs, "added": outputs * adds},
    )


def _extents(touched: Touched, layout: Layout) -> Extents:
    call = touched.call
    sums = whole(call["rows"] * call["units"], 4)
    read = {0: whole(call["rows"] * call["depth"])}
    if touched.has(SUMS):
        read[SUMS] = sums
    parameters = layout.parameter_bytes(call["units"], call["depth"])
    return Extents(read, {0: sums}, {"parameters": parameters})
