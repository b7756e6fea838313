"""2-D convolution. TFLite CONV_2D, ONNX Conv.

int8 is in `conv2d_s8`; float32 follows `reference_ops`. int16 images meet int8 filters (TFLite's
16x8 scheme), with sums in int64: `reference_integer_ops::ConvPerChannel`.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.conv2d_s8 import S8
from toolchain.ops.convolution.conv2d_s8 import Conv2D as Conv2D
from toolchain.ops.convolution.kernels import thimble_convolve_f32, thimble_convolve_s16
from toolchain.ops.convolution.kernels.cmsis_nn import arm_convolve_s16
from toolchain.ops.convolution.sums import float_reference
from toolchain.ops.hybrid.convolutions import hybrid_conv2d
from toolchain.ops.readers.float32 import float32_form
from toolchain.ops.readers.int16 import int16_form


def _select_s16(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """CMSIS-NN's function; for groups, and for sums that it does not hold, Thimble's own, which
    takes groups, too.
    """
    try:
        return arm_convolve_s16.kernel(op, core)
    except kit.NoKernelError:
        return thimble_convolve_s16.kernel(op, core)


_S16 = int16_form(
    S8,
    "int16 with constant int8 weights and int64 bias; any stride, dilation, groups",
    kit.Choice(_select_s16, arm_convolve_s16.kernel, thimble_convolve_s16.kernel),
)
_F32 = float32_form(
    S8,
    "float32, constant weights; any stride, dilation, groups",
    float_reference,
    thimble_convolve_f32.kernel,
)

SPEC = kit.OpSpec((S8, _S16, _F32, hybrid_conv2d(_F32)))
