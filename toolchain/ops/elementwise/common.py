"""Parts that element-wise operators share: broadcasting, tables, type checks, safe overlaps,
samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import DType
from toolchain.ops import kit

Int64 = NDArray[np.int64]
_BEYOND_FLOAT32 = 2.0**200


@dataclass(frozen=True)
class Loop:
    """An outer loop of a broadcast: its variable, its count, and the elements that each operand and
    the output move on.
    """

    variable: str
    count: int
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Broadcast:
    """Outer loops around runs of `size` elements. `steps`: 1 for each operand that moves along a
    run, 0 for one that is constant.
    """

    loops: tuple[Loop, ...]
    size: int
    steps: tuple[int, ...]

    def moves(self, place: int) -> tuple[tuple[str, int], ...]:
        """How far the pointer of an operand, or of the output behind them, moves in each loop."""
        return tuple((loop.variable, loop.steps[place]) for loop in self.loops if loop.steps[place])

    @property
    def around(self) -> tuple[kit.Loop, ...]:
        """The loops around a call."""
        return tuple(kit.Loop(loop.variable, loop.count) for loop in self.loops)


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of operands that broadcast. Raises ValueError where they do not."""
    return tuple(int(size) for size in np.broadcast_shapes(*shapes))


def broadcast(*shapes: tuple[int, ...], variables: str = "") -> Broadcast:
    """The fewest loops that walk operands of these shapes together; adjacent dimensions are merged.

    `variables`: those of the outermost loops; others are i and the depth.
    """
    rank = max(map(len, shapes))
    merged: list[tuple[int, tuple[bool, ...]]] = []
    for sizes in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True):
        size = next((own for own in sizes if own != 1), 1)
        moves = tuple(own != 1 for own in sizes)
        if size == 1:
            continue
        if merged and merged[-1][1] == moves:
            merged[-1] = (merged[-1][0] * size, moves)
        else:
            merged.append((size, moves))
    size, moves = merged[-1] if merged else (1, (True,) * len(shapes))
    loops = []
    for depth, (count, outer) in enumerate(merged[:-1]):
        inner = merged[depth + 1 :]
        steps = [
            math.prod(n for n, moving in inner if moving[operand]) if moved else 0
            for operand, moved in enumerate(outer)
        ]
        whole = math.prod(n for n, _ in inner)
        variable = variables[depth] if depth < len(variables) else f"i{depth}"
        loops.append(Loop(variable, count, (*steps, whole)))
    return Broadcast(tuple(loops), size, tuple(map(int, moves)))


def infer_unary(op: kit.AnyOperator) -> tuple[kit.TensorType, ...]:
    """Shape rule of a function of one operand: the input's shape and type."""
    x = op.x
    return (kit.TensorType(x.shape, x.dtype),)


def infer_broadcast(op: kit.AnyOperator) -> tuple[kit.TensorType, ...]:
    """Shape rule of two operands. Raises ValueError if their types differ or their shapes do not
    broadcast.
    """
    one, two = op.x, op.input(1)
    if one.dtype is not two.dtype:
        raise ValueError(f"operands differ in type: {one} and {two}")
    try:
        shape = broadcast_shape(one.shape, two.shape)
    except ValueError:
        raise ValueError(f"shapes do not broadcast: {one} and {two}") from None
    return (kit.TensorType(shape, one.dtype),)


def infer_of_one_shape(op: kit.AnyOperator) -> tuple[kit.TensorType, ...]:
    """Shape rule of two operands of a kind that LiteRT does not broadcast: it refuses other ranks,
    and reads beyond the end of the second operand where other sizes let it (`Atan2Prepare`).

    Raises ValueError if their types or shapes differ.
    """
    one, two = op.x, op.input(1)
    if one.shape != two.shape:
        raise ValueError(
            f"operands differ in shape, and LiteRT does not broadcast them: {one} and {two}; "
            "broadcast them before it, with BROADCAST_TO"
        )
    return infer_broadcast(op)


def overlaps_same_shape(op: kit.AnyOperator, core: kit.Core) -> tuple[kit.SafeOverlap, ...]:
    """The safe overlaps of an elementwise kernel: any operand with the output's shape and type."""
    y = op.y
    return tuple(
        kit.SafeOverlap(index)
        for index, x in enumerate(op.inputs)
        if x is not None and x.elements == y.elements and x.dtype is y.dtype
    )


def require_types(op: kit.AnyOperator, *types: DType) -> None:
    """Raise UnsupportedError unless all operands and results are quantised per tensor and have one
    of `types`.
    """
    for tensor in (*op.inputs, op.y):
        if tensor is None:
            continue
        if tensor.dtype not in types:
            names = " or ".join(t.value for t in types)
            raise op.refused(f"tensor {tensor} is not {names}; quantise the model to int8")
        if tensor.quantisation is None or tensor.quantisation.per_channel:
            raise op.refused(f"tensor {tensor} needs one scale and zero point")


