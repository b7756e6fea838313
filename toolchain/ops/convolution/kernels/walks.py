"""What the kernels of int8 depthwise convolutions share: how they go over the image, and how the
sums of their channels end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.arithmetic.fixed_point import Int32
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.common import Convolution, weight_zero_point
from toolchain.ops.convolution.endings import raised_endings
from toolchain.ops.convolution.kernel_parts import (
    own_requant,
    packed_comment,
    scaled,
    strided_image,
    tensor_scaling,
)
from toolchain.ops.convolution.packing import Ending, Int8, Scaling
from toolchain.ops.convolution.structs import conv_shape, own_arguments
from toolchain.ops.weighted import (
    BIAS,
    INPUT,
    WEIGHTS,
    constant_of,
    has_bias,
)
from toolchain.ops.window import Window

_REMEMBERED = 256
_INT8 = (-128, 127)
Endings = Callable[[Scaling, int, int], Ending]
"""How sums end, by their scales, the output's zero point and that of the weights."""


_TRANSPOSED = "Height and width are swapped below: the kernel walks the image transposed."


@dataclass(frozen=True)
class Walk:
    """How an own depthwise kernel goes over the image: `band` output rows at a time.

    `transposed`: rows are columns, in `window` too. `at_once`: channels whose lines are made
    together, if not 0.
    """

    window: Window
    band: int
    transposed: bool = False
    at_once: int = 0


def channel_filters(op: kit.AnyOperator) -> Int8:
    """Depthwise filters as [channels, height * width]."""
    return filters_of(op.input(WEIGHTS))


def filters_of(weights: kit.Tensor) -> Int8:
    """Those of weights [1, height, width, channels]."""
    return constant_of(weights).reshape(-1, weights.shape[3]).T.astype(np.int8, copy=False)


def along_walk(filters: Int8, window: Window, transposed: bool) -> Int8:
    """Filters [channels, height * width] as a walk takes them: [channels, width * height] if that
    is `transposed`.
    """
    if not transposed:
        return filters
    return filters.reshape(-1, *window.kernel).transpose(0, 2, 1).reshape(len(filters), -1)


def waiting_rows(rows: int, window: Window) -> int:
    """How many of `rows` output rows a kernel for blocks of channels keeps before it writes the
    first.

    By then nothing reads the input rows that an output in the input's place overwrites.
    """
    return min(rows, -(-(window.padding.top + 1) // window.stride[0]))


def walked_depthwise(
    op: kit.Operator[Convolution],
    function: str,
    walk: Walk,
    pack: Callable[[], Int32],
    scratch_bytes: int,
    extents: Callable[[kit.Touched], kit.Extents],
) -> kit.Kernel:
    """The kernel of a walk, without overlaps and cost terms; `pack` gives its parameters."""

    def calls(input_line: int, output_line: int) -> tuple[kit.Call, ...]:
        shape = conv_shape(
            op,
            walk.window,
            depth=1,
            lines=(input_line, output_line),
            band=walk.band,
            at_once=walk.at_once,
            transposed=walk.transposed,
        )
        note = _TRANSPOSED if walk.transposed else ""
        return (kit.Call(function, own_arguments(shape, own_requant(op)), note=note),)

    comment = packed_comment("filters", op.input(WEIGHTS).shape, function)
    return kit.Kernel(
        calls(0, 0),
        extents,
        constants=(kit.Constant("parameters", pack, comment),),
        scratch_bytes=scratch_bytes,
        strided=strided_image(op),
        calls_with_gaps=calls,
    )


def ended(op: kit.Operator[Convolution], ending: Endings) -> Callable[[], tuple[Scaling, Ending]]:
    """The channels' filters [channels, height * width] with their scales, and how their sums end by
    `ending` before the activation, which is the kernel's last step. Computed when the returned
    function is called. Raises ScaleError at once as `check_sums` does.
    """
    scaled(op, channel_filters(op))
    attributes, weights = op.attributes, op.input(WEIGHTS)
    bias = op.input(BIAS) if has_bias(op.op) else None
    given = (op.input(INPUT).q, op.y.q)
    return lambda: _ended(ending, weights, bias, given, attributes.activation, attributes.rounding)


@lru_cache(maxsize=_REMEMBERED)
def _ended(
    ending: Endings,
    weights: kit.Tensor,
    bias: kit.Tensor | None,
    given: tuple[kit.Quantisation, kit.Quantisation],
    activation: Activation,
    rounding: Rounding,
) -> tuple[Scaling, Ending]:
    """The same for all forms and all blocks of an operator, which read the very same tensors (a
    Tensor is equal to itself alone). `given`: of its input and output.
    """
    x, y = (kit.Tensor(name, (), kit.DType.INT8, q) for name, q in zip("xy", given, strict=True))
    filters = filters_of(weights)
    added = np.zeros(len(filters), np.int32)
    if bias is not None:
        added = constant_of(bias).reshape(-1).astype(np.int32)
    scales = tensor_scaling((x, weights, y), added, activation, rounding, filters)()
    return scales, ending(scales, y.q.zero_point, weight_zero_point(weights))


def raised(scales: Scaling, offset: int, weight_zero_point: int) -> Ending:
    """`raised_endings` before an activation."""
    return raised_endings(scales, offset, _INT8, weight_zero_point)


def slow_endings(op: kit.Operator[Convolution], ending: Ending) -> tuple[str, NDArray[np.bool_]]:
    """The same as `slow_channels`, of parameters whose codes say so by their sign."""
    path = "float" if op.attributes.rounding is Rounding.ONNX else "slow"
    return path, ending.code < 0
