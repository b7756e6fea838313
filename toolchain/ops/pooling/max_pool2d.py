"""Maximum over windows.

TFLite MAX_POOL_2D: of int8 and int16 `reference_integer_ops::MaxPool`, of float32
`reference_ops::MaxPool`.
"""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.pooling.common import Pool2D, float_reference, pool_form, windows
from toolchain.ops.pooling.kernels import thimble_max_pool_f32, thimble_max_pool_s8
from toolchain.ops.pooling.kernels.cmsis_nn import arm_max_pool_s8
from toolchain.ops.readers.float32 import extreme, float32_form
from toolchain.ops.readers.int16 import int16_form
from toolchain.ops.readers.onnx_pooling import read_max_pool


def _reference(op: kit.Operator[Pool2D], inputs: kit.Inputs) -> kit.Arrays:
    y = op.y
    result = np.empty(y.shape, y.dtype.numpy)
    for row, column, part in windows(op, inputs[0]):
        result[:, row, column] = part.max(axis=(1, 2))
    low, high = kit.clamp_range(op.attributes.activation, y)
    return (np.clip(result, low, high).astype(y.dtype.numpy),)


def _select(op: kit.Operator[Pool2D], core: kit.Core) -> kit.Kernel:
    """CMSIS-NN's kernel on Helium. Elsewhere CMSIS-NN compares single bytes; Thimble's compares
    words.
    """
    chosen = arm_max_pool_s8.kernel if core.mve else thimble_max_pool_s8.kernel
    return chosen(op, core)


_INT8 = pool_form(
    "max_pool2d",
    "MAX_POOL_2D",
    reference=_reference,
    select=kit.Choice(_select, arm_max_pool_s8.kernel, thimble_max_pool_s8.kernel),
    onnx=kit.OnnxBinding(("MaxPool", "GlobalMaxPool"), read_max_pool),
)
_INT16 = int16_form(_INT8, "int16, NHWC", arm_max_pool_s8.kernel)
_FLOAT32 = float32_form(
    _INT8, "float32, NHWC", float_reference(extreme), thimble_max_pool_f32.kernel
)
SPEC = kit.OpSpec((_INT8, _INT16, _FLOAT32))