def check_node(node: kit.TfliteNode, *types: DType) -> None:
    """`require_types` for an operator in a TFLite file."""
    for tensor in (*node.inputs, *node.outputs):
        if tensor is None:
            continue
        if tensor.dtype not in types:
            raise node.unsupported(
                f"{tensor.dtype.value} tensor {tensor.name!r}", "quantise the model to int8"
            )
        check_per_tensor(node, tensor)


def check_per_tensor(node: kit.TfliteNode, tensor: kit.Tensor) -> None:
    """Raise UnsupportedError unless the tensor has one scale and one zero point."""
    if tensor.quantisation is None or tensor.quantisation.per_channel:
        raise node.unsupported(
            f"tensor {tensor.name!r} has not one scale and zero point",
            "quantise it per tensor: converters give scales of channels to weights alone",
        )


def ratio_float32(*factors: float, divisor: float) -> float:
    """The product of `factors` over `divisor` in float32, left to right, as TFLite's C++ computes
    it.

    A result that overflows float32 becomes a huge finite number, which later range checks refuse.
    """
    with np.errstate(over="ignore", under="ignore"):
        product = np.float32(factors[0])
        for factor in factors[1:]:
            product = product * np.float32(factor)
        ratio = float(product / np.float32(divisor))
    return math.copysign(_BEYOND_FLOAT32, ratio) if math.isinf(ratio) else ratio


def rescaling_factor(x: kit.Tensor, y: kit.Tensor) -> tuple[int, int]:
    """Multiplier and shift from one scale to another, of which TFLite divides in float32."""
    return kit.quantize_multiplier(ratio_float32(x.q.scale, divisor=y.q.scale))


def table_of(
    function: Callable[[Int64], Int64], source: kit.DType, target: kit.DType
) -> NDArray[np.int8]:
    """The results of `function` for all 256 stored values, in the order of their
    bytes as unsigned.
    """
    stored = np.arange(256, dtype=np.uint8).view(source.numpy).astype(np.int64)
    return function(stored).astype(target.numpy).view(np.int8)


@dataclass(frozen=True)
class Line:
    """The function clamp(slope * stored + offset, low, high), before rounding."""

    slope: float
    offset: float
    low: int = -128
    high: int = 127


def rescaling(
    x: kit.Tensor, y: kit.Tensor, low: int = -128, high: int = 127, divisor: float = 1.0
) -> Line:
    """The line that converts one int8 quantisation to another, and divides by `divisor`."""
    slope = x.q.scale / (y.q.scale * divisor)
    return Line(slope, y.q.zero_point - slope * x.q.zero_point, low, high)


def scalar_constant(op: kit.AnyOperator) -> tuple[int, int] | None:
    """If one of two operands is a constant scalar: the index of the other operand, and the
    constant.
    """
    for index in (0, 1):
        x, other = op.input(index), op.input(1 - index)
        whole = not x.is_constant and x.elements == op.y.elements
        if whole and other.constant is not None and other.elements == 1:
            return index, int(other.constant.reshape(-1)[0])
    return None


def reference_unary(
    op: kit.AnyOperator, inputs: Sequence[kit.Array], function: Callable[[Int64], Int64]
) -> tuple[kit.Array, ...]:
    """The outputs of an operator that is `function` of each stored value."""
    y = op.y
    return (function(inputs[0].astype(np.int64)).astype(y.dtype.numpy).reshape(y.shape),)


def stored(values: Int64, tensor: kit.Tensor) -> Int64:
    """Multiples of the tensor's scale as it stores them: with its zero point, within its type."""
    info = np.iinfo(tensor.dtype.value)
    clamped: Int64 = np.clip(values + tensor.q.zero_point, int(info.min), int(info.max))
    return clamped


def reach(tensor: kit.Tensor) -> int:
    """The greatest magnitude of a stored value less the zero point; of a constant, its own."""
    zero_point, info = tensor.q.zero_point, np.iinfo(tensor.dtype.value)
    stored = np.array([info.min, info.max]) if tensor.constant is None else tensor.constant
    return int(np.abs(stored.astype(np.int64) - zero_point).max(initial=0))


def sample_shape(rng: np.random.Generator, max_rank: int = 4, max_dim: int = 9) -> tuple[int, ...]:
    """A random shape of rank 1 to `max_rank`. Dimensions of 1 are common."""
    rank = int(rng.integers(1, max_rank + 1))
    return tuple(1 if rng.random() < 0.2 else int(rng.integers(1, max_dim)) for _ in range(rank))


