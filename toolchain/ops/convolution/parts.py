"""Parts of the kernels of convolutions: the structs that they take, by the names of their C
members, the scales of their sums, comments, strided images.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.onnx_rounding import onnx_factors, onnx_scaling
from toolchain.ops.arithmetic.requant import requant as ending
from toolchain.ops.convolution import endings
from toolchain.ops.convolution.common import (
    Convolution,
    channel_requantisation,
    rows_of,
    weight_zero_point,
    window_of,
)

Shape = tuple[int, ...]
PLAIN = (1, 1)
"""A stride or dilation of one, a window of one pixel."""
REMEMBERED = 256
"""How many operators' scales are kept."""


def conv_shape(
    op: kit.AnyOperator,
    window: kit.Window,
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
    x, y = op.input(kit.INPUT), op.y
    axes = (2, 1, 3) if transposed else (1, 2, 3)
    members: dict[str, kit.Argument] = {
        "batches": x.shape[0],
        **kit.sized("input", (x.shape[axis] for axis in axes)),
        **kit.sized("output", (y.shape[axis] for axis in axes)),
        "depth": depth,
        **kit.sized("kernel", window.kernel),
        **kit.window_members(window),
        "input_zero_point": x.q.zero_point,
    }
    optional = {
        "weight_zero_point": weight_zero_point(op.input(kit.WEIGHTS)),
        "transposed": int(transposed),
        "band": band,
        "at_once": at_once,
        "input_line": lines[0],
        "output_line": lines[1],
    }
    shown = {name: value for name, value in optional.items() if value}
    return kit.Struct("thimble_conv_shape", {**members, **shown})


def requant(op: kit.Operator[Any]) -> kit.Struct:
    """A `thimble_requant`: the output's zero point, and the range of the operator's activation."""
    return ending(op.y.q.zero_point, *kit.clamp_range(op.attributes.activation, op.y))


def own_call(
    op: kit.Operator[Any], function: str, shape: kit.Struct, *, note: str = ""
) -> kit.Call:
    """A call of one of Thimble's int8 convolutions, which packs its constants in `parameters`."""
    return kit.Call(
        function,
        {
            "shape": shape,
            "requant": requant(op),
            "input": kit.Input(0),
            "parameters": kit.Packed("parameters"),
            "scratch": kit.Scratch(),
            "output": kit.Output(0),
        },
        note=note,
    )


def parameters(
    op: kit.AnyOperator,
    function: str,
    pack: Callable[[], kit.Int32],
    filters: str = "filters",
    shape: Shape = (),
) -> kit.Constant:
    """The constant of `own_call`, which `pack` makes. `filters` and their `shape`, that of the
    weights unless given, are for the reader of the C.
    """
    sizes = "x".join(map(str, shape or op.input(kit.WEIGHTS).shape))
    comment = f"biases, {filters} [{sizes}] and requantisation, packed for {function}"
    return kit.Constant("parameters", pack, comment)


def image_kernel(
    op: kit.Operator[Any],
    call: Callable[[tuple[int, int]], kit.Call],
    constant: kit.Constant,
    *,
    scratch_bytes: int,
    extents: Callable[[kit.Touched], kit.Extents],
    overlaps: Callable[[], tuple[kit.SafeOverlap, ...]],
    terms: Callable[[], kit.Terms],
    rows: int = 1,
    form: str = "",
) -> kit.Kernel:
    """The kernel of a call whose images may be strided views: `call` gives it for the bytes from
    row to row of input and output.
    """
    return kit.Kernel(
        (call((0, 0)),),
        extents,
        constants=(constant,),
        scratch_bytes=scratch_bytes,
        strided=strided_image(op),
        calls_with_gaps=lambda *lines: (call((lines[0], lines[1])),),
        find_overlaps=overlaps,
        find_terms=terms,
        rows=rows,
        form=form,
    )


def cmsis_arguments(
    op: kit.Operator[Any],
    scratch_bytes: int,
    transposed: tuple[kit.Struct, kit.Struct] | None = None,
) -> dict[str, kit.Argument]:
    """The arguments of CMSIS-NN's convolutions, int8 and int16. Depthwise ones get weights and bias
    as constants, those of int16 the bias. `transposed`: for a transposed one the context of its
    sums, and the offsets of the padding.
    """
    x, weights, y, window = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y, window_of(op)
    low, high = kit.clamp_range(op.attributes.activation, y)
    depthwise = op.kind == "depthwise_conv2d"
    kept = depthwise or x.dtype is kit.DType.INT16
    name = "dw_conv_params" if depthwise else "conv_params"
    name = f"transpose_{name}" if transposed else name
    sums, offsets = transposed or (None, None)
    params: dict[str, kit.Argument | None] = {
        "input_offset": -x.q.zero_point,
        "output_offset": y.q.zero_point,
        "ch_mult": weights.shape[3] // x.shape[3] if depthwise else None,
        "stride": cmsis_structs.tile(*window.stride),
        "padding": cmsis_structs.tile(window.padding.top, window.padding.left),
        "padding_offsets": offsets,
        "dilation": cmsis_structs.tile(*window.dilation),
        "activation": cmsis_structs.limits(low, high),
    }
    factors: dict[str, kit.Argument] = {
        "multiplier": kit.Packed("multiplier", writable=True),
        "shift": kit.Packed("shift", writable=True),
    }
    return _given(
        {
            "ctx": cmsis_structs.context(scratch_bytes),
            "output_ctx": sums,
            name: kit.Struct(f"cmsis_nn_{name}", _given(params)),
            "quant_params": kit.Struct("cmsis_nn_per_channel_quant_params", factors),
            "input_dims": cmsis_structs.dims(*x.shape),
            "input_data": kit.Input(0),
            "filter_dims": cmsis_structs.dims(*weights.shape),
            "filter_data": kit.Packed("weights") if depthwise else kit.Input(kit.WEIGHTS),
            "bias_dims": cmsis_structs.dims(c=y.shape[3]),
            "bias_data": kit.Packed("bias") if kept else kit.Input(kit.BIAS),
            "output_dims": cmsis_structs.dims(*y.shape),
            "output_data": kit.Output(0),
        }
    )


def _given(members: dict[str, kit.Argument | None]) -> dict[str, kit.Argument]:
    """The members that the function has."""
    return {name: value for name, value in members.items() if value is not None}


def factor_constants(
    factors: tuple[kit.Int32, kit.Int32], spare: int = 0
) -> tuple[kit.Constant, ...]:
    """Multiplier and shift of each channel, as CMSIS-NN's functions and those of int16 read them;
    then `spare` more of 0.
    """
    multiplier, shift = (np.pad(each, (0, spare)) for each in factors)
    return (
        kit.constant("multiplier", multiplier, "requantisation factor of each channel, Q0.31"),
        kit.constant("shift", shift, "left shift of each channel"),
    )


def factor_bytes(channels: int) -> dict[str, int]:
    """Bytes of what `factor_constants` gives."""
    return {"multiplier": 4 * channels, "shift": 4 * channels}


def transposed_window(window: kit.Window) -> kit.Window:
    """The window over the transposed image: height and width are swapped."""
    (kernel_h, kernel_w), (stride_h, stride_w) = window.kernel, window.stride
    (dilation_h, dilation_w), pad = window.dilation, window.padding
    return kit.Window(
        (kernel_w, kernel_h),
        (stride_w, stride_h),
        (dilation_w, dilation_h),
        kit.Padding(pad.left, pad.top, pad.right, pad.bottom),
    )


def quicker(
    helium: Callable[[kit.Operator[Any], kit.Core], kit.Kernel],
    own: Callable[[kit.Operator[Any], kit.Core], kit.Kernel],
    op: kit.AnyOperator,
    core: kit.Core,
) -> kit.Kernel:
    """`helium` on cores that have it, where that takes the operator; else `own`."""
    if core.mve:
        with suppress(kit.NoKernelError):
            return helium(op, core)
    return own(op, core)


def strided_image(op: kit.AnyOperator) -> frozenset[str]:
    """The operands that may be strided views: those of one image, if the kernel is one of
    Thimble's.
    """
    if op.input(kit.INPUT).shape[0] != 1:
        return frozenset()
    return frozenset((op.x.name, op.y.name))


def scaled(
    op: kit.Operator[Any], filters: packing.Int8, *, partial: bool = False
) -> Callable[[], packing.Scaling]:
    """How the sums of filters [channels, taps] are scaled, by the operator's activation and
    rounding. The scaling is computed when the returned function is called.

    With `partial` the kernel itself subtracts the input's zero point and skips taps outside the
    image. Raises ScaleError at once as `check_sums` does, or if its float factor is absurd.
    """
    tensors = (op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y)
    ends = (op.attributes.activation, op.attributes.rounding)
    return tensor_scaling(tensors, kit.bias_of(op, len(filters)), *ends, filters, partial=partial)


def tensor_scaling(
    tensors: tuple[kit.Tensor, kit.Tensor, kit.Tensor],
    bias: kit.Int32,
    activation: kit.Activation,
    rounding: kit.Rounding,
    filters: packing.Int8,
    *,
    partial: bool = False,
) -> Callable[[], packing.Scaling]:
    """`scaled` by the quantisation of input, weights and output."""
    x, weights, y = tensors
    zero_point = weight_zero_point(weights)
    if rounding is kit.Rounding.ONNX:
        onnx_factors(x, weights, y)
        return lambda: onnx_scaling(x, weights, y, filters, bias, partial, zero_point)
    multiplier, shift = channel_requantisation(x, weights, y, len(filters))
    sums = packing.sums_of(bias, filters, x.q.zero_point, partial, zero_point)
    kit.check_sums(sums.lowest, sums.highest, multiplier, shift, y.q.zero_point)
    return lambda: packing.scaling(
        bias,
        filters,
        x.q.zero_point,
        multiplier,
        shift,
        kit.clamp_range(activation, y),
        y.q.zero_point,
        partial,
        zero_point,
    )


@dataclass(frozen=True)
class Sums:
    """All that decides how the sums of an operator are scaled; equal for all its forms and blocks,
    which read the very same tensors (a Tensor is equal to itself alone).
    """

    kind: str
    weights: kit.Tensor
    bias: kit.Tensor | None
    x: kit.Quantisation
    y: kit.Quantisation
    activation: kit.Activation
    rounding: kit.Rounding

    @classmethod
    def of(cls, op: kit.Operator[Convolution]) -> Sums:
        """The sums of a conv2d or a depthwise_conv2d."""
        operands = op.input(kit.WEIGHTS), op.given(kit.BIAS), op.input(kit.INPUT).q, op.y.q
        return cls(op.kind, *operands, op.attributes.activation, op.attributes.rounding)

    def read(self) -> tuple[packing.Int8, kit.Int32]:
        """The channels' filters [channels, taps] and biases."""
        filters = rows_of(self.weights, depthwise=self.kind == "depthwise_conv2d")
        if self.bias is None:
            return filters, np.zeros(len(filters), np.int32)
        return filters, kit.constant_of(self.bias).reshape(-1).astype(np.int32)


@lru_cache(maxsize=REMEMBERED)
def scaling_of(sums: Sums) -> packing.Scaling:
    """The channels' filters [channels, taps] with their scales. Raises as `tensor_scaling`."""
    x, y = (kit.Tensor(name, (), kit.DType.INT8, q) for name, q in (("x", sums.x), ("y", sums.y)))
    (filters, bias), operands = sums.read(), (x, sums.weights, y)
    return tensor_scaling(operands, bias, sums.activation, sums.rounding, filters)()


def own_lane_endings(op: kit.Operator[Convolution], scales: packing.Scaling) -> packing.Ending:
    """`lane_endings` by the operator's output and activation."""
    y, zero_point = op.y, weight_zero_point(op.input(kit.WEIGHTS))
    activation = kit.clamp_range(op.attributes.activation, y)
    return endings.lane_endings(scales, y.q.zero_point, activation, zero_point)
