"""Extents of the kernels that multiply and add: convolutions, pools, matrix products.

Sizes of packed weights and of scratch are those that the headers in `runtime_c/include` state; for
CMSIS-NN's kernels what its `get_buffer_size` functions give.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from toolchain.ops.extents import (
    Arguments,
    Extent,
    ExtentRule,
    Extents,
    round_up,
    whole,
    widths,
    window_reach,
)

_SUMMED_TAPS = 252
"""THIMBLE_SUMMED_TAPS of thimble_conv.h."""
_EDGE_OUTPUTS = 4
"""THIMBLE_EDGE_OUTPUTS of thimble_conv.h."""
_MVE_CHANNEL_BLOCK = 124
"""CH_IN_BLOCK_MVE of arm_nnsupportfunctions.h."""


def _image(shape: tuple[int, ...], width: int = 1, line: int = 0, turned: int = 0) -> Extent:
    """An NHWC image of elements of `width` bytes; `line`: bytes from line to line, if apart."""
    batches, height, columns, channels = shape
    if turned:
        height, columns = columns, height
    if not line:
        return whole(math.prod(shape), width)
    return Extent(0, columns * channels * width, line, batches * height)


def _reach(f: Any) -> int:
    """The largest coordinate of a window over `f.input`; and the largest byte offset of a row."""
    kernel = f.kernel if hasattr(f, "kernel") else f.filter[1:3]
    pads = (f.padding.top, f.padding.left)
    sizes = zip(f.output[1:3], f.stride, kernel, f.dilation, pads, strict=True)
    return window_reach((int(o), int(s), int(k), int(d), int(p)) for o, s, k, d, p in sizes)


def _weighted_taps(f: Any) -> int:
    """Bytes of a filter: whole words, and the factors of the lanes that hold window sums."""
    taps = round_up(f.kernel[0] * f.kernel[1] * f.depth, 4)
    lanes = -(-taps // (4 * _SUMMED_TAPS)) if getattr(f, "weight_zero_point", 0) else 0
    return taps + 4 * lanes


def _column_scratch(f: Any, taps: int) -> int:
    """Two columns of `taps` int16; room to gather pixels that are not whole words."""
    row = f.kernel[1] * f.depth
    if f.depth % 4 == 0:
        return 4 * taps
    return 4 * taps + (row if row % 4 == 0 else round_up(f.kernel[0] * row, 4) + 4)


def _grouped(f: Any) -> tuple[int, int]:
    """Groups, and the output channels of one; 0 where there is no such group."""
    groups: int = f.input[3] // f.depth if f.depth else 0
    return groups, f.output[3] // groups if groups else 0


def _pairs(f: Any, taps: int) -> int:
    """Bytes of `thimble_convolve_s8`'s parameters."""
    groups, channels = _grouped(f)
    return 4 * groups * -(-channels // 2) * (2 + 2 * taps // 4 + 3)


def _fours_s4(f: Any) -> int:
    """Bytes of `thimble_convolve_s4`'s parameters."""
    groups, channels = _grouped(f)
    taps: int = f.kernel[0] * f.kernel[1] * f.depth
    return 4 * groups * -(-channels // 4) * (9 + 4 * -(-taps // 8))


def conv2d(arguments: Arguments) -> Extents:
    """`conv2d.c.j2`."""
    f = arguments.fields
    if f.function == "thimble_convolve_1x1_s8":
        return _pointwise(arguments)
    if f.function == "thimble_convolve_inside_s8":
        return _inside(arguments)
    if f.function.startswith("thimble"):
        return _own(arguments)
    return _arm_conv2d(arguments)


def _pointwise(arguments: Arguments) -> Extents:
    f = arguments.fields
    own = SimpleNamespace(**{**vars(f), "input": (*f.input[:3], f.depth)})
    constants, scratch = {"parameters": _pairs(own, f.depth)}, 4 * f.depth
    line, output_line = arguments.input_line(), arguments.outputs[0].line
    if not line and not output_line:
        pixels = f.output[0] * f.output[1] * f.output[2]
        read, written = whole(pixels * f.depth), whole(pixels * f.output[3])
        return Extents({0: read}, {0: written}, constants, scratch)
    rows, columns = f.output[1:3]
    read = Extent(0, columns * f.depth, line or f.input[2] * f.input[3], rows)
    pitch = output_line or columns * f.output[3]
    written = Extent(0, columns * f.output[3], pitch, rows)
    return Extents({0: read}, {0: written}, constants, scratch)


def _inside(arguments: Arguments) -> Extents:
    """No window is checked against the image: they must all lie in it."""
    f = arguments.fields
    line = arguments.input_line() or f.input[2] * f.input[3]
    row = f.kernel[1] * f.depth // 4 * 4
    taps = f.kernel[0] * row
    lines = (f.output[1] - 1) * f.stride[0] + (f.kernel[0] - 1) * f.dilation[0] + 1
    own = SimpleNamespace(**{**vars(f), "input": (*f.input[:3], f.depth)})
    run = (f.output[2] - 1) * f.stride[1] * f.depth + row
    one = (1, *f.output[1:])
    return Extents(
        {0: Extent(0, run, line, lines)},
        {0: _image(one, line=arguments.outputs[0].line)},
        {"parameters": _pairs(own, taps)},
        _column_scratch(f, taps),
        largest=max(_reach(f), max(f.dilation[0], f.stride[0]) * line),
    )


def _own(arguments: Arguments) -> Extents:
    """`thimble_convolve_s8` and `_s4`: taps outside the image are not read."""
    f = arguments.fields
    four_bits = f.function == "thimble_convolve_s4"
    taps = _weighted_taps(f)
    groups, channels = _grouped(f)
    written = _image(f.output, line=arguments.outputs[0].line)
    if groups * channels != f.output[3]:  # the rest is left as it was
        written = Extent(0, written.end, written.pitch, written.lines, touched=0)
    return Extents(
        {0: _image(f.input, line=arguments.input_line())},
        {0: written},
        {"parameters": _fours_s4(f) if four_bits else _pairs(f, taps)},
        taps if four_bits else _column_scratch(f, taps),
        _reach(f),
    )


def _per_channel(channels: int) -> dict[str, int]:
    return {"multiplier": 4 * channels, "shift": 4 * channels}


def _arm_conv2d(arguments: Arguments) -> Extents:
    """CMSIS-NN's: `arm_convolve_1x1_s8_fast` goes by the input's pixels, the others by the
    output's; the strided 1x1 and the 1xN kernels do not check what they read."""
    f = arguments.fields
    (batches, height, width, depth), taps = f.input, f.kernel[0] * f.kernel[1] * f.input[3]
    read, written, scratch = _image(f.input), _image(f.output), 0
    if f.function == "arm_convolve_s8":
        scratch = 4 * round_up(taps, 8)
    elif f.function == "arm_convolve_1x1_s8_fast":
        written = whole(batches * height * width * f.output[3])
    else:
        rows = (f.output[1] - 1) * f.stride[0] + 1
        columns = (f.output[2] - 1) * f.stride[1] + f.kernel[1]
        last = (batches - 1) * height * width + (rows - 1) * width + columns
        read = Extent(0, last * depth)
    inputs = {0: read, 1: whole(f.output[3] * taps)}
    if arguments.has(2):
        inputs[2] = whole(f.output[3], 4)
    return Extents(inputs, {0: written}, _per_channel(f.output[3]), scratch, _reach(f))


def depthwise_conv2d(arguments: Arguments) -> Extents:
    """`depthwise_conv2d.c.j2`."""
    f = arguments.fields
    if f.function == "thimble_convolve_s8":
        return _own(arguments)
    if f.function == "arm_depthwise_conv_s8_opt":
        return _arm_depthwise(arguments)
    taps = f.kernel[0] * f.kernel[1]
    if f.function == "thimble_depthwise_conv_fours_s8":
        parameters = 4 * (f.output[3] // 4) * (9 + taps)
        seen = (min(f.output[2], _EDGE_OUTPUTS) - 1) * f.stride[1]
        seen += (f.kernel[1] - 1) * f.dilation[1] + 1
        scratch = 64 + 8 * taps + 4 * f.kernel[0] * seen + 4 * f.band * f.output[2]
    else:
        parameters = 4 * f.output[3] * (2 + -(-(1 + taps) // 4))
        scratch = _lines_scratch(f)
    return Extents(
        {0: _image(f.input, line=arguments.input_line(), turned=f.turned)},
        {0: _image(f.output, line=arguments.outputs[0].line, turned=f.turned)},
        {"parameters": parameters},
        scratch,
        _reach(f),
    )


def _lines_scratch(f: Any) -> int:
    """`thimble_depthwise_conv_s8`, as its header says."""
    lines = (f.band - 1) * f.stride[0] + (f.kernel[0] - 1) * f.dilation[0] + 1
    is_3x3 = f.kernel == (3, 3) and f.dilation == (1, 1) and f.stride[1] <= 2
    fours = f.stride[1] == 1 and not is_3x3
    outputs = round_up(f.output[2], 4) if fours else f.output[2]
    seen = (outputs - 1) * f.stride[1] + (f.kernel[1] - 1) * f.dilation[1] + 1
    line = round_up(seen, 2) + 2
    taps = 4 * f.kernel[0] * (f.kernel[1] // 2 + 1)
    size: int = 2 * (lines * line + taps) + 4 * (f.band * f.output[2] + 1)
    return size


def _arm_depthwise(arguments: Arguments) -> Extents:
    """Four channels at a time, beyond the last; from `arm_depthwise_conv_s8_opt` for Helium."""
    f = arguments.fields
    taps, channels = f.kernel[0] * f.kernel[1], round_up(f.output[3], 4)
    constants = _per_channel(channels) | {
        "weights": (taps - 1) * f.output[3] + channels,
        "bias": 4 * channels,
    }
    scratch = 4 * _MVE_CHANNEL_BLOCK * taps
    return Extents({0: _image(f.input)}, {0: _image(f.output)}, constants, scratch, _reach(f))


def wide_conv(arguments: Arguments) -> Extents:
    """`_wide_conv.c.j2` and, for groups, `thimble_convolve_s16`."""
    f = arguments.fields
    if f.function == "thimble_convolve_s16":
        return wide_own(arguments)
    depthwise, channels = hasattr(f, "multiplicity"), f.output[3]
    taps = math.prod(f.filter[1:3]) * (1 if depthwise else f.filter[3])
    fast = f.function in ("arm_convolve_fast_s16", "arm_depthwise_conv_fast_s16")
    read, constants, scratch = {0: _image(f.input, 2)}, _per_channel(channels), 0
    constants["bias"] = 8 * channels
    if not depthwise:
        read[1] = whole(math.prod(f.filter))
        scratch = 4 * taps if fast else 0
    else:
        constants["weights"] = math.prod(f.filter)
        window = 2 * channels * taps
        scratch = (4 * window + 8 if arguments.core.mve else window) if fast else 0
        if fast and arguments.core.mve:  # it reads a multiple of four channels
            spare = round_up(channels, 4) - channels
            constants = {
                name: size + spare * size // (taps * channels if name == "weights" else channels)
                for name, size in constants.items()
            }
    return Extents(read, {0: _image(f.output, 2)}, constants, scratch, _reach(f))


def wide_own(arguments: Arguments) -> Extents:
    """`thimble_convolve_s16` and `thimble_transpose_conv_s16`."""
    f = arguments.fields
    channels = f.output[3]
    constants = _per_channel(channels) | {"bias": 8 * channels}
    filters = whole(channels * f.kernel[0] * f.kernel[1] * f.depth)
    read = {0: _image(f.input, 2), 1: filters}
    return Extents(read, {0: _image(f.output, 2)}, constants, 0, _reach(f))


def transpose_conv2d(arguments: Arguments) -> Extents:
    """`thimble_transpose_conv_s8`, as its header says."""
    f = arguments.fields
    taps, depth = f.kernel[0] * f.kernel[1], round_up(f.depth, 4)
    meeting = -(-f.kernel[0] // f.stride[0]) * -(-f.kernel[1] // f.stride[1])
    read = _image((*f.input[:3], f.depth))
    parameters = {"parameters": 4 * f.output[3] * (3 + taps * depth // 4)}
    scratch = meeting * (2 * depth + 4)
    return Extents({0: read}, {0: _image(f.output)}, parameters, scratch, _reach(f))


def partial_conv2d(arguments: Arguments) -> Extents:
    """`partial_conv2d.c.j2`: int32 sums, those of the parts before last among the inputs."""
    f = arguments.fields
    taps = round_up(f.kernel[0] * f.kernel[1] * f.depth, 4)
    parameters = {"parameters": 4 * -(-f.output[3] // 2) * (2 + 2 * taps // 4)}
    if f.function == "thimble_partial_conv_1x1_s8":
        pixels, scratch = f.output[0] * f.output[1] * f.output[2], 4 * f.depth
        read, written = {0: whole(pixels * f.depth)}, whole(pixels * f.output[3], 4)
    else:
        one = (1, *f.output[1:])
        scratch = _column_scratch(f, taps)
        read, written = {0: _image((1, *f.input[1:]))}, _image(one, 4)
    if arguments.has(3):
        read[3] = written
    return Extents(read, {0: written}, parameters, scratch, _reach(f))


def window_f32(filters: str) -> ExtentRule:
    """`_window_f32.c.j2`. `filters`: "" for a pool, "depthwise", or "ordinary"."""

    def rule(arguments: Arguments) -> Extents:
        w = SimpleNamespace(**arguments.fields.window)
        images = (w.batches, w.input_h, w.input_w, w.input_c)
        output = (w.batches, w.output_h, w.output_w, w.output_c)
        read = {0: _image(images, 4)}
        if filters:
            depth = 1 if filters == "depthwise" else w.depth
            read[1] = whole(w.output_c * w.kernel_h * w.kernel_w * depth, 4)
            if arguments.fields.has_bias:
                read[2] = whole(w.output_c, 4)
        rows = (w.output_h, w.stride_h, w.kernel_h, w.dilation_h, w.pad_top)
        columns = (w.output_w, w.stride_w, w.kernel_w, w.dilation_w, w.pad_left)
        reach = window_reach([rows, columns])
        return Extents(read, {0: _image(output, 4)}, largest=reach)

    return rule


def pool(arguments: Arguments) -> Extents:
    """`_pool.c.j2`: windows are clipped to the image. CMSIS-NN's averages sum in scratch, an int32
    for each channel, on cores with the DSP extension and without Helium."""
    f, width = arguments.fields, widths(arguments.fields.function)[0]
    sums = f.function.startswith("arm_avgpool") and arguments.core.dsp and not arguments.core.mve
    rows = (f.output_shape[1], f.stride_height, f.filter_height, 1, f.padding_top)
    columns = (f.output_shape[2], f.stride_width, f.filter_width, 1, f.padding_left)
    return Extents(
        {0: _image(f.input_shape, width)},
        {0: _image((f.input_shape[0], *f.output_shape[1:3], f.input_shape[3]), width)},
        scratch=4 * f.input_shape[3] if sums else 0,
        largest=window_reach([rows, columns]),
    )


def _taps_of_four(units: int, taps: int, per_word: int) -> int:
    """Bytes of the biases and filters of units, four at a time."""
    return 4 * -(-units // 4) * (4 + 4 * -(-taps // per_word))


def fully_connected(arguments: Arguments) -> Extents:
    f = arguments.fields
    per_word = 8 if f.function == "thimble_fully_connected_s4" else 4
    scaling = 4 * 9
    constants = {"parameters": _taps_of_four(f.units, f.depth, per_word)}
    if f.common:
        constants["scaling"] = scaling
    else:
        constants["parameters"] += -(-f.units // 4) * scaling
    written = whole(f.batches * f.units)
    return Extents({0: whole(f.batches * f.depth)}, {0: written}, constants)


def fully_connected_s16(arguments: Arguments) -> Extents:
    f = arguments.fields
    factors = 8 * (f.units if f.per_channel else 1)
    return Extents(
        {0: whole(f.rows * f.depth, 2), 1: whole(f.units * f.depth)},
        {0: whole(f.rows * f.units, 2)},
        {"bias": 8 * f.units, "factors": factors},
    )


def partial_fully_connected(arguments: Arguments) -> Extents:
    f = arguments.fields
    sums = whole(f.batches * f.units, 4)
    read = {0: whole(f.batches * f.depth)} | ({3: sums} if arguments.has(3) else {})
    return Extents(read, {0: sums}, {"parameters": _taps_of_four(f.units, f.depth, 4)})


def matmul(width: int, output_width: int) -> ExtentRule:
    """`_matmul_shape.c.j2` and `batch_matmul_f32.c.j2`: an operand's last element is as far as its
    steps lead."""

    def rule(arguments: Arguments) -> Extents:
        f = arguments.fields

        def operand(outer: int, steps: tuple[int, int], batch: tuple[int, ...]) -> Extent:
            last = (outer - 1) * steps[0] + (f.depth - 1) * steps[1]
            last += sum((n - 1) * step for n, step in zip(f.batch, batch, strict=True))
            return whole(last + 1, width)

        read = {
            0: operand(f.rows, f.x_steps, f.x_batch),
            1: operand(f.columns, f.y_steps, f.y_batch),
        }
        written = whole(math.prod(f.batch) * f.rows * f.columns, output_width)
        if arguments.has(2):  # the sums of the parts before
            read[2] = written
        scratch = 2 * round_up(f.depth, 4) if width < 4 else 0
        return Extents(read, {0: written}, scratch=scratch)

    return rule


def requantise_sums(arguments: Arguments) -> Extents:
    f = arguments.fields
    if f.law in ("away", "even"):
        return Extents({0: whole(f.pixels, 4)}, {0: whole(f.pixels)})
    words = 3 if f.law == "once" else 2
    size, parameters = f.pixels * f.channels, {"parameters": 4 * words * f.channels}
    return Extents({0: whole(size, 4)}, {0: whole(size)}, parameters)