def sample_broadcast_shapes(
    rng: np.random.Generator, max_rank: int = 5
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast: equal, one scalar, one per channel, of lower rank, or with 1s
    anywhere.
    """
    shape = sample_shape(rng, max_rank, 7)
    other: tuple[int, ...]
    match int(rng.integers(6)):
        case 0:
            return shape, shape
        case 1:
            other = (1,) if rng.random() < 0.5 else ()
        case 2:
            other = shape[-1:]
        case 3:
            other = shape[int(rng.integers(len(shape))) :]
        case _:
            other = tuple(1 if rng.random() < 0.5 else d for d in shape)
            shape = tuple(
                1 if o == d and rng.random() < 0.3 else d for o, d in zip(other, shape, strict=True)
            )
    return (shape, other) if rng.random() < 0.5 else (other, shape)


def sample_quantisation(
    rng: np.random.Generator, dtype: kit.DType = kit.DType.INT8, scale: float | None = None
) -> kit.Quantisation:
    """A random quantisation. The scale is between 2**-9 and 2 unless given; zero points at the ends
    of the range are common. int16 and int32 have zero point 0.
    """
    info = np.iinfo(dtype.value)
    ends = (int(info.min), int(info.max), int(info.min) + 128)
    zero = int(rng.choice(ends)) if rng.random() < 0.4 else int(rng.integers(info.min, info.max))
    zero = 0 if dtype in (kit.DType.INT16, kit.DType.INT32) else zero
    chosen = scale if scale is not None else math.exp2(rng.uniform(-9, 1))
    if scale is None and rng.random() < 0.2:
        chosen = math.exp2(round(math.log2(chosen)))
    return kit.Quantisation((float(np.float32(chosen)),), (zero,))


def sample_unary(
    rng: np.random.Generator,
    kind: str,
    attributes: kit.Attributes,
    output: kit.Quantisation | None = None,
) -> kit.Graph:
    """A graph of an int8 operator from 'x' to 'y', of random shape, usually with related scales."""
    shape = sample_shape(rng)
    q = sample_quantisation(rng)
    if output is None:
        related = q.scale * math.exp2(rng.uniform(-3, 3)) if rng.random() < 0.8 else q.scale
        output = sample_quantisation(rng, scale=related)
    return kit.sample(kind, attributes, kit.Tensor("x", shape, kit.DType.INT8, q), q=output)


def sample_operands(
    rng: np.random.Generator,
    shapes: Sequence[tuple[int, ...]],
    quantisations: Sequence[kit.Quantisation],
) -> list[kit.Tensor]:
    """Two int8 operands 'a' and 'b', of which one may be constant."""
    constant = int(rng.integers(4))
    return [
        kit.Tensor(
            "ab"[index],
            shape,
            kit.DType.INT8,
            quantisations[index],
            rng.integers(-128, 128, shape).astype(np.int8) if index == constant else None,
        )
        for index, shape in enumerate(shapes)
    ]


def sample_binary(
    rng: np.random.Generator, kind: str, attributes: kit.Attributes, output_scale: float = 1.0
) -> kit.Graph:
    """A graph of an int8 operator from 'a' and 'b' to 'y', with broadcasting. Either may be
    constant.

    The output's scale is the larger operand's times `output_scale`. The kind need not take int8.
    """
    shapes = sample_broadcast_shapes(rng)
    logs = rng.uniform(-8, 0) + np.where(rng.random(2) < 0.2, 0.0, rng.uniform(-3, 3, 2))
    log_output = math.log2(output_scale)
    if rng.random() < 0.25:  # powers of two: results fall exactly on halves
        logs, log_output = np.round(logs), round(log_output)
    scales = [math.exp2(log) for log in logs]
    quants = [sample_quantisation(rng, scale=s) for s in scales]
    operands = sample_operands(rng, shapes, quants)
    scale = math.exp2(max(logs) + log_output)
    q = sample_quantisation(rng, scale=scale)
    types = [kit.TensorType(broadcast_shape(*shapes), kit.DType.INT8)]
    return kit.sample(kind, attributes, *operands, q=q, types=types)


def with_output_scale(graph: kit.Graph, scale: float) -> kit.Graph:
    """An int16 sample whose results have another scale."""
    q = kit.Quantisation((float(np.float32(scale)),), (0,))
    y = replace(graph.tensors["y"], quantisation=q)
    return replace(graph, tensors={**graph.tensors, "y": y})


def zero_points_of(op: kit.AnyOperator) -> tuple[int, int, int]:
    """Zero points of both operands and of the result."""
    return op.x.q.zero_point, op.input(1).q.zero_point, op.y.q.zero_point


def scales_of(op: kit.AnyOperator) -> tuple[float, float, float]:
    """Scales of both operands and of the result."""
    return op.x.q.scale, op.input(1).q.scale, op.y.q.scale


def scaled_operands(
    scalings: Sequence[tuple[int, int]], zero_points: Sequence[int] = ()
) -> Mapping[str, int]:
    """The parameters of a kernel that scales each operand: `offset_1` where there are zero points,
    `multiplier_1`, `shift_1`, `offset_2` and so on.
    """
    params: dict[str, int] = {}
    for number, (multiplier, shift) in enumerate(scalings[:2], start=1):
        if zero_points:
            params[f"offset_{number}"] = -zero_points[number - 1]
        params |= {f"multiplier_{number}": multiplier, f"shift_{number}": shift}
    return params
