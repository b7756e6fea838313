"""Elementwise operators: exact forms, broadcasting, every one of the 256 inputs."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import zlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.support.litert import run_litert
from tests.support.tflite_writer import tflite_bytes
from toolchain.boards import HOST
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import forms, kernel_of, spec_of
from toolchain.ops.arithmetic import libm, tanhf
from toolchain.ops.arithmetic.affine_form import INT8_LEVELS, affine_form, two_sided_form
from toolchain.ops.elementwise import addition, multiplication
from toolchain.ops.elementwise.common import broadcast
from toolchain.ops.unary.gelu import Gelu

UNARY = ("hard_swish", "leaky_relu", "logistic", "quantize", "relu", "tanh")


def _every_byte(kind: str, rng: np.random.Generator) -> tuple[Graph, np.ndarray]:
    """A sample of a unary kind, widened to all 256 inputs."""
    while True:
        graph = forms()[kind].sample(rng)
        dtype = graph.tensors["x"].dtype
        if dtype in (DType.INT8, DType.UINT8):
            break
    tensors = [replace(t, shape=(256,)) for t in graph.tensors.values()]
    widened = Graph.build("all", tensors, graph.ops, graph.inputs, graph.outputs)
    return widened, np.arange(256, dtype=np.uint8).view(dtype.numpy)


@pytest.mark.parametrize("kind", UNARY)
def test_every_byte_equals_litert(kind: str, litert_runs: int) -> None:
    rng = np.random.default_rng(zlib.crc32(kind.encode()) + 2)
    for _ in range(litert_runs):
        graph, data = _every_byte(kind, rng)
        (op,) = graph.ops
        (expected,) = run_litert(tflite_bytes(graph), [data])
        (actual,) = spec_of(kind).reference(op, graph, [data])
        quantisations = [t.quantisation for t in graph.tensors.values()]
        np.testing.assert_array_equal(actual, expected, err_msg=f"{op} {quantisations}")


OLD_GLIBC = platform.libc_ver()[0] == "glibc" and [
    int(part) for part in platform.libc_ver()[1].split(".")[:2]
] < [2, 41]


@pytest.mark.skipif(not OLD_GLIBC, reason="LiteRT calls a tanhf here that is not fdlibm's")
@pytest.mark.parametrize(
    ("input_scale", "input_zero"),
    [(0.0045326221734285355, 0), (0.008394483476877213, 49), (0.0027345872949808836, -69)],
)
def test_tanh_where_rounding_tanhf_correctly_would_differ(
    input_scale: float, input_zero: int
) -> None:
    """Scales for which a table entry hangs on the last bit of the C library's tanhf."""
    scales = (Quantisation((input_scale,), (input_zero,)), Quantisation((1 / 128,), (0,)))
    x, y = (Tensor(n, (256,), DType.INT8, quant) for n, quant in zip("xy", scales, strict=True))
    op = Op("tanh", "tanh", ("x",), ("y",))
    graph = Graph.build("tanh", [x, y], [op], ["x"], ["y"])
    data = INT8_LEVELS.astype(np.int8)
    (actual,) = spec_of("tanh").reference(op, graph, [data])
    real = np.float32(input_scale) * (INT8_LEVELS - input_zero).astype(np.float32)
    rounded = np.tanh(real.astype(np.float64)).astype(np.float32) * np.float32(128)
    correct = np.copysign(np.floor(np.abs(rounded) + 0.5), rounded).clip(-128, 127)
    assert (actual != correct).any()
    (expected,) = run_litert(tflite_bytes(graph), [data])
    np.testing.assert_array_equal(actual, expected)


def _arithmetics(runs: int) -> Iterator[addition._Arithmetic]:
    rng = np.random.default_rng(7)
    for run in range(runs):
        logs = rng.uniform(-8, 0, 3)
        scales = np.exp2(np.round(logs) if run % 3 == 0 else logs).astype(np.float32)
        zeros = tuple(int(z) for z in rng.choice((-128, -1, 0, 1, 127), 3))
        one, two, out = (float(s) for s in scales)
        sign = 1 if run % 2 else -1
        low = zeros[2] if run % 5 == 0 else -128
        yield addition._Arithmetic((one, two, out), (zeros[0], zeros[1], zeros[2]), sign, low, 127)


