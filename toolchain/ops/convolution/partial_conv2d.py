"""int32 sums of a convolution over some of its input channels or kernel rows.

A convolution that is split along what it sums over becomes a chain of these, each of which adds to
the sums of the one before; `requantise_sums` then makes int8 of the last. Inputs: int8 image, OHWI
weights of this part, bias or '', int32 sums to add to or ''. Sums wrap as two's complement, so the
order of the parts does not matter. Sources: SERENITY (MLSys 2020), section 3.3, channel-wise
partition; MOTES, section 4.3, reduced axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.convolution import common
from toolchain.ops.convolution.common import Windowed
from toolchain.ops.convolution.kernels import thimble_partial_conv_s8
from toolchain.ops.convolution.sums import integer_sums


@dataclass(frozen=True)
class PartialConv2D(Windowed):
    """Attributes of partial_conv2d, which has no groups."""


def _infer(op: kit.Operator[Windowed]) -> kit.TensorTypes:
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    if len(x.shape) != 4 or len(weights.shape) != 4 or weights.shape[3] != x.shape[3]:
        raise ValueError(f"needs NHWC input and OHWI weights, got {x.shape} and {weights.shape}")
    size = common.window_of(op).output_size(x.shape[1], x.shape[2])
    shape = (x.shape[0], *size, weights.shape[0])
    common.check_bias(op, shape[3])
    return kit.sums_type(op, thimble_partial_conv_s8.SUMS, shape)


def _reference(op: kit.Operator[Windowed], inputs: kit.Inputs) -> kit.Arrays:
    return kit.added_sums(op, integer_sums(op, inputs), inputs)


def _sample(rng: np.random.Generator) -> kit.Graph:
    kernel = (int(rng.integers(1, 5)), int(rng.integers(1, 4)))
    stride = (int(rng.integers(1, 4)), int(rng.integers(1, 3)))
    dilation = (1, 2) if stride == (1, 1) else (1, 1)
    size, window = common.random_window(rng, kit.Window(kernel, stride, dilation), 6)
    channels, depth = int(rng.integers(1, 9)), int(rng.integers(1, 14))
    w_shape, y_shape = (channels, *kernel, depth), (1, *window.output_size(*size), channels)
    taps = kernel[0] * kernel[1] * depth
    operands, _ = common.random_operands(rng, (1, *size, depth), w_shape, taps, biased=0.5)
    attributes = PartialConv2D(stride, dilation, window.padding)
    given = common.with_sums(rng, operands, y_shape)
    return kit.sample("partial_conv2d", attributes, *given, name="partial")


SPEC = kit.Form(
    quantised=kit.WEIGHTED,
    kind="partial_conv2d",
    attributes=PartialConv2D,
    infer=_infer,
    reference=_reference,
    select=thimble_partial_conv_s8.kernel,
    sample=_sample,
    macs=common.filter_macs,
    types=frozenset({kit.DType.INT8, kit.DType.INT32}),
    made_by_passes=True,
    limits="int8 image, int32 sums; made by rewriting only",
)
