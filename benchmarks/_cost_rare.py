"""The shapes over which `benchmarks.cost` measures functions that the forms' own samples seldom
get.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import forms, spec_of
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.unary.quantize import Quantize

Rng = np.random.Generator


def alone(
    kind: str, attributes: Attributes, given: list[Tensor], result: Quantisation | None = None
) -> Graph:
    """One operator of these inputs and constants."""
    op = Op(kind, kind, tuple(tensor.name for tensor in given), ("y",), attributes)
    ends = [tensor.name for tensor in given if not tensor.is_constant]
    unknown = Tensor("y", (1,), DType.INT8, result)
    (found,) = spec_of(kind).infer(op, Graph.build("k", [*given, unknown], [op], ends, ["y"]))
    y = Tensor("y", found.shape, found.dtype, result)
    return Graph.build("k", [*given, y], [op], ends, ["y"])


def add_steps(rng: Rng) -> Graph:
    """Additions whose result is so fine that no weighted sum has TFLite's bytes."""
    shape = (1, int(rng.integers(1, 9)), int(rng.integers(1, 33)), int(rng.integers(1, 65)))
    one, two = (
        Tensor(name, shape, DType.INT8, Quantisation((scale,), (zero,)))
        for name, scale, zero in (("x", 0.6498983502388, 60), ("b", 7.531592845916748, -95))
    )
    result = Quantisation((0.0008733951253816485,), (58,))
    return alone("add", Sum(), [one, two], result)


def computed_gather_nd(rng: Rng) -> Graph:
    """Coordinates that are computed at run time: they are zero in a firmware that holds no other
    kernels, so that these must fill one.
    """
    size = tuple(int(n) for n in rng.integers(2, 17, 3))
    depth, rows = int(rng.integers(1, 4)), int(rng.integers(1, 33))
    x = Tensor("x", size, DType.INT8, Quantisation((0.05,), (-3,)))
    indices = Tensor("indices", (rows, depth), DType.INT32)
    return alone("gather_nd", Attributes(), [x, indices], x.quantisation)


def softmax_to_s16(rng: Rng) -> Graph:
    shape = (int(rng.integers(1, 33)), int(rng.integers(2, 129)))
    x = Tensor("x", shape, DType.INT8, Quantisation((float(rng.choice([0.02, 0.1, 0.4])),), (0,)))
    return alone("softmax", Softmax(1.0, DType.INT16), [x], Quantisation((1 / 32768,), (0,)))


def quantize_to_even(rng: Rng) -> Graph:
    shape = (int(rng.integers(1, 33)), int(rng.integers(1, 65)))
    x = Tensor("x", shape, DType.FLOAT32)
    return alone("quantize", Quantize(DType.INT8, True), [x], Quantisation((0.05,), (-3,)))


def requantize_to_s32(rng: Rng) -> Graph:
    shape = (int(rng.integers(1, 33)), int(rng.integers(1, 65)))
    source = DType.INT8 if rng.random() < 0.5 else DType.INT32
    x = Tensor("x", shape, source, Quantisation((0.05,), (0,)))
    return alone("quantize", Quantize(DType.INT32), [x], Quantisation((0.03,), (0,)))


def lstm_without_tanh(rng: Rng) -> Graph:
    """Cell states whose scale has no hyperbolic tangent."""
    return _scaled(forms()["lstm"].sample(rng), {"cell": 2.0**-6, "cell_next": 2.0**-6})


def lstm_wrapped(rng: Rng) -> Graph:
    """A gate whose sums are shifted right by 31 bits."""
    graph = forms()["lstm"].sample(rng)
    return _scaled(graph, {"w_input": 2.0**-43.5 / graph.tensors["x"].q.scale})


def _scaled(graph: Graph, scales: Mapping[str, float]) -> Graph:
    tensors = {
        name: replace(tensor, quantisation=Quantisation((scales[name],), tensor.q.zero_points))
        if name in scales
        else tensor
        for name, tensor in graph.tensors.items()
    }
    return replace(graph, tensors=tensors)


RARE: Mapping[str, tuple[Callable[[Rng], Graph], int]] = MappingProxyType(
    {
        "add_steps": (add_steps, 16),
        "computed_gather_nd": (computed_gather_nd, 48),
        "softmax_to_s16": (softmax_to_s16, 24),
        "quantize": (forms()["quantize"].sample, 96),
        "quantize_to_even": (quantize_to_even, 16),
        "requantize_to_s32": (requantize_to_s32, 32),
        "lstm_without_tanh": (lstm_without_tanh, 16),
        "lstm_wrapped": (lstm_wrapped, 16),
        "integer_function": (forms()["integer_function"].sample, 32),
        "float_function": (forms()["float_function"].sample, 96),
        "scatter_nd": (forms()["scatter_nd"].sample, 48),
        "pow": (forms()["pow"].sample, 24),
        "update_slice": (forms()["update_slice"].sample, 24),
        "svdf": (forms()["svdf"].sample, 48),
        "lstm": (forms()["lstm"].sample, 40),
        "svdf.int8": (forms()["svdf.int8"].sample, 32),
    }
)
"""As `GRID`; of the forms named here more samples are measured than of others."""
