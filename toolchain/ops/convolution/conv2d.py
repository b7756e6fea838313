"""2-D convolution. TFLite CONV_2D, ONNX Conv.

int8 is in `conv2d_s8`, float32 in `conv2d_f32`. int16 images meet int8 filters (TFLite's 16x8
scheme), with sums in int64: `reference_integer_ops::ConvPerChannel`.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution, window_of
from toolchain.ops.convolution.conv2d_f32 import F32
from toolchain.ops.convolution.conv2d_s8 import S8
from toolchain.ops.convolution.conv2d_s8 import Conv2D as Conv2D
from toolchain.ops.convolution.kernels import int16, thimble_convolve_s16
from toolchain.ops.convolution.kernels.cmsis_nn import arm_convolve_fast_s16, arm_convolve_s16
from toolchain.ops.hybrid.convolutions import hybrid_conv2d
from toolchain.ops.readers.int16 import int16_form


def _select_s16(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """CMSIS-NN's function; for groups, and for sums that it does not hold, Thimble's own."""
    thimble = _groups(op) or not int16.held(op, int16.rows_of(op))
    return (_own_s16 if thimble else _cmsis_nn_s16)(op, core)


def _groups(op: kit.AnyOperator) -> bool:
    return op.input(kit.INPUT).shape[3] != op.input(kit.WEIGHTS).shape[3]


def _cmsis_nn_s16(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """The function that `arm_convolve_wrapper_s16` would choose.

    Raises NoKernelError for groups and for sums that it does not hold.
    """
    if _groups(op):
        raise kit.NoKernelError("CMSIS-NN's convolutions have no groups")
    if not int16.held(op, int16.rows_of(op)):
        raise kit.NoKernelError("arm_convolve_s16 does not hold the sums")
    window = window_of(op)
    if arm_convolve_fast_s16.takes(op, core, window):
        return arm_convolve_fast_s16.kernel(op, window)
    return arm_convolve_s16.kernel(op)


def _own_s16(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """Thimble's kernel, which takes groups, too."""
    return thimble_convolve_s16.kernel(op, window_of(op))


_S16 = int16_form(
    S8,
    "int16 with constant int8 weights and int64 bias; any stride, dilation, groups",
    kit.Choice(_select_s16, _cmsis_nn_s16, _own_s16),
)

SPEC = kit.OpSpec((S8, _S16, F32, hybrid_conv2d(F32)))
