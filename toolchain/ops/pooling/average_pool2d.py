"""Average over windows. Padding is not counted; integers round halves away from zero.

TFLite AVERAGE_POOL_2D: of int8 and int16 `reference_integer_ops::AveragePool`, of float32
`reference_ops::AveragePool`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.pooling.common import Pool2D, float_reference, mean_of, pool_form, windows
from toolchain.ops.pooling.kernels import thimble_average_pool_s8, thimble_max_pool_f32
from toolchain.ops.pooling.kernels.cmsis_nn import arm_avgpool_s8
from toolchain.ops.readers.float32 import float32_form
from toolchain.ops.readers.int16 import int16_form
from toolchain.ops.readers.onnx_pooling import read_average_pool
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.reduction.requantise_sums import Law, RequantiseSums


def _reference(op: kit.Operator[Pool2D], inputs: kit.Inputs) -> kit.Arrays:
    y, lift = op.y, op.attributes.lift
    result = np.empty(y.shape, np.int64)
    for row, column, part in windows(op, inputs[0].astype(np.int64)):
        count = part.shape[1] * part.shape[2]
        total = part.sum(axis=(1, 2)) + lift * count
        average = np.sign(total) * ((np.abs(total) + count // 2) // count)
        result[:, row, column] = average - lift
    low, high = kit.clamp_range(op.attributes.activation, y)
    return (np.clip(result, low, high).astype(y.dtype.numpy),)


def _select(op: kit.Operator[Pool2D], core: kit.Core) -> kit.Kernel:
    """CMSIS-NN's kernel on Helium, except for legacy uint8 models. Elsewhere Thimble's, which takes
    fewer instructions and no scratch.
    """
    theirs = core.mve and not op.attributes.lift
    chosen = arm_avgpool_s8.kernel if theirs else thimble_average_pool_s8.kernel
    return chosen(op, core)


def _reductions(op: kit.Operator[Pool2D]) -> tuple[kit.Reduction, ...]:
    """Rows and columns, if a single window covers the whole image."""
    attributes, x, y = op.attributes, op.x, op.y
    _, rows, columns, _ = x.shape
    pad = attributes.padding
    tall = y.shape[1] == 1 and attributes.filter_height - pad.top >= rows
    wide = y.shape[2] == 1 and attributes.filter_width - pad.left >= columns
    if not (tall and wide):
        return ()
    count, lift = rows * columns, attributes.lift
    ending = RequantiseSums(
        Law.AWAY,
        count=count,
        bias=lift * count,
        offset=-lift,
        activation=attributes.activation,
    )
    partial = Reduce((1, 2), keep_dims=True)
    return tuple(
        kit.Reduction(x.shape[axis], (kit.Reach(axis),), "partial_sum", partial, lambda: ending)
        for axis in (1, 2)
    )


_INT8 = replace(
    pool_form(
        "average_pool2d",
        "AVERAGE_POOL_2D",
        reference=_reference,
        select=kit.Choice(_select, arm_avgpool_s8.kernel, thimble_average_pool_s8.kernel),
        onnx=kit.OnnxBinding(("AveragePool",), read_average_pool),
        limits="int8, NHWC; padding is not counted",
    ),
    reductions=_reductions,
)
_INT16 = int16_form(_INT8, "int16, NHWC; padding is not counted", arm_avgpool_s8.kernel)
_FLOAT32 = float32_form(
    _INT8, "float32, NHWC", float_reference(mean_of), thimble_max_pool_f32.kernel
)
SPEC = kit.OpSpec((_INT8, _INT16, _FLOAT32))
