"""`arm_fully_connected_s8`, which on Helium adds a sum for each unit times the input's offset.

Since 7.0.0 it adds that sum as it is, and reads no bias. With an offset of 1, no bias, and the bias
and offset in the sums, all releases compute the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.matmul.kernels.cmsis_nn.layers import layer_arguments, layer_extents

FUNCTION = "arm_fully_connected_s8"
_IN_SUMS = "The buffer holds bias and input offset of each unit, which the kernel adds once."
_TWICE = "rounds each sum twice; LiteRT once, in double precision"


def kernel(op: kit.Operator[Any], core: kit.Core) -> kit.Kernel:
    """Raises NoKernelError for a scale of each unit, and for weights that are computed at run time
    or have a zero point.
    """
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    if not weights.is_constant or any(weights.q.zero_points):
        raise kit.NoKernelError(f"{FUNCTION} takes constant weights with zero point 0")
    if len(weights.q.scales) > 1:
        raise kit.NoKernelError(f"{FUNCTION} takes one scale for all units")
    filters = kit.constant_of(weights).astype(np.int8, copy=False)
    units = len(filters)
    multiplier, shift = kit.quantize_multiplier(x.q.scale * weights.q.scale / y.q.scale)
    bias = kit.bias_of(op, units)
    sums = packing.sums_of(bias, filters, x.q.zero_point, partial=True)
    kit.check_sums(sums.lowest, sums.highest, multiplier, shift, y.q.zero_point)
    kit.require_int32(sums.largest)
    folded = packing.folded_bias(bias, filters, x.q.zero_point)
    has_bias = len(op.inputs) > kit.BIAS and not core.mve
    arguments = layer_arguments(
        op,
        buffer=cmsis_structs.context(4 * units, kept="sums")
        if core.mve
        else cmsis_structs.context(0),
        input_offset=1 if core.mve else -x.q.zero_point,
        factor=cmsis_structs.factor(multiplier, shift),
        bias=kit.Input(kit.BIAS) if has_bias else kit.NULL,
    )
    note = _IN_SUMS if core.mve else ""
    call = kit.Call(FUNCTION, arguments, status=True, note=note)
    return kit.Kernel(
        (call,),
        lambda touched: layer_extents(touched, 1),
        constants=(kit.constant("sums", folded, "bias and offset of each unit"),)
        if core.mve
        else (),
        find_terms=lambda: _terms(call, core),
        inexact=_TWICE,
    )


def _terms(call: kit.Call, core: kit.Core) -> kit.Terms:
    """`arm_nn_vec_mat_mult_t_s8` for each row: four units at a time on Helium, two with DSP, three
    elsewhere."""
    rows, depth, units = call["input_dims.n"], call["filter_dims.n"], call["output_dims.c"]
    together, width = (4, 16) if core.mve else (2, 4) if core.dsp else (3, 1)
    blocks, lone = rows * (units // together), rows * (units % together)
    runs = -(-depth // width) if core.mve else depth // width
    rest = 0 if core.mve else depth % width
    return {
        "call": 1.0,
        "row": rows,
        "block": blocks,
        "block run": blocks * runs,
        "block rest": blocks * rest,
        "lone unit": lone,
        "lone run": lone * runs,
        "lone rest": lone * rest,
    }
