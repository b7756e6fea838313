"""Samples of operators: random shapes and types of their tensors, and graphs of one operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, State, Tensor
from toolchain.ops import spec_of
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.spec import TensorType


def sample(
    kind: str,
    attributes: Attributes,
    *inputs: Tensor | None,
    q: Quantisation | None = None,
    outputs: Sequence[str] = ("y",),
    types: Sequence[TensorType] | None = None,
    states: Iterable[State] = (),
    name: str = "",
) -> Graph:
    """A graph of one operator, called `name` or as its kind. None stands for an absent input.

    `types` are those of the outputs; by default the kind's shape rule gives them. The first output
    is quantised by `q`, and without one as the first input; so are others of that input's type.
    Next values of states are quantised as these. The caller gives the inputs that are neither
    constant nor states, and gets the outputs that are no states.
    """
    states = tuple(states)
    given = {x.name: x for x in inputs if x is not None}
    names = tuple("" if x is None else x.name for x in inputs)
    op = Op(kind, name or kind, names, tuple(outputs), attributes)
    kept = {state.output: given[state.input].quantisation for state in states}
    variables = {state.input for state in states}
    asked = [x.name for x in given.values() if not (x.is_constant or x.name in variables)]
    first = next(iter(given.values()))
    if types is None:
        untyped = [Tensor(output, (), first.dtype) for output in outputs]
        hollow = Graph.build("sample", [*given.values(), *untyped], [op], asked, outputs)
        types = spec_of(kind).infer(op, hollow)
    made = []
    for place, (output, found) in enumerate(zip(outputs, types, strict=True)):
        alike = first.quantisation if found.dtype is first.dtype else None
        quantisation = kept.get(output, alike if q is None or place else q)
        made.append(Tensor(output, found.shape, found.dtype, quantisation))
    results = [output for output in outputs if output not in kept]
    return Graph.build("sample", [*given.values(), *made], [op], asked, results, states)


def with_tensors(graph: Graph, changed: Callable[[Tensor], Tensor]) -> Graph:
    """A graph whose tensors are others of the same names, each made of the one before."""
    tensors = [changed(tensor) for tensor in graph.tensors.values()]
    return Graph.build(graph.name, tensors, graph.ops, graph.inputs, graph.outputs, graph.states)


def constant_sample(name: str, data: NDArray[np.generic], q: Quantisation | None = None) -> Tensor:
    """A constant tensor of the array's shape and type."""
    return Tensor(name, data.shape, DType(data.dtype.name), q, data)


def sample_shape(rng: np.random.Generator, rank: int, elements: int = 2000) -> tuple[int, ...]:
    """A random shape of this rank with at most `elements` elements; dimensions of 1 occur."""
    high = max(2, round(elements ** (1 / max(rank, 1))) + 1)
    return tuple(int(d) for d in rng.integers(1, high, rank))


def sample_scale(rng: np.random.Generator, low: float, high: float) -> float:
    """A random scale of 2**low to 2**high."""
    return float(np.float32(2.0 ** rng.uniform(low, high)))


def sample_activation(rng: np.random.Generator) -> Activation:
    """A random fused activation."""
    drawn: Activation = rng.choice(np.array(list(Activation), dtype=object))
    return drawn


def sample_quantisation(rng: np.random.Generator) -> Quantisation:
    """A random int8 quantisation. Zero points at the ends of the range are common."""
    scale = sample_scale(rng, -9, 1)
    zero_point = int(rng.choice([-128, 127, 0, int(rng.integers(-128, 128))]))
    return Quantisation((scale,), (zero_point,))


def sample_type(
    rng: np.random.Generator,
    wide: Sequence[DType] = (DType.INT32, DType.FLOAT32, DType.INT64),
) -> tuple[DType, Quantisation | None]:
    """A random element type: mostly int8 with a quantisation, sometimes one of `wide`."""
    if rng.random() < 0.6:
        return DType.INT8, sample_quantisation(rng)
    return wide[int(rng.integers(len(wide)))], None
