"""Float kinds fed NaN, infinities, zeros of both signs, denormals: C, NumPy and LiteRT agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.floats import function_graph
from tests.support.host import reference_outputs, run_graphs_on_host
from tests.support.litert import graph_judged_by_reference_kernels, run_litert
from tests.support.tflite_writer import tflite_bytes
from toolchain.ir import DType, Graph, Tensor
from toolchain.ops import forms
from toolchain.ops.arithmetic.activation import Activation

KINDS = sorted(
    kind
    for kind, spec in forms().items()
    if spec.dtypes == {DType.FLOAT32}
    and not kind.startswith("dynamic_")  # their weights are int8, as those of hybrid forms
    and spec.weights is not DType.INT8
)
SPECIALS = np.array(
    [0, -0.0, 1, -1, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan, 1e-40, 2.5, -7], np.float32
)
SAMPLES = 6
LAST_BITS = 1e-5
EXTENDED = ("abs", "relu", "relu6", "relu_0_to_1", "relu_n1_to_1", "hard_swish", "leaky_relu")


def fed(graph: Graph, rng: np.random.Generator, share: float) -> list[NDArray[np.float32]]:
    values = []
    for name in graph.inputs:
        shape = graph.tensors[name].shape
        special = rng.random(shape) < share
        value = np.where(special, rng.choice(SPECIALS, shape), rng.normal(0, 2, shape))
        values.append(value.astype(np.float32))
    return values


def alike(got: NDArray[np.float32], want: NDArray[np.float32], close: float = 0.0) -> bool:
    """Equal, or near, where both are finite; where either is not, the same infinity or both NaN."""
    finite = np.isfinite(got) & np.isfinite(want)
    near = np.abs(got[finite] - want[finite]) <= close * np.maximum(1, np.abs(want[finite]))
    rest = np.array_equal(got[~finite], want[~finite], equal_nan=True)
    return bool(near.all()) and rest


def equal_bits(got: NDArray[np.float32], want: NDArray[np.float32]) -> bool:
    """One NaN is as good as another."""
    numbers = ~np.isnan(got)
    signs = np.array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))
    return signs and np.array_equal(got, want, equal_nan=True)


def of_float_weights(kind: str, rng: np.random.Generator) -> Graph:
    """A sample whose weights, where it has any, are constants of float32.

    Activations that are quantised as they come (int8 weights) have no scale where one is infinite;
    computed weights that LiteRT multiplies to infinity are clamped here as any other output.
    """
    for _ in range(100):
        graph = forms()[kind].sample(rng)
        weights = graph.tensors.get("weights")
        computed = weights is not None and not weights.is_constant
        constants = [t for t in graph.tensors.values() if t.is_constant]
        if not computed and all(t.dtype is not DType.INT8 for t in constants):
            return graph
    raise AssertionError(f"no sample of {kind} has weights of float32")


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_ordinary_number(kind: str) -> None:
    cases = []
    for seed in range(SAMPLES):
        rng = np.random.default_rng(seed)
        graph = of_float_weights(kind, rng)
        cases.append((graph, fed(graph, rng, 0.3 if seed % 2 else 0.03)))
    for (graph, inputs), (got,) in zip(cases, run_graphs_on_host(cases), strict=True):
        (wanted,) = reference_outputs(graph, inputs)
        assert equal_bits(got, wanted)
        stops = kind == "floor_div" and not all(value.all() for value in inputs)
        if forms()[kind].tflite is None or kind == "rfft2d":  # ONNX alone; in double by LiteRT
            continue
        if kind == "add_n":  # LiteRT clamps infinities to the largest number, tflite-micro does not
            continue
        if graph_judged_by_reference_kernels(graph) and not stops:  # at a division by 0
            (theirs,) = run_litert(tflite_bytes(graph), inputs)
            assert alike(got, theirs.reshape(got.shape), LAST_BITS)


def test_activations_keep_nan_and_the_sign_of_zero() -> None:
    cases = []
    for function in EXTENDED:
        cases.append((function_graph(function, SPECIALS.shape), [SPECIALS]))
    for (graph, inputs), (got,) in zip(cases, run_graphs_on_host(cases), strict=True):
        (theirs,) = run_litert(tflite_bytes(graph), inputs)
        assert equal_bits(got, theirs)


def test_quotients_and_sums_stay_finite_as_in_litert() -> None:
    """TFLite clamps what has a fused activation, even where that is NONE."""
    huge = np.array([0.0, 3e38, -3e38, 1.0, -1.0], np.float32)
    for kind in ("add", "sub", "mul", "div"):
        sample = forms()[f"{kind}.float32"].sample(np.random.default_rng(0))
        ends = [Tensor(name, huge.shape, DType.FLOAT32) for name in ("a", "b", "y")]
        attributes = replace(sample.ops[0].attributes, activation=Activation.NONE)
        op = replace(sample.ops[0], inputs=("a", "b"), outputs=("y",), attributes=attributes)
        graph = Graph.build(kind, ends, [op], ["a", "b"], ["y"])
        given = [huge, np.roll(huge, 1)]
        ((got,),) = run_graphs_on_host([(graph, given)])
        (theirs,) = run_litert(tflite_bytes(graph), given)
        assert equal_bits(got, theirs), kind
