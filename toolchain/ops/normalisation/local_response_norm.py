"""Elements divided by a power of the squares around them. TFLite LOCAL_RESPONSE_NORMALIZATION.

y = x * (bias + alpha * s) ** -beta, with s the sum of the squares of the element and its neighbours
along the last dimension, up to `radius` on each side. As in LiteRT's default kernel the sum moves
along: one square comes in, another goes. LiteRT's reference kernel leaves out the last neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math
from toolchain.ops.elementwise.common import infer_unary, sample_shape
from toolchain.ops.normalisation.rows import row_extents
from toolchain.ops.readers.float32 import check_float_node

_ROOT = 0.5


@dataclass(frozen=True)
class LocalResponseNorm(kit.Attributes):
    """All but `radius` are exact float32."""

    radius: int = 5
    bias: float = 1.0
    alpha: float = 1.0
    beta: float = 0.5


def _radius(op: kit.Operator[LocalResponseNorm]) -> int:
    """No more than reaches any neighbour."""
    return min(op.attributes.radius, op.x.shape[-1])


def _infer(op: kit.Operator[LocalResponseNorm]) -> kit.TensorTypes:
    """Raises ValueError for a scalar, or a radius below 0."""
    if not op.x.shape or op.attributes.radius < 0:
        raise ValueError(f"{op.x} has no neighbours within {op.attributes.radius}")
    return infer_unary(op)


def _reference(op: kit.Operator[LocalResponseNorm], inputs: kit.Inputs) -> kit.Arrays:
    attributes, shape, radius = op.attributes, op.y.shape, _radius(op)
    rows = inputs[0].reshape(-1, shape[-1]).astype(np.float32)
    beside = np.zeros((len(rows), radius), np.float32)
    result = np.empty_like(rows)
    with np.errstate(all="ignore"):
        squares = np.hstack([beside, rows * rows * np.float32(attributes.alpha), beside]).T
        total = np.zeros(len(rows), np.float32)
        for square in squares[: 2 * radius]:
            total = total + square
        for place in range(shape[-1]):
            total = total + squares[place + 2 * radius]
            result[:, place] = rows[:, place] * _factor(
                np.float32(attributes.bias) + total, attributes.beta
            )
            total = total - squares[place]
    return (result.reshape(shape),)


def _factor(base: kit.Float32, beta: float) -> kit.Float32:
    if beta == 1:
        return np.reciprocal(base)
    if beta == _ROOT:
        return np.reciprocal(np.sqrt(base))
    return float_math.power(base, np.full_like(base, -np.float32(beta)))


def _select(op: kit.Operator[LocalResponseNorm], core: kit.Core) -> kit.Kernel:
    x, attributes = op.x, op.attributes
    columns = x.shape[-1]
    rows = x.elements // columns
    params = kit.Struct(
        "thimble_local_response_norm_params",
        {
            "rows": rows,
            "columns": columns,
            "radius": _radius(op),
            "bias": attributes.bias,
            "alpha": attributes.alpha,
            "beta": attributes.beta,
        },
    )
    call = kit.Call(
        "thimble_local_response_norm_f32",
        {"params": params, "input": kit.Input(0), "output": kit.Output(0)},
    )
    powers = 0 if attributes.beta in (1, _ROOT) else x.elements
    return kit.Kernel(
        (call,),
        row_extents("params.rows", "params.columns"),
        find_terms=lambda: {"call": 1.0, "row": rows, "element": x.elements, "power": powers},
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    check_float_node(node)
    options = node.options
    if int(options.radius) < 0:
        raise node.unsupported(f"its radius is {options.radius}")
    numbers = (float(np.float32(getattr(options, name))) for name in ("bias", "alpha", "beta"))
    return kit.ReadOp(LocalResponseNorm(int(options.radius), *numbers), (0,))


def _write(op: kit.Operator[LocalResponseNorm]) -> kit.WrittenOp:
    attributes = op.attributes
    options = {
        "radius": attributes.radius,
        "bias": attributes.bias,
        "alpha": attributes.alpha,
        "beta": attributes.beta,
    }
    return kit.WrittenOp(
        "LOCAL_RESPONSE_NORMALIZATION", "LocalResponseNormalizationOptions", options
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    """LiteRT takes four dimensions."""
    shape = (1, *(int(d) for d in rng.integers(1, 6, 2)), *sample_shape(rng, 1, 40))
    numbers = (rng.uniform(0.5, 2), 10.0 ** rng.uniform(-4, 0), rng.choice([0.5, 0.75, 1.0]))
    exact = (float(np.float32(number)) for number in numbers)
    attributes = LocalResponseNorm(int(rng.integers(0, 6)), *exact)
    x = kit.Tensor("x", shape, kit.DType.FLOAT32)
    return kit.sample("local_response_norm", attributes, x, name="norm")


SPEC = kit.Form(
    kind="local_response_norm",
    attributes=LocalResponseNorm,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=kit.leading_axes,
    tflite=kit.TfliteBinding(("LOCAL_RESPONSE_NORMALIZATION",), _read, _write),
    dtype=kit.DType.FLOAT32,
    limits="float32, last dimension",
)
