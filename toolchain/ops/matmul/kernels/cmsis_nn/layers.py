"""What CMSIS-NN's fully connected layers share: arguments, and the bytes that these say."""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.cmsis_structs import dims, limits
from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import Argument, Input, Output, Packed, Struct, Touched
from toolchain.ops.weighted import (
    BIAS,
    INPUT,
    WEIGHTS,
)


def layer_arguments(
    op: Op,
    graph: Graph,
    activation: Activation,
    *,
    buffer: Struct,
    input_offset: int,
    factor: Struct,
    bias: Argument,
) -> dict[str, Argument]:
    """Of either function."""
    x, y = graph.input(op, INPUT), graph.output(op)
    units, depth = graph.input(op, WEIGHTS).shape
    rows = x.elements // depth
    params: dict[str, Argument] = {
        "input_offset": input_offset,
        "filter_offset": 0,
        "output_offset": y.q.zero_point,
        "activation": limits(*clamp_range(activation, y)),
    }
    return {
        "ctx": buffer,
        "fc_params": Struct("cmsis_nn_fc_params", params),
        "quant_params": factor,
        "input_dims": dims(n=rows, c=depth),
        "input": Input(INPUT),
        "filter_dims": dims(n=depth, c=units),
        "kernel": Input(WEIGHTS),
        "bias_dims": dims(c=units),
        "bias": bias,
        "output_dims": dims(n=rows, c=units),
        "output": Output(0),
    }


def layer_extents(touched: Touched, element_bytes: int) -> Extents:
    """Of rows of such elements. The bias may be an input of int32 or a constant of int64."""
    call = touched.call
    rows, depth, units = call["input_dims.n"], call["filter_dims.n"], call["output_dims.c"]
    read = {INPUT: whole(rows * depth, element_bytes), WEIGHTS: whole(units * depth)}
    if isinstance(call.find("bias"), Input):
        read[BIAS] = whole(units, 4)
    sums = {"sums": 4 * units} if isinstance(call.find("ctx.buf"), Packed) else {}
    bias = {"bias": 8 * units} if isinstance(call.find("bias"), Packed) else {}
    return Extents(read, {0: whole(rows * units, element_bytes)}, sums | bias)
