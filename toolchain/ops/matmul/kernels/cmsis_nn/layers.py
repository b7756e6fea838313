"""Arguments of CMSIS-NN's fully connected layers, and the bytes that they touch."""

from __future__ import annotations

from typing import Any

from toolchain.ops import cmsis_structs, kit


def layer_arguments(
    op: kit.Operator[Any],
    *,
    buffer: kit.Struct,
    input_offset: int,
    factor: kit.Struct,
    bias: kit.Argument,
) -> dict[str, kit.Argument]:
    """The arguments of either function."""
    x, y = op.input(kit.INPUT), op.y
    units, depth = op.input(kit.WEIGHTS).shape
    rows = x.elements // depth
    params: dict[str, kit.Argument] = {
        "input_offset": input_offset,
        "filter_offset": 0,
        "output_offset": y.q.zero_point,
        "activation": cmsis_structs.limits(*kit.clamp_range(op.attributes.activation, y)),
    }
    return {
        "ctx": buffer,
        "fc_params": kit.Struct("cmsis_nn_fc_params", params),
        "quant_params": factor,
        "input_dims": cmsis_structs.dims(n=rows, c=depth),
        "input": kit.Input(kit.INPUT),
        "filter_dims": cmsis_structs.dims(n=depth, c=units),
        "kernel": kit.Input(kit.WEIGHTS),
        "bias_dims": cmsis_structs.dims(c=units),
        "bias": bias,
        "output_dims": cmsis_structs.dims(n=rows, c=units),
        "output": kit.Output(0),
    }


def layer_extents(touched: kit.Touched, element_bytes: int) -> kit.Extents:
    """The bytes that a layer of such elements touches. The bias may be an input of int32 or a
    constant of int64.
    """
    call = touched.call
    rows, depth, units = call["input_dims.n"], call["filter_dims.n"], call["output_dims.c"]
    read = {
        kit.INPUT: kit.whole(rows * depth, element_bytes),
        kit.WEIGHTS: kit.whole(units * depth),
    }
    if isinstance(call.find("bias"), kit.Input):
        read[kit.BIAS] = kit.whole(units, 4)
    sums = {"sums": 4 * units} if isinstance(call.find("ctx.buf"), kit.Packed) else {}
    bias = {"bias": 8 * units} if isinstance(call.find("bias"), kit.Packed) else {}
    return kit.Extents(read, {0: kit.whole(rows * units, element_bytes)}, sums | bias)
