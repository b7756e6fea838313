"""The bytes that the convolution kernels touch, by the arguments of their calls.

Sizes of packed weights and of scratch are those that the headers in `runtime_c/include` state; for
CMSIS-NN's kernels, those that its `get_buffer_size` functions return.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ops.convolution.packing import SUMMED_TAPS, VECTOR_BYTES
from toolchain.ops.extents import Extent, Extents, round_up, whole, window_reach
from toolchain.ops.kernel import Call, Input, Output, Touched

LANE_OUTPUTS = 4
"""TOGETHER in `thimble_depthwise_lanes_s8.c`: outputs of a row that are computed together."""
LANE_CONVOLUTIONS = ("thimble_convolve_lanes_s8", "thimble_convolve_offset_lanes_s8")
"""For vectors, without and with a zero point of the weights."""
LANE_PARTIAL_CONVOLUTION = "thimble_partial_conv_lanes_s8"
LANE_TRANSPOSED = "thimble_transpose_conv_lanes_s8"
WINDOW_SIDE, WINDOW_STRIP = 4, 16
"""SIDE and STRIP of thimble_depthwise_windows_lanes_s8.c."""
LANE_SCALING = 13
"""Bytes of a channel's scaling: THIMBLE_LANE_SCALING words for four of them."""
EDGE_OUTPUTS = 4
"""EDGE_OUTPUTS of thimble_depthwise_conv_blocks_s8.c."""
BAND_LINES = (32, 64)
"""THIMBLE_NARROW_LINE and THIMBLE_WIDE_LINE of thimble_depthwise_3x3_band.h, in bytes."""
FOURS_LINES = (64, 128)
"""THIMBLE_FOURS_LINE and THIMBLE_WIDE_FOURS_LINE: of each of FOURS channels."""
FOURS = 4
"""THIMBLE_FOURS."""
LINES_3X3 = 3
"""THIMBLE_LINES of thimble_depthwise_3x3.h."""
MVE_CHANNEL_BLOCK = 124
"""CH_IN_BLOCK_MVE of arm_nnsupportfunctions.h: channels per column buffer."""

Shape = tuple[int, int, int, int]


def _image(shape: Shape, width: int = 1, line: int = 0, *, transposed: int = 0) -> Extent:
    """An NHWC image of elements of `width` bytes; `line`: bytes from line to line, where there are
    gaps. `transposed`: height and width are swapped in `shape`."""
    batches, height, columns, channels = shape
    if transposed:
        height, columns = columns, height
    if not line:
        return whole(math.prod(shape), width)
    return Extent(0, columns * channels * width, line, batches * height)


def _input(call: Call) -> Shape:
    names = ("batches", "input_h", "input_w", "input_c")
    batches, height, width, channels = (call[f"shape.{name}"] for name in names)
    return batches, height, width, channels


def _output(call: Call) -> Shape:
    names = ("batches", "output_h", "output_w", "output_c")
    batches, height, width, channels = (call[f"shape.{name}"] for name in names)
    return batches, height, width, channels


def _reach(call: Call) -> int:
    """The largest coordinate that a walk by `thimble_conv_shape` computes."""
    return window_reach(
        (
            call[f"shape.output_{axis}"],
            call[f"shape.stride_{axis}"],
            call[f"shape.kernel_{axis}"],
            call[f"shape.dilation_{axis}"],
            call[f"shape.pad_{side}"],
        )
        for axis, side in (("h", "top"), ("w", "left"))
    )


def _taps(call: Call) -> int:
    return call["shape.kernel_h"] * call["shape.kernel_w"] * call["shape.depth"]


