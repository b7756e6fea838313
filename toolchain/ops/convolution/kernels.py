"""Choice of the kernel of an int8 convolution, for each core.

Thimble's kernels are called "own" here. Cores with Helium get CMSIS-NN's (`cmsis_nn`) where their
preconditions hold and Thimble has none for vectors that is quicker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.arithmetic.fixed_point import Int32, check_left_shifts
from toolchain.ops.arithmetic.onnx_rounding import onnx_factors, onnx_scaling
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution import cmsis_nn, extents, overlaps, terms
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
from toolchain.ops.convolution.endings import (
    block_endings,
    channel_endings,
    lane_endings,
    raised_endings,
)
from toolchain.ops.convolution.packing import (
    SUMMED_TAPS,
    Ending,
    Int8,
    Scaling,
    fit_nibbles,
    largest_sums,
    pack_convolution,
    pack_convolution_lanes,
    pack_convolution_s4,
    pack_depthwise,
    pack_depthwise_3x3,
    pack_depthwise_lanes,
    pack_packed,
    pack_raised_blocks,
    pack_windows_lanes,
    scaling,
    with_window_sums,
)
from toolchain.ops.convolution.structs import (
    conv_shape,
    own_arguments,
    requant,
    transposed_window,
)
from toolchain.ops.extents import round_up
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Loop,
    Output,
    Packed,
    Scratch,
    Struct,
)
from toolchain.ops.preference import NoKernelError
from toolchain.ops.terms import is_narrow
from toolchain.ops.window import UNPADDED, Window

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class _Width:
    """How wide weights are in flash: the ending of the functions' names, how many channels a block
    has, and how many windows may be expanded at once, quickest first.
    """

    suffix: str
    lanes: int
    at_once: tuple[int, ...]


_FOUR_BIT_TAPS, _FOUR_BIT_CHANNELS = 24, 8
"""From so many on (channels of a group), weights of four bits are convolved in at most 1.27 times
the cycles of those of eight bits, on a Cortex-M4, M33 and M7 and the slowest flash: with few taps
and channels, what each window takes more is not spread."""
_EIGHT_BITS, _FOUR_BITS = _Width("s8", 2, (4, 3, 2)), _Width("s4", 4, (4, 2))
_COLUMN_BY_LINES = 8
"""From this many output rows on, images one pixel wide take fewer instructions row by row of one
channel than by blocks of four channels. Counted on a Cortex-M4."""
_BAND_FUNCTIONS = {1: "thimble_depthwise_3x3_band_s8", 2: "thimble_depthwise_3x3_band_step_2_s8"}
"""By the stride along rows."""
_COLUMNS_BY_LANES = 12
"""From this many output columns on, Thimble's depthwise kernel for Helium, four outputs of a row at
a time, takes fewer cycles than CMSIS-NN's. By the model of a Cortex-M55."""
_BAND_BYTES = 640
"""Scratch in bytes that a depthwise kernel may always take; one output row may need more."""
_LINES_BYTES = 448
"""The same of a kernel for windows of 3x3; as many as the kernels of other windows take."""
_PLAIN = (1, 1)
_TRANSPOSED = "Height and width are swapped below: the kernel walks the image transposed."


def select_conv2d(op: Op, graph: Graph, core: Core) -> Kernel:
    """The quicker kernel of an int8 conv2d: Thimble's, but on Helium CMSIS-NN's where Thimble's for
    vectors does not take the operator.
    """
    if _takes_lanes(op, graph, core):
        return own_conv2d(op, graph, core)
    return _quicker(cmsis_nn.conv2d, own_conv2d, op, graph, core)


