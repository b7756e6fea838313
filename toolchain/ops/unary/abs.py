"""Absolute values of int8 and int16, as TFLite computes them (`AbsEvalQuantized`)."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import Int64, rescaling_factor, stored
from toolchain.ops.elementwise.kernels import sized_kernel
from toolchain.ops.elementwise.rows import Stored


def _apply(op: kit.AnyOperator, values: Int64) -> Int64:
    size, scaling = np.abs(values - op.x.q.zero_point), rescaling_factor(op.x, op.y)
    return stored(kit.multiply_by_quantized_multiplier(size, *scaling), op.y)


def _kernel_s16(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    multiplier, shift = rescaling_factor(op.x, op.y)
    params = kit.Struct("thimble_abs_s16_params", {"multiplier": multiplier, "shift": shift})
    return sized_kernel(op, "thimble_abs_s16", {"params": params})


INT8, INT16 = Stored(_apply), Stored(_apply, _kernel_s16)