def _weighted_taps(call: Call) -> int:
    """Bytes of a filter: whole words, and the factors of the lanes that hold window sums."""
    taps = round_up(_taps(call), 4)
    lanes = -(-taps // (4 * SUMMED_TAPS)) if call.get("shape.weight_zero_point") else 0
    return taps + 4 * lanes


def _column_scratch(call: Call, taps: int, columns: int) -> int:
    """Columns of `taps` int16; room to gather pixels that are not whole words, of four columns for
    four windows.
    """
    row, windows = call["shape.kernel_w"] * call["shape.depth"], 4 if columns == 4 else 1
    if call["shape.depth"] % 4 == 0:
        return 2 * columns * taps
    return 2 * columns * taps + (
        row if row % 4 == 0 else windows * round_up(call["shape.kernel_h"] * row, 4) + 4
    )


def _pairs(channels: int, taps: int) -> int:
    """Bytes of the parameters of channels, two at a time, of so many taps."""
    return 4 * -(-channels // 2) * (2 + 2 * taps // 4 + 5)


def _own_parameters(call: Call, channels: int, taps: int) -> int:
    """Bytes of the parameters of channels, two or (of four bits) four at a time."""
    if call.function.endswith("_s4"):
        return 4 * -(-channels // 4) * (4 + 2 * taps // 4 + 10)
    return _pairs(channels, taps)


def own_conv(touched: Touched) -> Extents:
    """`thimble_convolve_s8`, `_1x1_s8` and `_inside_s8`; the same of `_s4`; LANE_CONVOLUTIONS."""
    if touched.call.function.startswith("thimble_convolve_1x1_"):
        return _pointwise(touched)
    if touched.call.function.startswith("thimble_convolve_inside_"):
        return _inside(touched)
    return _grouped(touched)


def _pointwise(touched: Touched) -> Extents:
    """All pixels in one run, or line by line where a loop is around the call."""
    call = touched.call
    pixels, depth, channels = call["pixels"], call["depth"], call["channels"]
    constants = {"parameters": _own_parameters(call, channels, depth)}
    scratch = 2 * call["at_once"] * depth
    read, written = whole(pixels * depth), whole(pixels * channels)
    for loop in call.loops:
        read = Extent(0, read.end, _step(call, "input"), loop.count)
        written = Extent(0, written.end, _step(call, "output"), loop.count)
    return Extents({0: read}, {0: written}, constants, scratch)


def _step(call: Call, name: str) -> int:
    """How far the only loop around a call moves a pointer on."""
    pointer = call.arguments[name]
    assert isinstance(pointer, Input | Output)
    ((_, elements),) = pointer.steps
    return elements


def _inside(touched: Touched) -> Extents:
    """No window is checked against the image: they must all lie in it."""
    call = touched.call
    shape = {
        name: call[f"shape.{name}"]
        for name in ("output_h", "output_w", "output_c", "kernel_h", "row_words")
    }
    steps = {name: call[f"shape.{name}"] for name in ("row_step", "pixel_step", "line_step")}
    run = (shape["output_w"] - 1) * steps["pixel_step"] + 4 * shape["row_words"]
    down = (shape["output_h"] - 1) * steps["line_step"] + (shape["kernel_h"] - 1) * steps[
        "row_step"
    ]
    line = touched.input_line() or math.gcd(down, steps["row_step"], steps["line_step"])
    taps = 4 * shape["kernel_h"] * shape["row_words"]
    one = (1, shape["output_h"], shape["output_w"], shape["output_c"])
    return Extents(
        {0: Extent(0, run, line, down // line + 1)},
        {0: _image(one, line=touched.output_line)},
        {"parameters": _own_parameters(call, shape["output_c"], taps)},
        2 * call["shape.at_once"] * taps,
        largest=shape["output_h"] * steps["line_step"] + shape["kernel_h"] * steps["row_step"],
    )


def _grouped(touched: Touched) -> Extents:
    """Taps outside the image are not read."""
    call = touched.call
    depth, filters = call["shape.depth"], call["shape.output_c"]
    groups = call["shape.input_c"] // depth if depth else 0
    channels = filters // groups if groups else 0
    written = _image(_output(call), line=touched.output_line)
    if groups * channels != filters:  # the rest is left as it was
        written = Extent(0, written.end, written.pitch, written.lines, touched=0)
    taps = _weighted_taps(call)
    if call.function in LANE_CONVOLUTIONS:
        parameters = round_up(channels, 4) * (LANE_SCALING + round_up(_taps(call), VECTOR_BYTES))
        scratch = lane_columns(_taps(call), call.function)
    else:
        parameters = _own_parameters(call, channels, taps)
        scratch = _column_scratch(call, taps, call["shape.at_once"])
    return Extents(
        {0: _image(_input(call), line=touched.input_line())},
        {0: written},
        {"parameters": groups * parameters},
        scratch,
        _reach(call),
    )


def lane_columns(taps: int, function: str) -> int:
    """Bytes of two windows of a kernel for vectors, whose last vectors are read whole; with
    offsets of the weights, a vector before each.
    """
    before = VECTOR_BYTES if "_offset_" in function else 0
    return round_up(taps, 4) + round_up(taps, VECTOR_BYTES) + 2 * before


def line_bytes_3x3(columns: int, stride: int) -> int:
    """Scratch of one image line, in words of two pixels, for `columns` outputs in twos."""
    return 4 * (-(-columns // 2) * stride + 1)


def image_extents(touched: Touched) -> Extents:
    """Of a kernel with a `thimble_conv_shape` that touches both images whole: operands only."""
    call = touched.call
    return Extents(
        {0: _image(_input(call), line=touched.input_line())},
        {0: _image(_output(call), line=touched.output_line)},
        largest=_reach(call),
    )


def packed_conv(touched: Touched) -> Extents:
    """`thimble_convolve_packed_s8`, whose parameters say themselves how long they are."""
    call = touched.call
    taps = _taps(call)
    return Extents(
        {0: _image(_input(call), line=touched.input_line())},
        {0: _image(_output(call), line=touched.output_line)},
        {"parameters": 4 * _packed_words(touched.constants["parameters"], call, taps)},
        8 * taps + call["shape.depth"],
        _reach(call),
    )


def _packed_words(parameters: NDArray[np.generic], call: Call, taps: int) -> int:
    """Words that are read: runs until the taps of each four channels are complete."""
    at = 0
    for _ in range(-(-call["shape.output_c"] // 4)):
        at += 9
        left = taps
        while left > 0 and at + 1 < parameters.size:
            count = 1 + int(parameters.reshape(-1)[at + 1])
            at += 1 + count
            left -= count
    return at


def window_columns(columns: int, stride: int) -> int:
    """Bytes of the image columns that `thimble_depthwise_windows_lanes_s8` gathers at a time."""
    seen = (min(columns, WINDOW_STRIP) - 1) * stride + WINDOW_SIDE
    return 4 * WINDOW_SIDE * round_up(seen, WINDOW_SIDE)


def rows_at_once(height: int, stride: int) -> int:
    """Output rows that `thimble_depthwise_windows_lanes_s8` computes from the same vectors."""
    return 2 if height + stride <= WINDOW_SIDE else 1


def own_depthwise(touched: Touched) -> Extents:
    """`thimble_depthwise_conv_s8`, `_conv_blocks_s8`, `_lanes_s8`, `_windows_lanes_s8` and the
    `_3x3` ones.
    """
    call = touched.call
    taps = call["shape.kernel_h"] * call["shape.kernel_w"]
    if call.function == "thimble_depthwise_windows_lanes_s8":
        parameters = call["shape.output_c"] * (LANE_SCALING + WINDOW_SIDE * call["shape.kernel_w"])
        at_once = rows_at_once(call["shape.kernel_h"], call["shape.stride_h"])
        scratch = window_columns(call["shape.output_w"], call["shape.stride_w"])
        scratch += 4 * call["shape.output_w"] * (call["shape.band"] + at_once - 1)
    elif call.function == "thimble_depthwise_lanes_s8":
        parameters = call["shape.output_c"] * (LANE_SCALING + taps)
        columns = max(call["shape.output_w"], LANE_OUTPUTS)
        seen = (columns - 1) * call["shape.stride_w"] + call["shape.kernel_w"]
        scratch = 4 * (call["shape.kernel_h"] * seen + call["shape.band"] * columns)
    elif call.function == "thimble_depthwise_conv_blocks_s8":
        parameters = 4 * (call["shape.output_c"] // 4) * (13 + taps)
        seen = (min(call["shape.output_w"], EDGE_OUTPUTS) - 1) * call["shape.stride_w"]
        seen += (call["shape.kernel_w"] - 1) * call["shape.dilation_w"] + 1
        scratch = 64 + 8 * taps + 4 * call["shape.kernel_h"] * seen
        scratch += 4 * call["shape.band"] * call["shape.output_w"]
    elif call.function.startswith("thimble_depthwise_3x3_"):
        parameters = 20 * call["shape.output_c"]
        seen = line_bytes_3x3(call["shape.output_w"], call["shape.stride_w"])
        scratch = LINES_3X3 * seen
        if call.function != "thimble_depthwise_3x3_s8":
            lengths = FOURS_LINES if call.get("shape.at_once") else BAND_LINES
            line = max(call.get("shape.at_once"), 1) * next(n for n in lengths if seen <= n)
            scratch = line * ((call["shape.band"] - 1) * call["shape.stride_h"] + LINES_3X3)
    else:
        parameters = 4 * call["shape.output_c"] * (3 + -(-(1 + taps) // 4))
        scratch = _lines_scratch(call)
    transposed = call.get("shape.transposed")
    return Extents(
        {0: _image(_input(call), line=touched.input_line(), transposed=transposed)},
        {0: _image(_output(call), line=touched.output_line, transposed=transposed)},
        {"parameters": parameters},
        scratch,
        _reach(call),
    )


def _lines_scratch(call: Call) -> int:
    """`thimble_depthwise_conv_s8`, as its header says."""
    band, columns = call["shape.band"], call["shape.output_w"]
    kernel = (call["shape.kernel_h"], call["shape.kernel_w"])
    stride = (call["shape.stride_h"], call["shape.stride_w"])
    dilation = (call["shape.dilation_h"], call["shape.dilation_w"])
    lines = (band - 1) * stride[0] + (kernel[0] - 1) * dilation[0] + 1
    outputs = round_up(columns, 4) if stride[1] == 1 else columns
    seen = (outputs - 1) * stride[1] + (kernel[1] - 1) * dilation[1] + 1
    line = round_up(seen, 2) + 2
    taps = 4 * kernel[0] * (kernel[1] // 2 + 1)
    return 2 * (lines * line + taps) + 4 * (band * columns + 1)


def own_transposed(touched: Touched) -> Extents:
    """`thimble_transpose_conv_s8` and `_lanes_s8`."""
    call = touched.call
    taps, depth = call["shape.kernel_h"] * call["shape.kernel_w"], round_up(call["shape.depth"], 4)
    meeting = math.prod(
        -(-call[f"shape.kernel_{axis}"] // call[f"shape.stride_{axis}"]) for axis in "hw"
    )
    batches, height, width, _ = _input(call)
    read = _image((batches, height, width, call["shape.depth"]))
    parameters = {"parameters": 4 * call["shape.output_c"] * (3 + taps * depth // 4)}
    scratch = meeting * (2 * depth + 4)
    if call.function == LANE_TRANSPOSED:
        met = [_met(call, axis) for axis in "hw"]
        vectors = sum(
            round_up(rows * columns * call["shape.depth"], VECTOR_BYTES)
            for rows in met[0]
            for columns in met[1]
        )
        scaled = LANE_SCALING * len(met[0]) * len(met[1])
        parameters = {"parameters": round_up(call["shape.output_c"], 4) * (vectors + scaled)}
        scratch = lane_columns(meeting * call["shape.depth"], call.function)
    return Extents({0: read}, {0: _image(_output(call))}, parameters, scratch, _reach(call))


def _met(call: Call, axis: str) -> list[int]:
    """Kernel rows or columns that outputs see, for each place modulo the stride; at least one."""
    kernel, stride = call[f"shape.kernel_{axis}"], call[f"shape.stride_{axis}"]
    return [max(-(-(kernel - first) // stride), 1) for first in range(stride)]


def partial_conv(touched: Touched) -> Extents:
    """`thimble_partial_conv_s8`, `_1x1_s8` and `_lanes_s8`: int32 sums. The last input holds the
    sums of the parts before.
    """
    call = touched.call
    if call.function == "thimble_partial_conv_1x1_s8":
        pixels, depth, channels = call["pixels"], call["depth"], call["channels"]
        taps, scratch, reach = round_up(depth, 4), 4 * depth, 0
        read, written = {0: whole(pixels * depth)}, whole(pixels * channels, 4)
    else:
        taps, reach, channels = round_up(_taps(call), 4), _reach(call), call["shape.output_c"]
        scratch = _column_scratch(call, taps, 2)
        (_, *image), (_, *sums) = _input(call), _output(call)  # one image
        read, written = {0: whole(math.prod(image))}, whole(math.prod(sums), 4)
    if call.function == LANE_PARTIAL_CONVOLUTION:
        taps, scratch = _taps(call), lane_columns(_taps(call), call.function)
        parameters = {"parameters": round_up(channels, 4) * (4 + round_up(taps, VECTOR_BYTES))}
    else:
        parameters = {"parameters": 4 * -(-channels // 2) * (2 + 2 * taps // 4)}
    if touched.has(3):
        read[3] = written
    return Extents(read, {0: written}, parameters, scratch, reach)


def _dims(call: Call, name: str) -> Shape:
    batches, height, width, channels = (call[f"{name}.{axis}"] for axis in "nhwc")
    return batches, height, width, channels


def _cmsis_reach(call: Call, params: str) -> int:
    return window_reach(
        (
            call[f"output_dims.{axis}"],
            call[f"{params}.stride.{axis}"],
            call[f"filter_dims.{axis}"],
            call[f"{params}.dilation.{axis}"],
            call[f"{params}.padding.{axis}"],
        )
        for axis in "hw"
    )


def _per_channel(channels: int) -> dict[str, int]:
    return {"multiplier": 4 * channels, "shift": 4 * channels}


def cmsis_column_bytes(function: str, taps: int, core: Core) -> int:
    """Scratch as `arm_convolve_wrapper_s8_get_buffer_size` gives it: the columns of four windows on
    Helium, of two in int16 elsewhere.
    """
    if function != "arm_convolve_s8":
        return 0
    return 4 * round_up(taps, 8) if core.mve else 4 * round_up(taps, 4)


def transposed_scratch(
    x: tuple[int, ...], y: tuple[int, ...], kernel: tuple[int, int]
) -> tuple[int, int]:
    """Scratch of `arm_transpose_conv_s8`: sums of each tap of one image, and of its output."""
    return 4 * math.prod(kernel) * x[1] * x[2] * y[3], 4 * math.prod(y[1:])


def cmsis_transposed(touched: Touched) -> Extents:
    """`arm_transpose_conv_s8`: as many windows as the output and its paddings hold, which must be
    one for each pixel of the input.
    """
    call = touched.call
    x, y, kernel = (_dims(call, f"{name}_dims") for name in ("input", "output", "filter"))
    params = "transpose_conv_params"
    windows = [
        (y[i] + call[f"{params}.padding_offsets.{axis}"] + call[f"{params}.padding.{axis}"])
        for i, axis in enumerate("hw", start=1)
    ]
    walked = [
        (size - kernel[i]) // call[f"{params}.stride.{axis}"] + 1
        for i, (axis, size) in enumerate(zip("hw", windows, strict=True), start=1)
    ]
    written = _image(y)
    if walked != [x[1], x[2]]:  # sums go astray
        written = Extent(0, written.end, touched=0)
    inputs = {0: _image(x), 1: whole(math.prod(kernel))}
    if touched.has(2):
        inputs[2] = whole(y[3], 4)
    scratch = sum(transposed_scratch(x, y, (kernel[1], kernel[2])))
    return Extents(inputs, {0: written}, _per_channel(y[3]), scratch, max(windows))


def cmsis_window_bytes(function: str, elements: int, channels: int, core: Core) -> int:
    """Scratch as `arm_depthwise_conv_wrapper_s8_get_buffer_size` gives it for windows of so many
    elements.
    """
    if function != "arm_depthwise_conv_s8_opt" or not core.dsp:
        return 0
    return 4 * MVE_CHANNEL_BLOCK * (elements // channels) if core.mve else 2 * elements


def cmsis_conv(touched: Touched, core: Core) -> Extents:
    """CMSIS-NN's int8 convolutions.

    `arm_convolve_1x1_s8_fast` counts the input's pixels, the others count the output's. The strided
    1x1 kernel and the 1xN kernels do not check what they read.
    """
    call = touched.call
    x, y, kernel = (_dims(call, f"{name}_dims") for name in ("input", "output", "filter"))
    (batches, height, width, depth), taps = x, kernel[1] * kernel[2] * x[3]
    read, written = _image(x), _image(y)
    if call.function == "arm_convolve_1x1_s8_fast":
        written = whole(batches * height * width * y[3])
    elif call.function != "arm_convolve_s8":
        rows = (y[1] - 1) * call["conv_params.stride.h"] + 1
        columns = (y[2] - 1) * call["conv_params.stride.w"] + kernel[2]
        last = (batches - 1) * height * width + (rows - 1) * width + columns
        read = Extent(0, last * depth)
    inputs = {0: read, 1: whole(y[3] * taps)}
    if touched.has(2):
        inputs[2] = whole(y[3], 4)
    scratch, reach = (
        cmsis_column_bytes(call.function, taps, core),
        _cmsis_reach(call, "conv_params"),
    )
    return Extents(inputs, {0: written}, _per_channel(y[3]), scratch, reach)


def cmsis_depthwise(touched: Touched, core: Core) -> Extents:
    """CMSIS-NN's int8 depthwise convolutions. `arm_depthwise_conv_s8_opt` on Helium reads four
    channels at a time, beyond the last one too.
    """
    call = touched.call
    x, y, kernel = (_dims(call, f"{name}_dims") for name in ("input", "output", "filter"))
    taps, function = kernel[1] * kernel[2], call.function
    blocks = core.mve and function == "arm_depthwise_conv_s8_opt"
    channels = round_up(y[3], 4) if blocks else y[3]
    constants = _per_channel(channels) | {
        "weights": (taps - 1) * y[3] + channels,
        "bias": 4 * channels,
    }
    scratch = cmsis_window_bytes(function, taps * y[3], y[3], core)
    reach = _cmsis_reach(call, "dw_conv_params")
    return Extents({0: _image(x)}, {0: _image(y)}, constants, scratch, reach)


def _int16_constants(channels: int) -> dict[str, int]:
    return _per_channel(channels) | {"bias": 8 * channels}


def int16_conv(touched: Touched) -> Extents:
    """`arm_convolve_fast_s16` and `arm_convolve_s16`."""
    call = touched.call
    x, y, filters = (_dims(call, f"{name}_dims") for name in ("input", "output", "filter"))
    taps = math.prod(filters[1:])
    return Extents(
        {0: _image(x, 2), 1: whole(math.prod(filters))},
        {0: _image(y, 2)},
        _int16_constants(y[3]),
        4 * taps if call.function == "arm_convolve_fast_s16" else 0,
        _cmsis_reach(call, "conv_params"),
    )


def int16_depthwise(touched: Touched) -> Extents:
    """`arm_depthwise_conv_s16` and `arm_depthwise_conv_fast_s16`.

    On Helium the fast kernel reads a multiple of four channels, and uses as much scratch as it is
    told it has.
    """
    call = touched.call
    x, y, filters = (_dims(call, f"{name}_dims") for name in ("input", "output", "filter"))
    channels, taps, spare, scratch = y[3], filters[1] * filters[2], 0, 0
    if call.function == "arm_depthwise_conv_fast_s16":
        window = 2 * channels * taps
        helium = call["ctx.size"] > window
        scratch = 4 * window + 8 if helium else window
        spare = -channels % 4 if helium else 0
    constants = _int16_constants(channels + spare) | {"weights": math.prod(filters) + spare}
    reach = _cmsis_reach(call, "dw_conv_params")
    return Extents({0: _image(x, 2)}, {0: _image(y, 2)}, constants, scratch, reach)


def int16_own(touched: Touched) -> Extents:
    """`thimble_convolve_s16` and `thimble_transpose_conv_s16`."""
    call = touched.call
    filters = whole(call["shape.output_c"] * _taps(call))
    read = {0: _image(_input(call), 2), 1: filters}
    constants = _int16_constants(call["shape.output_c"])
    return Extents(read, {0: _image(_output(call), 2)}, constants, 0, _reach(call))


def int16_own_depthwise(touched: Touched) -> Extents:
    """`thimble_convolve_s16` with packed filters."""
    call = touched.call
    filters = {"weights": call["shape.output_c"] * _taps(call)}
    constants = _int16_constants(call["shape.output_c"]) | filters
    return Extents(
        {0: _image(_input(call), 2)}, {0: _image(_output(call), 2)}, constants, 0, _reach(call)
    )
