"""Weights and samples of the kinds of ONNX's dynamic quantisation.

`frontends.onnx.dynamic` joins DynamicQuantizeLinear, a product of integers and its scaling. The
operator then has the inputs: floats, weights, none, zero points of the weights, their scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.hybrid.sums import hybrid_sample
from toolchain.ops.readers.float32 import float32_sample

ZERO_POINTS, SCALES, OPERANDS = 3, 4, 5
ROWS_ARE_STORED = "thimble.rows_are_stored"
"""The attribute of a product whose first factor is integers, not floats."""
LIMITS = (
    "float32, quantised as DynamicQuantizeLinear does, with constant int8 or uint8 weights of any "
    "zero point"
)
_INT8 = np.iinfo(np.int8)


@dataclass(frozen=True)
class DynamicWeights:
    """Weights as int8: uint8 is stored 128 lower, and zero points are 0 where that fits.

    One scale and zero point, or one for each index of an axis.
    """

    data: NDArray[np.int8]
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]

    def quantisation(self, axis: int) -> kit.Quantisation:
        return kit.Quantisation(
            self.scales, self.zero_points, axis if len(self.scales) > 1 else None
        )

    def for_each(self, count: int) -> DynamicWeights:
        """These weights with `count` scales."""
        if len(self.scales) == count:
            return self
        return DynamicWeights(self.data, self.scales * count, self.zero_points * count)


def dynamic_weights(node: kit.OnnxNode, axis: int) -> DynamicWeights:
    """The constant weights, with scales along dimension `axis`.

    Raises UnsupportedError where they are not known before the model runs.
    """
    if not node.is_constant(kit.WEIGHTS):
        raise node.unsupported(
            "both of its factors are quantised while the model runs",
            "quantise with extra_options={'MatMulConstBOnly': True}",
        )
    if node.inputs <= SCALES or not node.has(SCALES):
        raise node.unsupported(
            "it is not between a DynamicQuantizeLinear and a Cast to float with the Mul of its "
            "scales",
            "quantise the float model with onnxruntime.quantization.quantize_dynamic",
        )
    data = node.constant(kit.WEIGHTS).data
    units = data.shape[axis]
    scales = node.constant(SCALES).data.astype(np.float32).reshape(-1)
    given = node.constant(ZERO_POINTS).data if node.has(ZERO_POINTS) else np.zeros(1, data.dtype)
    zeros = np.asarray(given).astype(np.int64).reshape(-1)
    if scales.size not in (1, units) or zeros.size not in (1, units):
        raise node.unsupported(f"{scales.size} scales and {zeros.size} zero points of {units}")
    count = max(scales.size, zeros.size)
    zeros = np.broadcast_to(zeros, count)
    along = [1] * data.ndim
    along[axis] = -1
    centred = data.astype(np.int64) - zeros.reshape(along)
    if centred.min() < _INT8.min or centred.max() > _INT8.max:
        shift = 128 if data.dtype == np.uint8 else 0
        centred, zeros = data.astype(np.int64) - shift, zeros - shift
    else:
        zeros = np.zeros(count, np.int64)
    return DynamicWeights(
        centred.astype(np.int8),
        tuple(float(scale) for scale in np.broadcast_to(scales, count)),
        tuple(int(zero) for zero in zeros),
    )


def dynamic_form(hybrid: kit.Form[Any], **changed: Any) -> kit.Form[Any]:
    """A kind of its own of a hybrid form: it is of floats, whatever weights, and not in TFLite."""
    float32 = {"dtype": kit.DType.FLOAT32, "weights": None, "name": "", "tflite": None}
    return replace(hybrid, **{**float32, **changed})


def dynamic_sample(
    plain: kit.Form[Any],
    kind: str,
    axis: int,
    attributes: Callable[[kit.Op, np.random.Generator], kit.Attributes],
    *,
    alike: bool = False,
) -> Callable[[np.random.Generator], kit.Graph]:
    """Samples of `kind`, made of those of the int8 kind `plain`: some of several images, some with
    zero points (`alike`: the same for all channels), some with one scale.
    """

    def zero_points(rng: np.random.Generator, count: int) -> tuple[int, ...]:
        if rng.random() < 0.4:
            return (0,) * count
        drawn = rng.integers(-128, 128, 1 if alike else count)
        return tuple(int(zero) for zero in np.broadcast_to(drawn, count))

    of_one = hybrid_sample(
        float32_sample(plain.sample, kind),
        axis,
        attributes,
        per_channel=lambda rng: alike or bool(rng.random() < 0.5),
        zero_points=zero_points,
    )

    def made(rng: np.random.Generator) -> kit.Graph:
        graph = of_one(rng)
        batches = int(rng.choice([1, 1, 2, 3]))
        return kit.with_tensors(
            graph,
            lambda t: (
                replace(t, shape=(batches * t.shape[0], *t.shape[1:]))
                if t.name in ("x", "y")
                else t
            ),
        )

    return made
