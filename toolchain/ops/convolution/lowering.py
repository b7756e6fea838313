"""Kernel choice for the convolutions on each core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.arithmetic.fixed_point import Int32, check_left_shifts
from toolchain.ops.arithmetic.onnx_rounding import onnx_scaling
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.common import (
    BIAS,
    INPUT,
    UNPADDED,
    WEIGHTS,
    Padding,
    Window,
    channel_requantisation,
    constant_of,
    weight_zero_point,
)
from toolchain.ops.convolution.packing import (
    Int8,
    Scaling,
    fit_nibbles,
    largest_sums,
    pack_convolution,
    pack_convolution_s4,
    pack_depthwise,
    pack_depthwise_fours,
    pack_transposed,
    scaling,
    with_window_sums,
)
from toolchain.ops.spec import Constant, Lowering

MVE_CHANNEL_BLOCK = 124
"""CH_IN_BLOCK_MVE of arm_nnsupportfunctions.h: channels per column buffer."""
_ROWS_BY_LINES, _COLUMN_BY_LINES = 5, 8
"""From so many output rows on, 3x3 windows and columns of one pixel are quicker by lines of one
channel than by four channels (counted on a Cortex-M4)."""
_BAND_BYTES = 640
"""Depthwise scratch that is always worth its speed; a single output row may need more."""
_EDGE_OUTPUTS = 4
"""THIMBLE_EDGE_OUTPUTS of thimble_conv.h."""
_UINT16_MAX = 65535
"""CMSIS-NN's convolutions hold dimensions in uint16."""


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def bias_of(op: Op, graph: Graph, channels: int) -> Int32:
    """The bias, or zeros where the operator has none."""
    if len(op.inputs) > BIAS and op.inputs[BIAS]:
        return constant_of(graph.input(op, BIAS)).reshape(-1).astype(np.int32)
    return np.zeros(channels, dtype=np.int32)


def conv2d_kernel(op: Op, graph: Graph, core: Core, window: Window, rounding: Rounding) -> str:
    """Helium: the CMSIS-NN function that its wrapper would choose, where its preconditions hold.

    Elsewhere, and for groups, Thimble's own kernels.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    depth = weights.shape[3]
    pointwise = window.kernel == (1, 1) and window.padding == UNPADDED
    fits = max(*x.shape, *weights.shape, *y.shape) <= _UINT16_MAX
    own = not core.mve or rounding is not Rounding.TFLITE or weight_zero_point(weights) != 0
    if own or depth != x.shape[3] or not fits:
        whole = depth % 4 == 0 and depth == x.shape[3] and weight_zero_point(weights) == 0
        if _four_bits_pay(x, weights, rounding):
            return "thimble_convolve_s4"
        if pointwise and window.stride == (1, 1) and whole:
            return "thimble_convolve_1x1_s8"
        runs = window.kernel[1] == 1 or window.dilation[1] == 1
        words = depth == x.shape[3] and window.kernel[1] * depth % 4 == 0 and x.shape[0] == 1
        inside = window.padding == UNPADDED and weight_zero_point(weights) == 0
        if runs and words and inside:
            return "thimble_convolve_inside_s8"
        return "thimble_convolve_s8"
    if pointwise:
        return "arm_convolve_1x1_s8_fast" if window.stride == (1, 1) else "arm_convolve_1x1_s8"
    return "arm_convolve_1_x_n_s8" if _is_one_by_n(x, y, window) else "arm_convolve_s8"


def lower_conv2d(
    op: Op,
    graph: Graph,
    core: Core,
    window: Window,
    activation: Activation,
    rounding: Rounding = Rounding.TFLITE,
) -> Lowering:
    """The call of `conv2d_kernel`. Scratch on Helium as
    `arm_convolve_wrapper_s8_get_buffer_size_mve` gives it.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    channels, height, width, depth = weights.shape
    function = conv2d_kernel(op, graph, core, window, rounding)
    if function == "thimble_convolve_s4":
        return _four_bit_conv2d(op, graph, window, activation)
    if function.startswith("thimble"):
        filters = constant_of(weights).astype(np.int8)
        return _own_conv2d(op, graph, function, window, activation, rounding, filters)
    taps = height * width * depth
    scratch = 4 * round_up(taps, 8) if function == "arm_convolve_s8" else 0
    multiplier, shift = channel_requantisation(x, weights, y, channels)
    rows = constant_of(weights).astype(np.int8).reshape(channels, -1)
    check_left_shifts(largest_sums(bias_of(op, graph, channels), rows, x.q.zero_point), shift)
    return Lowering(
        functions=(function,),
        scratch_bytes=scratch,
        constants=(
            Constant("multiplier", multiplier, "requantisation factor of each channel, Q0.31"),
            Constant("shift", shift, "left shift of each channel"),
        ),
        fields=_fields(op, graph, window, activation)
        | {"function": function, "scratch_bytes": scratch},
    )