def own_conv2d(op: Op, graph: Graph, core: Core) -> Kernel:
    """Thimble's kernel of an int8 conv2d, which takes any."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    window, depth = window_of(op, graph), weights.shape[3]
    pointwise = window.kernel == _PLAIN and window.padding == UNPADDED
    plain = depth == x.shape[3] and weight_zero_point(weights) == 0
    if _takes_lanes(op, graph, core):
        filters = constant_of(weights).astype(np.int8, copy=False)
        return _lanes_conv2d(op, graph, window, filters)
    width = _FOUR_BITS if _four_bits_pay(op, graph) else _EIGHT_BITS
    if core.multiplies_alone and plain and width is _EIGHT_BITS:
        return _packed_conv2d(op, graph, window)
    if pointwise and window.stride == _PLAIN and plain and depth % 4 == 0:
        return _pointwise_conv2d(op, graph, window, width)
    runs = window.kernel[1] == 1 or window.dilation[1] == 1
    words = window.kernel[1] * depth % 4 == 0 and x.shape[0] == 1
    if runs and words and plain and window.padding == UNPADDED:
        return _inside_conv2d(op, graph, window, width)
    return _own_conv2d(op, graph, window, constant_of(weights).astype(np.int8), width)


def select_depthwise(op: Op, graph: Graph, core: Core) -> Kernel:
    """The quicker kernel of an int8 depthwise_conv2d: Thimble's, but on Helium CMSIS-NN's function
    for four channels at a time where it takes the operator and Thimble's for vectors does not, or
    would be the slower.
    """
    window, columns = window_of(op, graph), graph.output(op).shape[2]
    quick = _fits_vector(window) or columns >= _COLUMNS_BY_LANES
    if quick and _takes_depthwise_lanes(op, graph, core):
        return own_depthwise(op, graph, core)
    return _quicker(cmsis_nn.blocked_depthwise, own_depthwise, op, graph, core)


def own_depthwise(op: Op, graph: Graph, core: Core) -> Kernel:
    """Thimble's kernel of an int8 depthwise_conv2d.

    An image of one channel goes to the kernel of an ordinary convolution, which is quicker. Windows
    of 3x3 have kernels of their own, which take fewer cycles than the others at every depthwise
    shape of MLPerf Tiny, on Cortex-M4 and M7. A multiple of four channels goes to the kernel for
    blocks of four channels, which reads the image in place. Other numbers of channels are computed
    channel by channel, from rows that are copied to scratch; so are images one pixel wide.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    window, channels = window_of(op, graph), weights.shape[3]
    if x.shape[3] == 1:
        filters = constant_of(weights).transpose(3, 1, 2, 0).astype(np.int8)
        if core.mve and weight_zero_point(weights) == 0:
            return _lanes_conv2d(op, graph, window, filters)
        return _own_conv2d(op, graph, window, filters, _EIGHT_BITS)
    if _takes_depthwise_lanes(op, graph, core):
        return _depthwise_by_lanes(op, graph, window)
    blocks = channels == x.shape[3] and channels % 4 == 0 and weight_zero_point(weights) == 0
    if window.kernel == (3, 3) and window.dilation == _PLAIN and window.stride[1] <= 2:
        return _depthwise_3x3(op, graph, window, blocks)
    column = y.shape[2] == 1 and y.shape[1] >= _COLUMN_BY_LINES
    lines = window.stride == window.dilation == _PLAIN and column
    if blocks and not lines:
        return _depthwise_by_blocks(op, graph, window)
    return _depthwise_by_lines(op, graph, window)


def _quicker(
    helium: Callable[[Op, Graph, Core], Kernel],
    own: Callable[[Op, Graph, Core], Kernel],
    op: Op,
    graph: Graph,
    core: Core,
) -> Kernel:
    if core.mve:
        with suppress(NoKernelError):
            return helium(op, graph, core)
    return own(op, graph, core)


def strided_image(op: Op, graph: Graph) -> frozenset[str]:
    """The operands that may be strided views: those of one image, if the kernel is one of
    Thimble's.
    """
    if graph.input(op, INPUT).shape[0] != 1:
        return frozenset()
    return frozenset((op.inputs[INPUT], op.outputs[0]))