def test_sums_have_an_exact_form() -> None:
    a, b = INT8_LEVELS[:, None], INT8_LEVELS[None, :]
    two_sided = 0
    for arithmetic in _arithmetics(60):
        form = addition._form(arithmetic)
        assert form is not None, arithmetic
        total = form.factors[0] * a + form.factors[1] * b + form.bias
        assert np.abs(total).max() + abs(form.negative_bias) + abs(form.rounding) < 2**31
        total = total + np.where(total < 0, form.negative_bias, 0) + form.rounding
        got = np.clip(total >> form.shift, arithmetic.low, arithmetic.high)
        np.testing.assert_array_equal(got, arithmetic.apply(a, b))
        two_sided += form.negative_bias != 0
    assert two_sided > 0


def test_no_form_is_claimed_for_a_curve() -> None:
    parabola = np.clip(INT8_LEVELS**2 // 64, -128, 127)
    assert affine_form(parabola, (1.0,), 0.0, -128, 127) is None
    assert two_sided_form(parabola, (1.0,), (0,), 0, -128, 127) is None


def test_products_are_exact_for_all_pairs() -> None:
    rng = np.random.default_rng(3)
    one_sided = 0
    for run in range(60):
        zeros = tuple(int(z) for z in rng.choice((-128, -77, 0, 1, 127), 3))
        multiplier, shift = int(rng.integers(2**30, 2**31)), int(rng.integers(-31, 14))
        if run % 4 == 0:
            multiplier = 2**30
        arithmetic = multiplication._Arithmetic(
            (zeros[0], zeros[1], zeros[2]), multiplier, shift, -128, 127
        )
        p = multiplication._params(arithmetic)
        left = INT8_LEVELS[:, None] * p["factor_1"] + p["offset_1"]
        product = left * (INT8_LEVELS[None, :] + p["offset_2"])
        assert np.abs(product).max() < 2**31
        high = (product * p["multiplier"]) >> 32
        total = high + np.where(high < 0, p["negative_bias"], 0) + p["bias"]
        assert np.abs(total).max() < 2**31
        target = arithmetic.apply(INT8_LEVELS[:, None], INT8_LEVELS[None, :])
        np.testing.assert_array_equal(np.clip(total >> p["shift"], -128, 127), target)
        one_sided += p["negative_bias"] == 0
    assert 0 < one_sided < 60


@pytest.mark.parametrize(
    ("one", "two", "loops"),
    [
        ((2, 3, 4), (2, 3, 4), 0),
        ((2, 3, 4), (), 0),
        ((1, 8, 8, 16), (16,), 1),
        ((1, 8, 8, 16), (1, 1, 1, 16), 1),
        ((1, 8, 8, 1), (1, 8, 8, 16), 1),
        ((4, 1, 3, 1), (4, 2, 1, 5), 3),
        ((5, 1), (1, 6), 1),
        ((2, 1, 3, 1, 2), (1, 4, 1, 5, 1), 4),
        ((1,), (1, 1), 0),
        ((), (), 0),
    ],
)
def test_broadcast_loops_visit_numpys_pairs(
    one: tuple[int, ...], two: tuple[int, ...], loops: int
) -> None:
    shape = broadcast(one, two)
    assert len(shape.loops) == loops
    pairs: dict[int, tuple[int, int]] = {}
    for counts in np.ndindex(*(loop.count for loop in shape.loops)):
        at = list(zip(counts, shape.loops, strict=True))
        starts = [sum(n * loop.steps[which] for n, loop in at) for which in range(3)]
        for i in range(shape.size):
            pairs[starts[2] + i] = (starts[0] + i * shape.steps[0], starts[1] + i * shape.steps[1])
    first, second = (np.arange(int(np.prod(s)), dtype=int).reshape(s) for s in (one, two))
    wide = np.broadcast_arrays(first, second)
    expected = list(zip(wide[0].ravel().tolist(), wide[1].ravel().tolist(), strict=True))
    assert [pairs[i] for i in range(len(pairs))] == expected


def _binary(kind: str, scales: tuple[float, float, float]) -> Graph:
    a, b, y = (
        Tensor(n, (4,), DType.INT8, Quantisation((s,), (0,)))
        for n, s in zip("aby", scales, strict=True)
    )
    sample = forms()[kind].sample(np.random.default_rng(0)).ops[0]
    op = replace(sample, inputs=("a", "b"), outputs=("y",))
    return Graph.build("extreme", [a, b, y], [op], ["a", "b"], ["y"])


@pytest.mark.parametrize(
    ("kind", "scales"),
    [
        ("add", (1.0, 1.0, 2.0**-20)),
        ("sub", (2.0**22, 1.0, 1.0)),
        ("mul", (1.0, 1.0, 2.0**-34)),
        ("prelu", (1.0, 1.0, 2.0**-35)),
    ],
)
def test_scales_that_overflow_are_refused(kind: str, scales: tuple[float, float, float]) -> None:
    graph = _binary(kind, scales)
    with pytest.raises(UnsupportedError, match=graph.ops[0].name):
        kernel_of(graph.ops[0], graph, HOST)


def test_types_without_a_kernel_are_refused() -> None:
    graph = _binary("div", (1.0, 1.0, 1.0))
    plain = [replace(t, quantisation=None) for t in graph.tensors.values()]
    tensors = [replace(t, dtype=DType.BOOL) for t in plain]
    wide = Graph.build("wide", tensors, graph.ops, graph.inputs, graph.outputs)
    with pytest.raises(UnsupportedError, match="bool"):
        kernel_of(wide.ops[0], wide, HOST)


def test_shapes_that_do_not_broadcast_are_named() -> None:
    graph = _binary("add", (1.0, 1.0, 1.0))
    tensors = [replace(graph.tensors["a"], shape=(3,)), graph.tensors["b"], graph.tensors["y"]]
    odd = Graph.build("odd", tensors, graph.ops, graph.inputs, graph.outputs)
    with pytest.raises(ValueError, match="do not broadcast"):
        spec_of("add").infer(odd.ops[0], odd)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "kind",
    ["add", "dequantize", "maximum", "mul", "prelu", "softmax", "sub", *UNARY],
)
def test_absurd_scales_are_lowered_or_refused(kind: str) -> None:
    """From the smallest float32 to the largest: an answer or UnsupportedError, nothing else."""
    rng = np.random.default_rng(5)
    extremes = np.array([1e-45, 1e-38, 1e-30, 1e-10, 1.0, 1e10, 1e30, 3.4e38], dtype=np.float32)
    for _ in range(25):
        graph = forms()[kind].sample(rng)
        tensors = [
            replace(t, quantisation=Quantisation((float(rng.choice(extremes)),), t.q.zero_points))
            if t.quantisation
            else t
            for t in graph.tensors.values()
        ]
        absurd = Graph.build("absurd", tensors, graph.ops, graph.inputs, graph.outputs)
        with contextlib.suppress(UnsupportedError):
            kernel_of(absurd.ops[0], absurd, HOST)


