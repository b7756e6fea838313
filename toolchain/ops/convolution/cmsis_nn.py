"""CMSIS-NN's int8 convolutions: which function takes an operator, its scratch and constants.

The functions are those that `arm_convolve_wrapper_s8` and `arm_depthwise_conv_wrapper_s8` would
choose on the core, except where these read beyond the image or refuse the operator (5.0.0).
"""

from __future__ import annotations

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.arithmetic.fixed_point import check_sums
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.cmsis_structs import context, dims, limits, tile
from toolchain.ops.convolution import cmsis_terms, extents, overlaps
from toolchain.ops.convolution.common import (
    INPUT,
    WEIGHTS,
    bias_of,
    channel_requantisation,
    constant_of,
    convolution_of,
    weight_zero_point,
    window_of,
)
from toolchain.ops.convolution.packing import Int8, sums_of
from toolchain.ops.convolution.structs import cmsis_arguments
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Output,
    Packed,
    Struct,
    constant,
)
from toolchain.ops.preference import NoKernelError, require_int32
from toolchain.ops.window import UNPADDED, Window

_UINT16_MAX = 65535
"""The largest dimension that CMSIS-NN's convolutions hold, in uint16."""
_INT16_MAX = 32767
"""The largest coordinate that its depthwise convolutions hold, in int16."""
_PLAIN = (1, 1)


def conv2d(op: Op, graph: Graph, core: Core) -> Kernel:
    """The function that `arm_convolve_wrapper_s8` would choose.

    Raises NoKernelError for groups, weights with a zero point, and ONNX's rounding.
    """
    _require_plain(op, graph)
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    window, (channels, height, width, depth) = window_of(op, graph), weights.shape
    if depth != x.shape[3]:
        raise NoKernelError("CMSIS-NN's convolutions have no groups")
    if max(*x.shape, *weights.shape, *graph.output(op).shape) > _UINT16_MAX:
        raise NoKernelError(f"CMSIS-NN's convolutions take no dimension above {_UINT16_MAX:,}")
    function = _conv2d_function(op, graph, window, core)
    scratch = extents.cmsis_column_bytes(function, height * width * depth, core)
    arguments = cmsis_arguments(
        op,
        graph,
        window,
        convolution_of(op).activation,
        scratch,
        filters=((channels, height, width, x.shape[3]), Input(1)),
        bias=Input(2),
    )
    rows = constant_of(weights).astype(np.int8, copy=False).reshape(channels, -1)
    vectors, loops = overlaps.helium_conv_overlaps, cmsis_terms.conv_terms
    return Kernel(
        (Call(function, arguments, status=True),),
        lambda touched: extents.cmsis_conv(touched, core),
        constants=_channel_factors(op, graph, rows),
        scratch_bytes=scratch,
        find_overlaps=lambda: vectors(op, graph, function, window) if core.mve else (),
        find_terms=lambda: loops(op, graph, function, window, depth, core),
    )


def _conv2d_function(op: Op, graph: Graph, window: Window, core: Core) -> str:
    if window.kernel == _PLAIN and window.padding == UNPADDED and window.dilation == _PLAIN:
        return "arm_convolve_1x1_s8_fast" if window.stride == _PLAIN else "arm_convolve_1x1_s8"
    if core.mve and _is_one_by_n(op, graph, window):
        return "arm_convolve_1_x_n_s8"
    return "arm_convolve_s8"


def _is_one_by_n(op: Op, graph: Graph, window: Window) -> bool:
    """Whether the Helium 1xN kernel applies: one row, and no padding at either end, which 5.0.0
    refuses or computes wrongly for some sizes."""
    x, y = graph.input(op, INPUT), graph.output(op)
    total = (y.shape[2] - 1) * window.stride[1] + window.kernel[1] - x.shape[2]
    return (
        x.shape[1] == 1
        and window.kernel[0] == 1
        and window.dilation[1] == 1
        and (window.stride[1] * x.shape[3]) % 4 == 0
        and window.padding == UNPADDED
        and total == 0
    )