def column_bytes(kernel: tuple[int, int], depth: int, columns: int) -> int:
    """Scratch in bytes for `columns` columns of taps in int16, and room to gather pixels whose
    channels are not whole words: one window or, of four columns, four.
    """
    taps, row = round_up(kernel[0] * kernel[1] * depth, 4), kernel[1] * depth
    if depth % 4 == 0:
        return 2 * columns * taps
    windows = 4 if columns == 4 else 1
    return 2 * columns * taps + (row if row % 4 == 0 else windows * taps + 4)


def packed_comment(filters: str, shape: Sizes, function: str) -> str:
    """A comment for the generated C: what the packed parameters of a kernel hold."""
    sizes = "x".join(map(str, shape))
    return f"biases, {filters} [{sizes}] and requantisation, packed for {function}"


def channel_scaling(
    op: Op,
    graph: Graph,
    activation: Activation,
    rounding: Rounding,
    filters: Int8,
    *,
    partial: bool = False,
) -> Callable[[], Scaling]:
    """How the sums of filters [channels, taps] are scaled. The scaling is computed when the
    returned function is called.

    With `partial` the kernel itself subtracts the input's zero point and skips taps outside the
    image. Raises ScaleError at once if the left shift of a sum may overflow int32, or its float
    factor is absurd.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    bias, zero_point = bias_of(op, graph, len(filters)), weight_zero_point(weights)
    if rounding is Rounding.ONNX:
        onnx_factors(x, weights, y)
        return lambda: onnx_scaling(x, weights, y, filters, bias, partial, zero_point)
    multiplier, shift = channel_requantisation(x, weights, y, len(filters))
    reached = largest_sums(bias, filters, x.q.zero_point, partial, zero_point)
    check_left_shifts(reached, shift)
    return lambda: scaling(
        bias,
        filters,
        x.q.zero_point,
        multiplier,
        shift,
        clamp_range(activation, y),
        y.q.zero_point,
        partial,
        zero_point,
    )


def _scaled(op: Op, graph: Graph, filters: Int8) -> Callable[[], Scaling]:
    attributes = convolution_of(op)
    return channel_scaling(op, graph, attributes.activation, attributes.rounding, filters)


def _lane_endings(op: Op, graph: Graph, scales: Scaling) -> Ending:
    y = graph.output(op)
    return lane_endings(scales, y.q.zero_point, clamp_range(convolution_of(op).activation, y))


def _requant(op: Op, graph: Graph) -> Struct:
    return requant(graph.output(op), convolution_of(op).activation)


def _own_conv2d(op: Op, graph: Graph, window: Window, filters: Int8, width: _Width) -> Kernel:
    """The kernel for any convolution. `filters` are [channels, height, width, depth]."""
    depth, rows = filters.shape[3], filters.reshape(len(filters), -1)
    zero_point = weight_zero_point(graph.input(op, WEIGHTS))
    lanes = -(-rows.shape[1] // (4 * SUMMED_TAPS)) if zero_point else 0

    def form(at_once: int) -> _Form:
        def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
            lines = (input_line, output_line)
            shape = conv_shape(op, graph, window, depth, lines=lines, at_once=at_once)
            return (
                Call(f"thimble_convolve_{width.suffix}", own_arguments(shape, _requant(op, graph))),
            )

        return _Form(calls, column_bytes(window.kernel, depth, at_once) + 8 * at_once * lanes)

    return _blocked(op, graph, window, filters, width, form)


def _pointwise_conv2d(op: Op, graph: Graph, window: Window, width: _Width) -> Kernel:
    """The kernel for 1x1 windows: one run of pixels, or row by row for strided views."""
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape

    def form(at_once: int) -> _Form:
        def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
            lined = bool(input_line or output_line)
            steps = (
                (("y", input_line or x[2] * x[3]),),
                (("y", output_line or y[2] * y[3]),),
            )
            arguments: dict[str, Argument] = {
                "pixels": y[2] if lined else y[0] * y[1] * y[2],
                "depth": x[3],
                "channels": y[3],
                "at_once": at_once,
                "requant": _requant(op, graph),
                "input": Input(0, steps=steps[0] if lined else ()),
                "parameters": Packed("parameters"),
                "scratch": Scratch(),
                "output": Output(0, steps=steps[1] if lined else ()),
            }
            loops = (Loop("y", y[1]),) if lined else ()
            return (Call(f"thimble_convolve_1x1_{width.suffix}", arguments, loops),)

        return _Form(calls, 2 * at_once * x[3])

    filters = constant_of(graph.input(op, WEIGHTS)).astype(np.int8, copy=False)
    return _blocked(op, graph, window, filters, width, form)


def _inside_conv2d(op: Op, graph: Graph, window: Window, width: _Width) -> Kernel:
    """The kernel for windows that lie inside the image, and whose rows are whole words."""
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape
    row_bytes = window.kernel[1] * x[3]

    def form(at_once: int) -> _Form:
        def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
            line = input_line or x[2] * x[3]
            shape: dict[str, Argument] = {
                "output_h": y[1],
                "output_w": y[2],
                "output_c": y[3],
                "kernel_h": window.kernel[0],
                "row_words": row_bytes // 4,
                "row_step": window.dilation[0] * line,
                "pixel_step": window.stride[1] * x[3],
                "line_step": window.stride[0] * line,
                "output_step": output_line or y[2] * y[3],
                "at_once": at_once,
            }
            struct = Struct("thimble_inside_shape", shape)
            arguments = own_arguments(struct, _requant(op, graph))
            return (Call(f"thimble_convolve_inside_{width.suffix}", arguments),)

        return _Form(calls, 2 * at_once * window.kernel[0] * row_bytes)

    filters = constant_of(graph.input(op, WEIGHTS)).astype(np.int8, copy=False)
    return _blocked(op, graph, window, filters, width, form)


@dataclass(frozen=True)
class _Form:
    """A kernel for so many windows at once: its calls for line strides, and its scratch."""

    calls: Callable[[int, int], tuple[Call, ...]]
    scratch_bytes: int


def _packed_conv2d(op: Op, graph: Graph, window: Window) -> Kernel:
    """The kernel for cores that have no product of two pairs: two pixels in each word."""
    weights = graph.input(op, WEIGHTS)
    channels, height, width, depth = weights.shape
    filters = constant_of(weights).astype(np.int8, copy=False).reshape(channels, -1)
    scales = _scaled(op, graph, filters)
    function = "thimble_convolve_packed_s8"

    def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
        shape = conv_shape(op, graph, window, depth, lines=(input_line, output_line))
        return (Call(function, own_arguments(shape, _requant(op, graph))),)

    comment = packed_comment("filters", weights.shape, function)
    return Kernel(
        calls(0, 0),
        extents.packed_conv,
        constants=(Constant("parameters", lambda: pack_packed(scales()), comment),),
        scratch_bytes=8 * height * width * depth + round_up(depth, 4),
        strided=strided_image(op, graph),
        calls_with_gaps=calls,
        find_overlaps=lambda: overlaps.own_conv_overlaps(op, graph, function, window, depth, 4),
        find_terms=lambda: terms.packed_conv_terms(op, graph, window, filters),
    )


def _blocked(
    op: Op,
    graph: Graph,
    window: Window,
    filters: Int8,
    width: _Width,
    form: Callable[[int], _Form],
) -> Kernel:
    """A kernel that takes `filters` [channels, height, width, depth] by blocks of channels.

    `form` is called with how many windows are expanded at once.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    depth = filters.shape[3]
    function = form(width.at_once[-1]).calls(0, 0)[0].function
    groups, scales = x.shape[3] // depth, _scaled(op, graph, filters.reshape(len(filters), -1))

    def packed() -> Int32:
        found, zero_point = scales(), weight_zero_point(weights)
        clamp = clamp_range(convolution_of(op).activation, y)
        ending = block_endings(found, y.q.zero_point, clamp, zero_point, groups, width.lanes)
        if width is _FOUR_BITS:
            return pack_convolution_s4(found.filters, ending, groups, is_narrow(op, graph))
        return pack_convolution(with_window_sums(found.filters, zero_point), ending, groups)

    name = "four-bit filters" if width is _FOUR_BITS else "filters"
    constants = (Constant("parameters", packed, packed_comment(name, weights.shape, function)),)

    def kernel(at_once: int) -> Kernel:
        chosen = form(at_once)
        return Kernel(
            chosen.calls(0, 0),
            extents.own_conv,
            constants=constants,
            scratch_bytes=chosen.scratch_bytes,
            strided=strided_image(op, graph),
            calls_with_gaps=chosen.calls,
            find_overlaps=lambda: overlaps.own_conv_overlaps(
                op, graph, function, window, depth, at_once
            ),
            find_terms=lambda: terms.own_conv_terms(op, graph, function, window, groups, depth),
            form=f"{at_once} at once" if at_once > width.at_once[-1] else "",
        )

    pixels = y.shape[1] * y.shape[2] * (y.shape[0] if "_1x1_" in function else 1)
    *more, least = width.at_once
    useful = [at_once for at_once in more if pixels > least]
    return replace(kernel(least), roomier=lambda: tuple(kernel(at_once) for at_once in useful))