@pytest.mark.skipif(not OLD_GLIBC, reason="the C library's functions are not those of newlib here")
@pytest.mark.parametrize("name", ["expf", "logf", "erfcf", "expm1f", "tanhf"])
def test_the_c_librarys_functions(name: str) -> None:
    function = ctypes.CDLL("libm.so.6")[name]
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]
    rng = np.random.default_rng(1)
    near, wide = rng.uniform(-12, 12, 20000), 10.0 ** rng.uniform(-38, 1.9, 5000)
    x = np.concatenate([near, wide, -wide, [0.0, 28.0, -6.0, np.inf]]).astype(np.float32)
    if name == "expm1f":
        x = x[np.isfinite(x)]
    ours = getattr(tanhf if name in ("expm1f", "tanhf") else libm, name)(x)
    theirs = np.array([function(float(value)) for value in x], np.float32)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.skipif(not OLD_GLIBC, reason="LiteRT calls an erfcf here that is not fdlibm's")
def test_gelu_of_int16_where_rounding_erfcf_correctly_would_differ() -> None:
    q = Quantisation((3.3151707611978054e-05,), (0,))
    data = np.arange(-32768, 32768).astype(np.int16)
    x, y = (Tensor(name, data.shape, DType.INT16, q) for name in "xy")
    op = Op("gelu", "gelu", ("x",), ("y",), Gelu(approximate=False))
    graph = Graph.build("gelu", [x, y], [op], ["x"], ["y"])
    (expected,) = run_litert(tflite_bytes(graph), [data])
    (actual,) = spec_of("gelu").reference(op, graph, [data])
    np.testing.assert_array_equal(actual, expected)
