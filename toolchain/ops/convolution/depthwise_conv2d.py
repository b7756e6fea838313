"""Depthwise convolution: each channel has filters of its own. TFLite DEPTHWISE_CONV_2D, ONNX Conv.

int8 is in `depthwise_conv2d_s8`, float32 in `depthwise_conv2d_f32`. int16 images meet int8 filters
(TFLite's 16x8 scheme), with sums in int64: `reference_integer_ops::DepthwiseConvPerChannel`.
"""

from __future__ import annotations

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.convolution.common import convolution_of, window_of
from toolchain.ops.convolution.depthwise_conv2d_f32 import F32
from toolchain.ops.convolution.depthwise_conv2d_s8 import S8
from toolchain.ops.convolution.depthwise_conv2d_s8 import DepthwiseConv2D as DepthwiseConv2D
from toolchain.ops.convolution.kernels import thimble_convolve_s16
from toolchain.ops.convolution.kernels.cmsis_nn import (
    arm_depthwise_conv_fast_s16,
    arm_depthwise_conv_s16,
)
from toolchain.ops.convolution.kernels.int16 import held
from toolchain.ops.forms import OpSpec
from toolchain.ops.hybrid.convolutions import hybrid_depthwise
from toolchain.ops.kernel import Kernel
from toolchain.ops.readers.int16 import int16_form
from toolchain.ops.weighted import WEIGHTS, constant_of


def _select_s16(op: Op, graph: Graph, core: Core) -> Kernel:
    """The function that `arm_depthwise_conv_wrapper_s16` would choose; for sums that it does not
    hold, Thimble's own with groups of one channel.
    """
    weights, window = constant_of(graph.input(op, WEIGHTS)), window_of(op, graph)
    if not held(op, graph, weights.reshape(-1, weights.shape[3]).T):
        activation = convolution_of(op).activation
        return thimble_convolve_s16.depthwise(op, graph, window, activation)
    if arm_depthwise_conv_fast_s16.takes(op, graph, core, window):
        return arm_depthwise_conv_fast_s16.kernel(op, graph, core, window)
    return arm_depthwise_conv_s16.kernel(op, graph, window)


_S16 = int16_form(
    S8,
    "int16 with constant int8 weights and int64 bias; any stride, dilation, multiplier",
    _select_s16,
)

SPEC = OpSpec((S8, _S16, F32, hybrid_depthwise(F32)))