def _takes_lanes(op: Op, graph: Graph, core: Core) -> bool:
    """Whether the kernel for vectors of Helium takes a convolution."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    return core.mve and weights.shape[3] == x.shape[3] and weight_zero_point(weights) == 0


def _lanes_conv2d(op: Op, graph: Graph, window: Window, filters: Int8) -> Kernel:
    """`filters` are [channels, height, width, depth]."""
    channels, height, width, depth = filters.shape
    function = "thimble_convolve_lanes_s8"
    scales = _scaled(op, graph, filters.reshape(channels, -1))

    def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
        shape = conv_shape(op, graph, window, depth, lines=(input_line, output_line))
        return (Call(function, own_arguments(shape, _requant(op, graph))),)

    def packed() -> Int32:
        found = scales()
        return pack_convolution_lanes(found.filters, _lane_endings(op, graph, found))

    comment = packed_comment("filters", filters.shape, function)
    return Kernel(
        calls(0, 0),
        extents.own_conv,
        constants=(Constant("parameters", packed, comment),),
        scratch_bytes=extents.lane_columns(height * width * depth),
        strided=strided_image(op, graph),
        calls_with_gaps=calls,
        find_overlaps=lambda: overlaps.own_conv_overlaps(op, graph, function, window, depth, 2),
        find_terms=lambda: terms.lanes_conv_terms(op, graph, window),
    )


def _four_bits_pay(op: Op, graph: Graph) -> bool:
    """Whether weights fit four bits, and packing them saves flash and costs little time."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    if weight_zero_point(weights):
        return False
    taps = round_up(weights.elements // weights.shape[0], 4)
    channels = weights.shape[0] * weights.shape[3] // x.shape[3]  # of a group
    if taps < _FOUR_BIT_TAPS or channels < _FOUR_BIT_CHANNELS:
        return False
    packed = -(-channels // 4) * (14 + taps // 2)
    unpacked = -(-channels // 2) * (7 + taps // 2)
    return packed < unpacked and fit_nibbles(constant_of(weights).astype(np.int8, copy=False))


def _channel_filters(op: Op, graph: Graph) -> Int8:
    """Depthwise filters as [channels, height * width]."""
    weights = graph.input(op, WEIGHTS)
    return constant_of(weights).reshape(-1, weights.shape[3]).T.astype(np.int8, copy=False)


def waiting_rows(rows: int, window: Window) -> int:
    """How many of `rows` output rows the depthwise kernel for channel blocks keeps before it writes
    the first.

    By then nothing reads the input rows that an output in the input's place overwrites.
    """
    return min(rows, -(-(window.padding.top + 1) // window.stride[0]))


@dataclass(frozen=True)
class _Walk:
    """How an own depthwise kernel goes over the image: `band` output rows at a time.

    `transposed`: rows are columns, in `window` too. `at_once`: channels whose lines are made
    together, if not 0.
    """

    window: Window
    band: int
    transposed: bool = False
    at_once: int = 0


def _own_depthwise(
    op: Op,
    graph: Graph,
    function: str,
    walk: _Walk,
    pack: Callable[[], Int32],
    scratch_bytes: int,
) -> Kernel:
    def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
        shape = conv_shape(
            op,
            graph,
            walk.window,
            depth=1,
            lines=(input_line, output_line),
            band=walk.band,
            at_once=walk.at_once,
            transposed=walk.transposed,
        )
        note = _TRANSPOSED if walk.transposed else ""
        return (Call(function, own_arguments(shape, _requant(op, graph)), note=note),)

    comment = packed_comment("filters", graph.input(op, WEIGHTS).shape, function)
    return Kernel(
        calls(0, 0),
        extents.own_depthwise,
        constants=(Constant("parameters", pack, comment),),
        scratch_bytes=scratch_bytes,
        strided=strided_image(op, graph),
        calls_with_gaps=calls,
    )


def _raised(
    op: Op, graph: Graph, filters: Int8, pack: Callable[[Int8, Ending], Int32]
) -> Callable[[], Int32]:
    """The parameters of `raised_endings`, packed when the returned function is called."""
    scales, y = _scaled(op, graph, filters), graph.output(op)
    clamp = clamp_range(convolution_of(op).activation, y)
    zero_point = weight_zero_point(graph.input(op, WEIGHTS))

    def packed() -> Int32:
        found = scales()
        ending = raised_endings(found, y.q.zero_point, clamp, zero_point)
        return pack(found.filters, ending)

    return packed


def _depthwise_by_blocks(op: Op, graph: Graph, window: Window) -> Kernel:
    """Blocks of four channels."""
    y, (height, width) = graph.output(op), window.kernel
    band = waiting_rows(y.shape[1], window)
    seen = (min(y.shape[2], extents.EDGE_OUTPUTS) - 1) * window.stride[1] + window.extent[1]
    filters = _channel_filters(op, graph)
    kernel = _own_depthwise(
        op,
        graph,
        "thimble_depthwise_conv_blocks_s8",
        _Walk(window, band),
        _raised(op, graph, filters, pack_raised_blocks),
        64 + 8 * height * width + 4 * height * seen + 4 * band * y.shape[2],
    )
    return replace(
        kernel,
        find_overlaps=lambda: overlaps.channel_block_overlaps(op, graph, window, band),
        find_terms=lambda: terms.channel_block_terms(op, graph, window),
    )


def _takes_depthwise_lanes(op: Op, graph: Graph, core: Core) -> bool:
    """Whether the kernel for vectors of Helium takes a depthwise convolution."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    fours = weights.shape[3] == x.shape[3] and x.shape[3] % 4 == 0
    plain = window_of(op, graph).dilation == _PLAIN and weight_zero_point(weights) == 0
    return core.mve and fours and plain


def _fits_vector(window: Window) -> bool:
    """Whether one vector of Helium holds the window of a channel."""
    return max(window.kernel) <= extents.WINDOW_SIDE


def _depthwise_by_lanes(op: Op, graph: Graph, window: Window) -> Kernel:
    """Blocks of four channels, in vectors: whole windows of one channel where a vector holds them,
    else pixel by pixel.
    """
    y = graph.output(op)
    band, columns = waiting_rows(y.shape[1], window), y.shape[2]
    scales = _scaled(op, graph, _channel_filters(op, graph))
    whole = _fits_vector(window)
    at_once = extents.rows_at_once(window.kernel[0], window.stride[0])
    if whole:
        function = "thimble_depthwise_windows_lanes_s8"
        scratch = extents.window_columns(columns, window.stride[1])
        scratch += (
            4 * columns * (band + extents.rows_at_once(window.kernel[0], window.stride[0]) - 1)
        )
    else:
        function, columns = "thimble_depthwise_lanes_s8", max(columns, extents.LANE_OUTPUTS)
        seen = (columns - 1) * window.stride[1] + window.kernel[1]
        scratch = 4 * (window.kernel[0] * seen + band * columns)

    def packed() -> Int32:
        found = scales()
        ending = _lane_endings(op, graph, found)
        if whole:
            return pack_windows_lanes(found.filters.reshape(-1, *window.kernel), ending)
        return pack_depthwise_lanes(found.filters, ending)

    kernel = _own_depthwise(op, graph, function, _Walk(window, band), packed, scratch)
    return replace(
        kernel,
        find_overlaps=lambda: overlaps.channel_block_overlaps(op, graph, window, band),
        find_terms=lambda: (
            terms.depthwise_windows_terms(op, graph, window, extents.WINDOW_STRIP, at_once)
            if whole
            else terms.depthwise_lanes_terms(op, graph, window)
        ),
    )


def _depthwise_by_lines(op: Op, graph: Graph, window: Window) -> Kernel:
    """Channel by channel; rows and columns change places where that makes the rows the longer."""
    filters, (height, width) = _channel_filters(op, graph), window.kernel
    _, rows, columns, channels = graph.output(op).shape
    walked, transposed = window, (rows, height) > (columns, width)
    if transposed:
        walked, rows, columns = transposed_window(window), columns, rows
        filters = filters.reshape(channels, height, width).transpose(0, 2, 1)
        filters = filters.reshape(channels, -1)
    band, line = _band(walked, rows, columns), _line(walked, columns)
    kernel = _own_depthwise(
        op,
        graph,
        "thimble_depthwise_conv_s8",
        _Walk(walked, band, transposed),
        _raised(op, graph, filters, pack_depthwise),
        _line_bytes(walked, columns, band),
    )
    return replace(
        kernel,
        find_overlaps=lambda: overlaps.depthwise_line_overlaps(op, graph, window, transposed),
        find_terms=lambda: terms.depthwise_line_terms(op, graph, kernel.calls[0], line),
    )


@dataclass(frozen=True)
class _Lines:
    """A way over the image for windows of 3x3: a walk, and whether it keeps bands of short lines or
    three lines that take turns.
    """

    walk: _Walk
    band_line: int | None

    def form(self) -> str:
        """For a title that no other way has."""
        turned = " transposed" if self.walk.transposed else ""
        fours = " of four channels" if self.walk.at_once else ""
        return "" if self.band_line is None else f"{self.walk.band} rows{fours}{turned}"

    def function(self) -> str:
        turns = "thimble_depthwise_3x3_s8"
        return turns if self.band_line is None else _BAND_FUNCTIONS[self.walk.window.stride[1]]

    def scratch_bytes(self, output: Sizes) -> int:
        columns = output[1 if self.walk.transposed else 2]
        stride_h, stride_w = self.walk.window.stride
        if self.band_line is None:
            return extents.LINES_3X3 * extents.line_bytes_3x3(columns, stride_w)
        pitch = self.band_line * max(self.walk.at_once, 1)
        return pitch * ((self.walk.band - 1) * stride_h + extents.LINES_3X3)


def _depthwise_3x3(op: Op, graph: Graph, window: Window, blocks: bool) -> Kernel:
    """Channel by channel, from lines in scratch: a band of short ones, the quicker the more rows it
    has, or three long ones by turns. `blocks`: whether the kernel for blocks of four channels takes
    the operator; with a stride of 2 it often takes the least scratch.
    """
    output, turns = graph.output(op).shape, _Lines(_Walk(window, 1), None)
    ways = (*_bands(op, graph, blocks), turns)
    first = next((way for way in ways if way.scratch_bytes(output) <= _LINES_BYTES), turns)
    lean = _depthwise_3x3_form(op, graph, window, first)
    if blocks and first is turns:
        least = _depthwise_by_blocks(op, graph, window)
        lean = least if least.scratch_bytes < lean.scratch_bytes else lean
    more = [way for way in ways if way.scratch_bytes(output) > lean.scratch_bytes]
    return replace(
        lean, roomier=lambda: tuple(_depthwise_3x3_form(op, graph, window, way) for way in more)
    )


def _bands(op: Op, graph: Graph, blocks: bool) -> Iterator[_Lines]:
    """The ways over an image for windows of 3x3 by bands of short lines, quickest first: those that
    make lines of four channels at once, if channels come in `blocks` of four, then the others.

    Rows and columns change places where that makes rows longer, but not too long for a band.
    """
    window, (_, rows, columns, _) = window_of(op, graph), graph.output(op).shape
    ways = ((extents.FOURS_LINES, extents.FOURS),) if blocks else ()
    for lengths, at_once in (*ways, (extents.BAND_LINES, 0)):
        transposed = rows > columns and window.stride == _PLAIN
        if transposed and _band_line(rows, 1, lengths) is None:
            transposed = _band_line(columns, 1, lengths) is None
        walked = transposed_window(window) if transposed else window
        height, width = (columns, rows) if transposed else (rows, columns)
        line = _band_line(width, walked.stride[1], lengths)
        bands = {-(-height // count) for count in range(1, height + 1)}
        for band in sorted(bands, reverse=True) if line is not None else ():
            yield _Lines(_Walk(walked, band, transposed, at_once), line)


def _depthwise_3x3_form(op: Op, graph: Graph, window: Window, lines: _Lines) -> Kernel:
    filters, transposed = _channel_filters(op, graph), lines.walk.transposed
    if transposed:
        channels = len(filters)
        filters = filters.reshape(channels, 3, 3).transpose(0, 2, 1).reshape(channels, -1)
    scales, y = _scaled(op, graph, filters), graph.output(op)
    zero_point = weight_zero_point(graph.input(op, WEIGHTS))

    def packed() -> Int32:
        found, clamp = scales(), clamp_range(convolution_of(op).activation, y)
        return pack_depthwise_3x3(found, channel_endings(found, y.q.zero_point, clamp, zero_point))

    kernel = _own_depthwise(
        op,
        graph,
        lines.function(),
        lines.walk,
        packed,
        lines.scratch_bytes(y.shape),
    )
    return replace(
        kernel,
        find_overlaps=lambda: overlaps.depthwise_line_overlaps(op, graph, window, transposed),
        find_terms=lambda: terms.depthwise_3x3_terms(op, graph, kernel.calls[0]),
        form=lines.form(),
    )


def _band_line(columns: int, stride: int, lengths: Sizes) -> int | None:
    """Bytes of the shortest line that holds so many columns; None if all are shorter."""
    seen = extents.line_bytes_3x3(columns, stride)
    return next((line for line in lengths if seen <= line), None)


def _band(window: Window, rows: int, columns: int) -> int:
    """Output rows that are computed at a time."""
    one, two = (_line_bytes(window, columns, band) for band in (1, 2))
    return max(min(1 + (_BAND_BYTES - one) // (two - one), rows), 1)


def _line(window: Window, columns: int) -> int:
    """int16 values of an image line in scratch, as `thimble_depthwise_conv_s8.c` has it."""
    outputs = round_up(columns, 4) if window.stride[1] == 1 else columns
    return round_up((outputs - 1) * window.stride[1] + window.extent[1], 2) + 2


def _line_bytes(window: Window, columns: int, band: int) -> int:
    """Scratch, as `thimble_depthwise_conv_s8` says in its header."""
    lines = (band - 1) * window.stride[0] + window.extent[0]
    taps = 4 * window.kernel[0] * (window.kernel[1] // 2 + 1)
    return 2 * (lines * _line(window, columns) + taps) + 4 * (band * columns + 1)