def depthwise(op: Op, graph: Graph, core: Core) -> Kernel:
    """The function that `arm_depthwise_conv_wrapper_s8` would choose.

    Raises NoKernelError for weights with a zero point and ONNX's rounding.
    """
    _require_plain(op, graph)
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    window, channels = window_of(op, graph), weights.shape[3]
    if max(*x.shape, *weights.shape, *graph.output(op).shape) > _INT16_MAX:
        raise NoKernelError(f"CMSIS-NN's depthwise convolutions count to {_INT16_MAX:,}")
    simple = channels == x.shape[3] and x.shape[0] == 1 and window.dilation == _PLAIN
    few = window.kernel[0] * window.kernel[1] <= _UINT16_MAX
    if simple and few and core.mve:
        return blocked_depthwise(op, graph, core)
    if simple and _is_3x3(op, graph, window):
        return _depthwise(op, graph, core, "arm_depthwise_conv_3x3_s8", window)
    if simple and few and core.dsp and _touches_image(op, graph, window):
        return _depthwise(op, graph, core, "arm_depthwise_conv_s8_opt", window)
    return _depthwise(op, graph, core, "arm_depthwise_conv_s8", window)


def blocked_depthwise(op: Op, graph: Graph, core: Core) -> Kernel:
    """`arm_depthwise_conv_s8_opt` on Helium: four channels at a time.

    It reads beyond the last channel and steps from a null bias: its arrays are padded. Raises
    NoKernelError where the function does not take the operator.
    """
    _require_plain(op, graph)
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    window, channels = window_of(op, graph), weights.shape[3]
    if channels != x.shape[3] or x.shape[0] != 1 or window.dilation != _PLAIN:
        raise NoKernelError("it takes one image, one filter a channel and no dilation")
    if window.kernel[0] * window.kernel[1] > _UINT16_MAX:
        raise NoKernelError(f"it counts the taps of a window to {_UINT16_MAX:,}")
    function = "arm_depthwise_conv_s8_opt"
    return _depthwise(op, graph, core, function, window, spare=-channels % 4)


def _is_3x3(op: Op, graph: Graph, window: Window) -> bool:
    """Whether the kernel for 3x3 windows applies: it reads the middle column of every window."""
    x, y, pad = graph.input(op, INPUT), graph.output(op), window.padding
    middle = (y.shape[2] - 1) * window.stride[1] - pad.left + 1
    return window.kernel == (3, 3) and max(pad.top, pad.left) <= 1 and middle < x.shape[2]


def _touches_image(op: Op, graph: Graph, window: Window) -> bool:
    """Whether no window lies above or below the image, for which the kernel clears more scratch
    than it has."""
    x, y, top = graph.input(op, INPUT), graph.output(op), window.padding.top
    last = (y.shape[1] - 1) * window.stride[0] - top
    return top <= window.kernel[0] and last <= x.shape[1]