_FOUR_BIT_TAPS = 48


def _four_bits_pay(x: Tensor, weights: Tensor, rounding: Rounding) -> bool:
    """Whether packing weights in four bits is possible, and takes less flash.

    Few taps save little of it, and take twice the instructions.
    """
    taps = weights.elements // weights.shape[0]
    if rounding is not Rounding.TFLITE or weight_zero_point(weights) or taps < _FOUR_BIT_TAPS:
        return False
    channels = weights.shape[0] * weights.shape[3] // x.shape[3]  # of a group
    packed = -(-channels // 4) * (9 + 4 * -(-taps // 8))
    unpacked = -(-channels // 2) * (5 + 2 * -(-taps // 4))
    return packed < unpacked and fit_nibbles(constant_of(weights).astype(np.int8))


def _four_bit_conv2d(op: Op, graph: Graph, window: Window, activation: Activation) -> Lowering:
    filters = constant_of(graph.input(op, WEIGHTS)).astype(np.int8)
    channels, height, width, depth = filters.shape
    scales = _scaling(op, graph, activation, Rounding.TFLITE, filters.reshape(channels, -1))
    packed = pack_convolution_s4(scales, graph.input(op, INPUT).shape[3] // depth)
    return Lowering(
        functions=("thimble_convolve_s4",),
        scratch_bytes=round_up(height * width * depth, 4),
        constants=(Constant("parameters", packed, "biases, filters of four bits, requantisation"),),
        fields=_fields(op, graph, window, activation)
        | {"function": "thimble_convolve_s4", "depth": depth},
    )


def _own_conv2d(
    op: Op,
    graph: Graph,
    function: str,
    window: Window,
    activation: Activation,
    rounding: Rounding,
    filters: Int8,
) -> Lowering:
    """Thimble's kernel for `filters` [channels, height, width, depth]."""
    x = graph.input(op, INPUT)
    channels, height, width, depth = filters.shape
    taps = round_up(height * width * depth, 4)
    scales = _scaling(op, graph, activation, rounding, filters.reshape(channels, -1))
    zero_point = weight_zero_point(graph.input(op, WEIGHTS))
    scales = replace(scales, filters=with_window_sums(scales.filters, zero_point))
    packed = pack_convolution(scales, x.shape[3] // depth)
    return Lowering(
        functions=(function,),
        scratch_bytes=column_bytes((height, width), depth)
        + 4 * (round_up(scales.filters.shape[1], 4) - taps),
        constants=(Constant("parameters", packed, "biases, filters and requantisation"),),
        fields=_fields(op, graph, window, activation) | {"function": function, "depth": depth},
    )


def column_bytes(kernel: tuple[int, int], depth: int) -> int:
    """Scratch of `thimble_convolve_s8`: two columns of taps, and room to gather pixels that are not
    whole words."""
    taps, row = round_up(kernel[0] * kernel[1] * depth, 4), kernel[1] * depth
    if depth % 4 == 0:
        return 4 * taps
    return 4 * taps + (row if row % 4 == 0 else taps + 4)


def pitched_image(op: Op, graph: Graph, function: str) -> frozenset[str]:
    """Input and output, where this kernel bears that the lines of an image lie apart.

    The kernels of other element types do not.
    """
    if graph.input(op, INPUT).dtype is not DType.INT8:
        return frozenset()
    if not function.startswith("thimble") or graph.input(op, INPUT).shape[0] != 1:
        return frozenset()
    return frozenset((op.inputs[INPUT], op.outputs[0]))


def depthwise_kernel(op: Op, graph: Graph, core: Core, window: Window, rounding: Rounding) -> str:
    """Helium: `arm_depthwise_conv_s8_opt` where its preconditions hold; elsewhere Thimble's own.

    One input channel is an ordinary convolution, whose kernel is quicker. Four channels at a time
    read the image itself; other numbers of channels go one by one, by lines of one channel, and so
    do many rows of small windows, where lines serve several outputs.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    channels = weights.shape[3]
    simple = channels == x.shape[3] and x.shape[0] == 1 and window.dilation == (1, 1)
    own = not core.mve or rounding is not Rounding.TFLITE or weight_zero_point(weights) != 0
    if own or not simple or window.kernel[0] * window.kernel[1] > _UINT16_MAX:
        if x.shape[3] == 1:
            return "thimble_convolve_s8"
        fours = channels == x.shape[3] and channels % 4 == 0 and weight_zero_point(weights) == 0
        lines = window.stride == window.dilation == (1, 1) and (
            (window.kernel == (3, 3) and y.shape[1] >= _ROWS_BY_LINES)
            or (y.shape[2] == 1 and y.shape[1] >= _COLUMN_BY_LINES)
        )
        by_fours = fours and not lines
        return "thimble_depthwise_conv_fours_s8" if by_fours else "thimble_depthwise_conv_s8"
    return "arm_depthwise_conv_s8_opt"


def walks_columns(output: Sequence[int], window: Window) -> bool:
    """Whether the own depthwise kernel gets the image `turned`, so that its rows are the longer."""
    return (output[1], window.kernel[0]) > (output[2], window.kernel[1])


def lower_depthwise_conv2d(
    op: Op,
    graph: Graph,
    core: Core,
    window: Window,
    activation: Activation,
    rounding: Rounding = Rounding.TFLITE,
) -> Lowering:
    """The call of `depthwise_kernel`.

    The Helium kernel reads four channels at a time beyond the last and steps from a null bias: its
    arrays are padded. Scratch as `arm_depthwise_conv_wrapper_s8_get_buffer_size_mve` gives it.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    channels, (height, width) = weights.shape[3], window.kernel
    function = depthwise_kernel(op, graph, core, window, rounding)
    if function == "thimble_convolve_s8":
        per_channel = constant_of(weights).transpose(3, 1, 2, 0).astype(np.int8)
        return _own_conv2d(op, graph, function, window, activation, rounding, per_channel)
    if function == "thimble_depthwise_conv_fours_s8":
        return _fours_depthwise(op, graph, window, activation, rounding)
    if function == "thimble_depthwise_conv_s8":
        return _own_depthwise(op, graph, window, activation, rounding)
    multiplier, shift = channel_requantisation(x, weights, y, channels)
    bias, filters = bias_of(op, graph, channels), constant_of(weights).reshape(-1)
    rows = filters.astype(np.int8).reshape(-1, channels).T
    check_left_shifts(largest_sums(bias, rows, x.q.zero_point), shift)
    scratch = 4 * MVE_CHANNEL_BLOCK * height * width
    extra = round_up(channels, 4) - channels
    return Lowering(
        functions=(function,),
        scratch_bytes=scratch,
        constants=(
            Constant("weights", np.pad(filters, (0, extra)), "filters, height x width x channels"),
            Constant("bias", np.pad(bias, (0, extra))),
            Constant(
                "multiplier",
                np.pad(multiplier, (0, extra)),
                "requantisation factor of each channel, Q0.31",
            ),
            Constant("shift", np.pad(shift, (0, extra)), "left shift of each channel"),
        ),
        fields=_fields(op, graph, window, activation)
        | {"function": function, "scratch_bytes": scratch},
    )


def waiting_rows(rows: int, window: Window) -> int:
    """How many of `rows` rows the depthwise kernel for four channels keeps before it writes the
    first: then nobody reads what an output in place of the input overwrites."""
    return min(rows, -(-(window.padding.top + 1) // window.stride[0]))


def _fours_depthwise(
    op: Op, graph: Graph, window: Window, activation: Activation, rounding: Rounding
) -> Lowering:
    weights, y = graph.input(op, WEIGHTS), graph.output(op)
    _, height, width, channels = weights.shape
    filters = constant_of(weights).reshape(-1, channels).T.astype(np.int8)
    band = waiting_rows(y.shape[1], window)
    seen = (min(y.shape[2], _EDGE_OUTPUTS) - 1) * window.stride[1] + window.extent[1]
    packed = pack_depthwise_fours(_scaling(op, graph, activation, rounding, filters))
    return Lowering(
        functions=("thimble_depthwise_conv_fours_s8",),
        scratch_bytes=64 + 8 * height * width + 4 * height * seen + 4 * band * y.shape[2],
        constants=(Constant("parameters", packed, "biases, requantisation and filters"),),
        fields=_fields(op, graph, window, activation)
        | {
            "function": "thimble_depthwise_conv_fours_s8",
            "depth": 1,
            "turned": 0,
            "band": band,
        },
    )


def _own_depthwise(
    op: Op, graph: Graph, window: Window, activation: Activation, rounding: Rounding
) -> Lowering:
    weights, y = graph.input(op, WEIGHTS), graph.output(op)
    _, height, width, channels = weights.shape
    filters = constant_of(weights).reshape(-1, channels).T.astype(np.int8)
    fields = _fields(op, graph, window, activation)
    turned = walks_columns(y.shape, window)
    if turned:
        fields, window = _turned(fields), turned_window(window)
        filters = filters.reshape(channels, height, width).transpose(0, 2, 1).reshape(channels, -1)
    _, rows, columns, _ = fields["output"]
    band = depthwise_band(window, rows, columns)
    packed = pack_depthwise(_scaling(op, graph, activation, rounding, filters))
    return Lowering(
        functions=("thimble_depthwise_conv_s8",),
        scratch_bytes=_depthwise_scratch_bytes(window, columns, band),
        constants=(Constant("parameters", packed, "biases, requantisation and filters"),),
        fields=fields
        | {
            "function": "thimble_depthwise_conv_s8",
            "depth": 1,
            "turned": int(turned),
            "band": band,
        },
    )


def depthwise_band(window: Window, rows: int, columns: int) -> int:
    """Output rows that the own depthwise kernel computes at a time."""
    one, two = (_depthwise_scratch_bytes(window, columns, band) for band in (1, 2))
    return max(min(1 + (_BAND_BYTES - one) // (two - one), rows), 1)


def depthwise_line(window: Window, columns: int) -> int:
    """int16 values of an image line of the own depthwise kernel, as `thimble_conv.h` has it."""
    is_3x3 = window.kernel == (3, 3) and window.dilation == (1, 1)
    outputs = round_up(columns, 4) if window.stride[1] == 1 and not is_3x3 else columns
    return round_up((outputs - 1) * window.stride[1] + window.extent[1], 2) + 2


def _depthwise_scratch_bytes(window: Window, columns: int, band: int) -> int:
    """As `thimble_depthwise_conv_s8` says in its header."""
    lines = (band - 1) * window.stride[0] + window.extent[0]
    taps = 4 * window.kernel[0] * (window.kernel[1] // 2 + 1)
    return 2 * (lines * depthwise_line(window, columns) + taps) + 4 * (band * columns + 1)


def _turned(fields: dict[str, Any]) -> dict[str, Any]:
    """Height and width swapped: the kernel walks rows, and long ones are quicker."""
    turned = dict(fields)
    for name in ("kernel", "stride", "dilation"):
        turned[name] = tuple(reversed(fields[name]))
    for name in ("input", "output"):
        batches, height, width, channels = fields[name]
        turned[name] = (batches, width, height, channels)
    turned["padding"] = _turned_padding(fields["padding"])
    return turned


def _turned_padding(pad: Padding) -> Padding:
    return Padding(pad.left, pad.top, pad.right, pad.bottom)


def turned_window(window: Window) -> Window:
    (kernel_h, kernel_w), (stride_h, stride_w) = window.kernel, window.stride
    dilation_h, dilation_w = window.dilation
    return Window(
        (kernel_w, kernel_h),
        (stride_w, stride_h),
        (dilation_w, dilation_h),
        _turned_padding(window.padding),
    )


def lower_transpose_conv2d(
    op: Op,
    graph: Graph,
    stride: tuple[int, int],
    padding: Padding,
    activation: Activation,
    rounding: Rounding = Rounding.TFLITE,
) -> Lowering:
    """Thimble's own kernel: CMSIS-NN's needs an int32 for every tap of every pixel."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    channels, height, width, depth = weights.shape
    window = Window((height, width), stride, (1, 1), padding)
    filters = constant_of(weights).reshape(channels, -1).astype(np.int8)
    scales = _scaling(op, graph, activation, rounding, filters, partial=True)
    seen = -(-height // stride[0]) * -(-width // stride[1])
    return Lowering(
        functions=("thimble_transpose_conv_s8",),
        scratch_bytes=seen * (2 * round_up(depth, 4) + 4),
        constants=(
            Constant(
                "parameters",
                pack_transposed(scales, height * width),
                "biases, requantisation and filters",
            ),
        ),
        fields=_fields(op, graph, window, activation)
        | {"function": "thimble_transpose_conv_s8", "depth": x.shape[3]},
    )


def _scaling(
    op: Op,
    graph: Graph,
    activation: Activation,
    rounding: Rounding,
    filters: Int8,
    *,
    partial: bool = False,
) -> Scaling:
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    channels = filters.shape[0]
    if rounding is Rounding.ONNX:
        bias, zero_point = bias_of(op, graph, channels), weight_zero_point(weights)
        return onnx_scaling(x, weights, y, filters, bias, partial, zero_point)
    return scaling(
        bias_of(op, graph, channels),
        filters,
        x.q.zero_point,
        *channel_requantisation(x, weights, y, channels),
        clamp_range(activation, y),
        y.q.zero_point,
        partial,
        weight_zero_point(weights),
    )


def _is_one_by_n(x: Tensor, y: Tensor, window: Window) -> bool:
    """Whether the Helium 1xN kernel applies: one row, and no padding at either end."""
    total = (y.shape[2] - 1) * window.stride[1] + window.kernel[1] - x.shape[2]
    return (
        x.shape[1] == 1
        and window.kernel[0] == 1
        and window.dilation[1] == 1
        and (window.stride[1] * x.shape[3]) % 4 == 0
        and window.padding == UNPADDED
        and total == 0
    )


def _fields(op: Op, graph: Graph, window: Window, activation: Activation) -> dict[str, Any]:
    x, y = graph.input(op, INPUT), graph.output(op)
    low, high = clamp_range(activation, y)
    return {
        "weight_zero_point": weight_zero_point(graph.input(op, WEIGHTS)),
        "input": x.shape,
        "output": y.shape,
        "kernel": window.kernel,
        "stride": window.stride,
        "dilation": window.dilation,
        "padding": window.padding,
        "input_offset": -x.q.zero_point,
        "output_offset": y.q.zero_point,
        "activation_min": low,
        "activation_max": high,
    }
