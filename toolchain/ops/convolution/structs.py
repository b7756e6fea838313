"""The structs that convolution kernels take as arguments, by the names of their C members."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.arithmetic.requant import requant as ending
from toolchain.ops.cmsis_structs import context, dims, limits, tile
from toolchain.ops.convolution.common import weight_zero_point
from toolchain.ops.weighted import INPUT, WEIGHTS
from toolchain.ops.window import Padding, Window

Shape = tuple[int, ...]


def conv_shape(
    op: kit.AnyOperator,
    window: Window,
    depth: int,
    *,
    lines: tuple[int, int] = (0, 0),
    band: int = 0,
    at_once: int = 0,
    transposed: bool = False,
) -> kit.Struct:
    """A `thimble_conv_shape` (`runtime_c/include/thimble_conv.h`).

    `depth` is the number of input channels that a filter reads. `lines` are the bytes from row to
    row of input and output, for strided views. `band` is the number of output rows that a depthwise
    kernel computes at a time, or of tiles that Winograd's does, `at_once` that of windows that an
    ordinary one expands together, or of channels whose lines a depthwise one makes together. If
    `transposed`, height and width are swapped, in `window` too.
    """
    x, y = op.input(INPUT), op.y
    rows, columns = (2, 1) if transposed else (1, 2)
    members: dict[str, kit.Argument] = {
        "batches": x.shape[0],
        "input_h": x.shape[rows],
        "input_w": x.shape[columns],
        "input_c": x.shape[3],
        "output_h": y.shape[rows],
        "output_w": y.shape[columns],
        "output_c": y.shape[3],
        "depth": depth,
        "kernel_h": window.kernel[0],
        "kernel_w": window.kernel[1],
        "stride_h": window.stride[0],
        "stride_w": window.stride[1],
        "dilation_h": window.dilation[0],
        "dilation_w": window.dilation[1],
        "pad_top": window.padding.top,
        "pad_left": window.padding.left,
        "input_zero_point": x.q.zero_point,
    }
    optional = {
        "weight_zero_point": weight_zero_point(op.input(WEIGHTS)),
        "transposed": int(transposed),
        "band": band,
        "at_once": at_once,
        "input_line": lines[0],
        "output_line": lines[1],
    }
    shown = {name: value for name, value in optional.items() if value}
    return kit.Struct("thimble_conv_shape", {**members, **shown})


def requant(y: kit.Tensor, activation: Activation) -> kit.Struct:
    """A `thimble_requant`: the output's zero point, and the range that results are clamped to."""
    return ending(y.q.zero_point, *clamp_range(activation, y))


def own_arguments(shape: kit.Struct, requantised: kit.Struct) -> dict[str, kit.Argument]:
    """The arguments of Thimble's int8 convolutions."""
    return {
        "shape": shape,
        "requant": requantised,
        "input": kit.Input(0),
        "parameters": kit.Packed("parameters"),
        "scratch": kit.Scratch(),
        "output": kit.Output(0),
    }


def cmsis_arguments(
    op: kit.AnyOperator,
    window: Window,
    activation: Activation,
    scratch_bytes: int,
    *,
    filters: tuple[Shape, kit.Argument],
    bias: kit.Argument,
    multiplicity: int = 0,
) -> dict[str, kit.Argument]:
    """The arguments of CMSIS-NN's convolutions, int8 and int16.

    `filters` gives the filters' dimensions and where they lie. For a depthwise convolution
    `multiplicity` is the number of filters of each input channel.
    """
    x, y = op.input(INPUT), op.y
    low, high = clamp_range(activation, y)
    depthwise = {"ch_mult": multiplicity} if multiplicity else {}
    name = "dw_conv_params" if multiplicity else "conv_params"
    params: dict[str, kit.Argument] = {
        "input_offset": -x.q.zero_point,
        "output_offset": y.q.zero_point,
        **depthwise,
        "stride": tile(*window.stride),
        "padding": tile(window.padding.top, window.padding.left),
        "dilation": tile(*window.dilation),
        "activation": limits(low, high),
    }
    factors: dict[str, kit.Argument] = {
        "multiplier": kit.Packed("multiplier", writable=True),
        "shift": kit.Packed("shift", writable=True),
    }
    shape, weights = filters
    return {
        "ctx": context(scratch_bytes),
        name: kit.Struct(f"cmsis_nn_{name}", params),
        "quant_params": kit.Struct("cmsis_nn_per_channel_quant_params", factors),
        "input_dims": dims(*x.shape),
        "input_data": kit.Input(0),
        "filter_dims": dims(*shape),
        "filter_data": weights,
        "bias_dims": dims(c=y.shape[3]),
        "bias_data": bias,
        "output_dims": dims(*y.shape),
        "output_data": kit.Output(0),
    }


def transposed_window(window: Window) -> Window:
    """The same window over the transposed image: height and width are swapped."""
    (kernel_h, kernel_w), (stride_h, stride_w) = window.kernel, window.stride
    (dilation_h, dilation_w), pad = window.dilation, window.padding
    return Window(
        (kernel_w, kernel_h),
        (stride_w, stride_h),
        (dilation_w, dilation_h),
        Padding(pad.left, pad.top, pad.right, pad.bottom),
    )