def _depthwise(
    op: Op, graph: Graph, core: Core, function: str, window: Window, spare: int = 0
) -> Kernel:
    """A call of `function`. `spare`: channels that it reads beyond the last."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    _, height, width, channels = weights.shape
    scratch = extents.cmsis_window_bytes(function, channels * height * width, channels, core)
    arguments = cmsis_arguments(
        op,
        graph,
        window,
        convolution_of(op).activation,
        scratch,
        filters=(weights.shape, Packed("weights")),
        bias=Packed("bias"),
        multiplicity=channels // x.shape[3],
    )
    filters = constant_of(weights).reshape(-1).astype(np.int8, copy=False)
    rows = filters.reshape(-1, channels).T
    vectors, loops = overlaps.helium_depthwise_overlaps, cmsis_terms.depthwise_terms
    blocks = core.mve and function == "arm_depthwise_conv_s8_opt"
    return Kernel(
        (Call(function, arguments, status=True),),
        lambda touched: extents.cmsis_depthwise(touched, core),
        constants=(
            constant("weights", np.pad(filters, (0, spare)), "filters, height x width x channels"),
            constant("bias", np.pad(bias_of(op, graph, channels), (0, spare))),
            *_channel_factors(op, graph, rows, spare),
        ),
        scratch_bytes=scratch,
        find_overlaps=lambda: vectors(op, graph, window) if blocks else (),
        find_terms=lambda: loops(op, graph, function, window, core),
    )


def transpose_conv2d(op: Op, graph: Graph, window: Window, activation: Activation) -> Kernel:
    """`arm_transpose_conv_s8` of 5.0.0, which keeps an int32 for each tap of each pixel of the
    input, and one for each element of the output.

    It walks as many windows as fit into the output and the padding; the offsets of the padding make
    them as many as the input has pixels. `window` is the forward convolution's. Raises
    NoKernelError for ONNX's rounding.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    channels, height, width, depth = weights.shape
    if max(*x.shape, *weights.shape, *y.shape) > _UINT16_MAX:
        raise NoKernelError(f"CMSIS-NN's convolutions take no dimension above {_UINT16_MAX:,}")
    column, image = extents.transposed_scratch(x.shape, y.shape, (height, width))
    stride, pad = window.stride, (window.padding.top, window.padding.left)
    beyond = [
        (x.shape[1 + i] - 1) * stride[i] + window.kernel[i] - pad[i] - y.shape[1 + i]
        for i in range(2)
    ]
    params: dict[str, Argument] = {
        "input_offset": -x.q.zero_point,
        "output_offset": y.q.zero_point,
        "stride": tile(*stride),
        "padding": tile(*pad),
        "padding_offsets": tile(*beyond),
        "dilation": tile(1, 1),
        "activation": limits(*clamp_range(activation, y)),
    }
    factors: dict[str, Argument] = {
        "multiplier": Packed("multiplier", writable=True),
        "shift": Packed("shift", writable=True),
    }
    arguments: dict[str, Argument] = {
        "ctx": context(column),
        "output_ctx": context(image, column),
        "transpose_conv_params": Struct("cmsis_nn_transpose_conv_params", params),
        "quant_params": Struct("cmsis_nn_per_channel_quant_params", factors),
        "input_dims": dims(*x.shape),
        "input_data": Input(0),
        "filter_dims": dims(channels, height, width, depth),
        "filter_data": Input(1),
        "bias_dims": dims(c=channels),
        "bias_data": Input(2),
        "output_dims": dims(*y.shape),
        "output_data": Output(0),
    }
    rows = constant_of(weights).astype(np.int8, copy=False).reshape(channels, -1)
    return Kernel(
        (Call("arm_transpose_conv_s8", arguments, status=True),),
        extents.cmsis_transposed,
        constants=_channel_factors(op, graph, rows),
        scratch_bytes=column + image,
    )


def _require_plain(op: Op, graph: Graph) -> None:
    if convolution_of(op).rounding is not Rounding.TFLITE:
        raise NoKernelError("CMSIS-NN rounds as TFLite does, not once as ONNX Runtime")
    if weight_zero_point(graph.input(op, WEIGHTS)):
        raise NoKernelError("CMSIS-NN's convolutions know no zero point of weights")


def _channel_factors(op: Op, graph: Graph, rows: Int8, spare: int = 0) -> tuple[Constant, ...]:
    """Multiplier and shift of each channel, whose filters are `rows`; then `spare` more of 0.

    Raises ScaleError as `check_sums` does, and NoKernelError as `require_int32` does.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    multiplier, shift = channel_requantisation(x, weights, y, len(rows))
    sums = sums_of(bias_of(op, graph, len(rows)), rows, x.q.zero_point, partial=True)
    check_sums(sums.lowest, sums.highest, multiplier, shift, y.q.zero_point)
    require_int32(sums.largest)
    wanted = "requantisation factor of each channel, Q0.31"
    return (
        constant("multiplier", np.pad(multiplier, (0, spare)), wanted),
        constant("shift", np.pad(shift, (0, spare)), "left shift of each channel"),
    )
