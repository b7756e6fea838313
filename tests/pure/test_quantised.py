"""Scales and zero points that no kernel computes with are refused; what is accepted is exact.

What LiteRT computes is refused only where C leaves a step of its kernel undefined, such as a shift
of 32 bits by 32 or more, or the conversion of 1e20 to int32: x86 and Arm differ there. Left shifts
that overflow are undefined too, but every build wraps them, as these tests see of LiteRT's.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import re
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import plan_of, random_inputs, reference_outputs
from tests.support.litert import OWN_FUNCTIONS, judged_by_reference_kernels, run_litert
from tests.support.tflite_writer import tflite_bytes
from toolchain.boards import HOST
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import DType, Graph, Quantisation, Tensor
from toolchain.ir.tensor import SMALLEST_SCALE
from toolchain.ir.verify import InvalidGraphError
from toolchain.memory.problem import memory_problem
from toolchain.ops import forms
from toolchain.ops.check import check
from toolchain.ops.lowering import lower
from toolchain.passes import prepare
from toolchain.report.suspicions import plan_warnings

STOPS_ON_DATA = {"div", "rsqrt", "rsqrt.int16", "sqrt", "sqrt.int16"}
"""Kinds that LiteRT ends at an input that it takes for impossible."""
KINDS = sorted(
    kind
    for kind, spec in forms().items()
    if spec.tflite is not None and kind not in OWN_FUNCTIONS and judged_by_reference_kernels(kind)
)
WIDE = (DType.INT16, DType.INT32, DType.INT64)


NOT_OF_FACTORS = re.compile(
    "for the sums|ask for sums|sums, once scaled|output scale .* is too fine"
)
"""Refusals of sums that overrun 32 bits or the fixed point of our kernels."""
OF_MEANING = re.compile(
    "are quantised differently|kernels take .* for granted|the cell state's scale|and symmetric"
    "|with a zero point"
)
"""Refusals of what a file says and LiteRT does not look at: equal bytes would mean other values."""


def with_tensor(graph: Graph, tensor: Tensor) -> Graph:
    return replace(graph, tensors={**graph.tensors, tensor.name: tensor})


def quantised(graph: Graph) -> list[Tensor]:
    return [t for t in graph.tensors.values() if t.quantisation is not None]


def read(graph: Graph) -> Graph:
    """As it comes out of a file, if it can be planned. Raises InputError."""
    made = prepare(check(FRONT_END.read(tflite_bytes(graph), Path("sample.tflite")))).graph
    memory_problem(lower(made, HOST))
    return made


def distorted(graph: Graph, rng: np.random.Generator) -> Graph | None:
    """One tensor or two at another scale, near or far, or one with another zero point."""
    if not quantised(graph):
        return None
    if rng.random() < 0.3:
        return scaled(scaled(graph, rng), rng)
    found = quantised(graph)
    tensor = found[int(rng.integers(len(found)))]
    q = tensor.q
    if rng.random() < 0.3:
        info = np.iinfo(tensor.dtype.value)
        zero = int(rng.integers(max(info.min, -40000), min(info.max, 40000), endpoint=True))
        return with_tensor(
            graph, replace(tensor, quantisation=replace(q, zero_points=(zero,) * len(q.scales)))
        )
    return scaled(graph, rng)


def scaled(graph: Graph, rng: np.random.Generator) -> Graph:
    """One tensor at another scale: near, far, or so far that float32 hardly holds it."""
    found = quantised(graph)
    tensor = found[int(rng.integers(len(found)))]
    q = tensor.q
    factor = 2.0 ** float(rng.uniform(-1, 1) * rng.choice([7, 40, 116]))
    scales = tuple(float(np.float32(np.clip(s * factor, 1e-37, 1e37))) for s in q.scales)
    return with_tensor(graph, replace(tensor, quantisation=replace(q, scales=scales)))


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_accepted_equals_litert(kind: str) -> None:
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    for _ in range(12):
        sample = distorted(forms()[kind].sample(rng), rng)
        if sample is None:
            continue
        try:
            graph = read(sample)
        except InputError as refusal:
            assert_undefined(sample, str(refusal))
            continue
        inputs = random_inputs(graph, rng)
        ours = reference_outputs(graph, inputs)
        try:
            theirs = run_litert(tflite_bytes(sample), inputs)
        except (RuntimeError, ValueError):
            assert kind in STOPS_ON_DATA
            continue
        for mine, reference in zip(ours, theirs, strict=True):
            if reference.dtype.kind == "f":
                np.testing.assert_allclose(mine.reshape(reference.shape), reference, rtol=1e-5)
            else:
                np.testing.assert_array_equal(mine.reshape(reference.shape), reference)


def assert_undefined(sample: Graph, refusal: str) -> None:
    """That a refusal says what C leaves undefined, or LiteRT refuses the model too."""
    reasons = ("undefined" in refusal, NOT_OF_FACTORS.search(refusal), OF_MEANING.search(refusal))
    assert any(reasons) or not runs(sample), refusal


def runs(sample: Graph) -> bool:
    """Whether LiteRT takes the model, in a process of its own: some it ends with a signal."""

    def run(inputs: list[np.ndarray]) -> None:
        faulthandler.disable()
        run_litert(tflite_bytes(sample), inputs)

    inputs = random_inputs(sample, np.random.default_rng(0))
    child = multiprocessing.get_context("fork").Process(target=run, args=(list(inputs),))
    child.start()
    child.join()
    return child.exitcode == 0


def of_arithmetic() -> list[str]:
    """Those that take the zero point of wide tensors for granted, and have one in their sample."""
    return [
        kind
        for kind in KINDS
        if not forms()[kind].quantised.stored
        and forms()[kind].quantised.wide_zero is not None
        and any(t.dtype in WIDE for t in quantised(forms()[kind].sample(np.random.default_rng(0))))
    ]


@pytest.mark.parametrize("kind", of_arithmetic())
def test_a_zero_point_that_kernels_do_not_look_at(kind: str) -> None:
    sample = forms()[kind].sample(np.random.default_rng(0))
    for tensor in quantised(sample):
        if tensor.dtype not in WIDE:
            continue
        q = replace(tensor.q, zero_points=(17,) * len(tensor.q.scales))
        with pytest.raises(InvalidGraphError, match="zero point 17") as caught:
            check(with_tensor(sample, replace(tensor, quantisation=q)))
        assert repr(sample.ops[0].name) in str(caught.value)
        assert repr(tensor.name) in str(caught.value)


@pytest.mark.parametrize(
    "kind", ["conv2d", "depthwise_conv2d", "transpose_conv2d", "fully_connected"]
)
def test_weights_with_a_zero_point_beside_int16(kind: str) -> None:
    """Legacy uint8 weights have one, which the int8 kernels of legacy models alone look at."""
    sample = forms()[f"{kind}.int16"].sample(np.random.default_rng(0))
    weights = sample.tensors["weights"]
    q = replace(weights.q, zero_points=(-128,) * len(weights.q.scales))
    with pytest.raises(InvalidGraphError, match=r"'weights' beside int16 .* zero point -128"):
        check(with_tensor(sample, replace(weights, quantisation=q)))


def test_an_activation_quantised_per_channel() -> None:
    sample = forms()["reshape"].sample(np.random.default_rng(0))
    shape = (1, 2)
    q = Quantisation((0.5, 0.25), (0, 0), 1)
    wide = replace(sample.tensors["x"], shape=shape, dtype=DType.INT8, quantisation=q)
    with pytest.raises(InvalidGraphError, match=r"activation .* per channel"):
        check(with_tensor(sample, wide))


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), SMALLEST_SCALE / 2])
def test_a_scale_without_arithmetic(scale: float) -> None:
    sample = forms()["abs"].sample(np.random.default_rng(0))
    x = sample.tensors["x"]
    with pytest.raises(InvalidGraphError, match="not a positive number"):
        check(with_tensor(sample, replace(x, quantisation=Quantisation((scale,), (0,)))))


def test_an_absurd_scale_is_computed_with_a_warning() -> None:
    sample = forms()["abs"].sample(np.random.default_rng(3))
    assert plan_warnings(plan_of(sample)) == ()
    tensors = {
        name: replace(tensor, quantisation=Quantisation((1e-12,), tensor.q.zero_points))
        for name, tensor in sample.tensors.items()
    }
    (text,) = plan_warnings(plan_of(replace(sample, tensors=tensors)))
    assert "2 tensors, first" in text
    assert "(1e-12)" in text


@pytest.mark.parametrize("kind", ["abs", "batch_matmul", "conv2d", "depthwise_conv2d", "mean"])
def test_a_ratio_that_overruns_is_refused_by_name(kind: str) -> None:
    rng = np.random.default_rng(3)
    sample = forms()[kind].sample(rng)
    y = sample.tensors[sample.ops[0].outputs[0]]
    finer = Quantisation((float(np.float32(y.q.scale * 1e-12)),), y.q.zero_points)
    graph = with_tensor(sample, replace(y, quantisation=finer))
    with pytest.raises(UnsupportedError, match=r"32 bits.*; requantise the model") as caught:
        memory_problem(lower(graph, HOST))
    assert repr(sample.ops[0].name) in str(caught.value)


def test_a_bias_of_another_scale_than_the_products() -> None:
    sample = forms()["fully_connected"].sample(np.random.default_rng(1))
    bias = sample.tensors["bias"]
    q = replace(bias.q, scales=tuple(s * 1e6 for s in bias.q.scales))
    with pytest.raises(InputError, match=r"FULLY_CONNECTED .*its bias has the scale"):
        read(with_tensor(sample, replace(bias, quantisation=q)))
