"""`arm_fully_connected_s16`, which keeps 16 bits of the factor of the sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.matmul.kernels.cmsis_nn.layers import layer_arguments, layer_extents
from toolchain.ops.readers import int16

FUNCTION = "arm_fully_connected_s16"


def kernel(op: kit.Operator[Any], core: kit.Core) -> kit.Kernel:
    """Raises NoKernelError for a scale of each unit, and where a sum might overrun it."""
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    if len(weights.q.scales) > 1:
        raise kit.NoKernelError(f"{FUNCTION} takes one scale for all units")
    filters, real = kit.constant_of(weights), x.q.scale * weights.q.scale / y.q.scale
    bias = int16.bias_of(op, kit.BIAS, len(filters))
    largest = int16.largest_sums(filters.astype(np.int64), bias)
    if not int16.held_by_cmsis_nn(largest, np.full(len(filters), real)):
        raise kit.NoKernelError(f"{FUNCTION} does not hold the sums")
    arguments = layer_arguments(
        op,
        buffer=cmsis_structs.context(0),
        input_offset=0,
        factor=cmsis_structs.factor(*kit.quantize_multiplier(real)),
        bias=kit.Packed("bias"),
    )
    call = kit.Call(FUNCTION, arguments, status=True)
    return kit.Kernel(
        (call,),
        lambda touched: layer_extents(touched, 2),
        constants=(kit.constant("bias", bias, "int64"),),
        inexact="keeps 16 bits of the factor of the sums, LiteRT all",
    )
