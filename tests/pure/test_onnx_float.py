"""Float ONNX models run in float32, near ONNX Runtime."""

from __future__ import annotations

import platform

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from tests.support.onnx_models import model_of, prepared_of, run
from toolchain.errors import UnsupportedError
from toolchain.ir import DType
from toolchain.ops.elementwise.functions import UNARY
from toolchain.ops.resize.resize_linear import COORDINATES

RNG = np.random.default_rng(12)


def constant(*shape: int) -> np.ndarray:
    return (0.4 * RNG.standard_normal(shape)).astype(np.float32)


def node(operator: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), [output], output, **attributes)


def picture() -> onnx.ModelProto:
    """Convolutions, a norm, pools, a resize, two branches that meet, a dense head."""
    nodes = [
        node("Conv", "x w0 b0", "c0", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", "c0 s o m v", "n0"),
        node("Clip", "n0 zero six", "r0"),
        node("Conv", "r0 w1", "c1", group=6, pads=[0, 1, 1, 0]),
        node("Pad", "c1 pads", "p1"),
        node("HardSigmoid", "p1", "h1"),
        node("MaxPool", "h1", "m1", kernel_shape=[2, 2], strides=[2, 2]),
        node("Resize", "m1 none none sizes", "z1", mode="linear"),
        node("AveragePool", "r0", "a0", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("LeakyRelu", "a0", "l0", alpha=0.2),
        node("Concat", "z1 l0", "both", axis=1),
        node("ConvTranspose", "both w2 b2", "t", strides=[2, 2]),
        node("Clip", "t low high", "k"),
        node("GlobalAveragePool", "k", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f w3 b3", "d", transB=1, alpha=0.5),
        node("Softmax", "d", "y", axis=-1),
    ]
    constants = {
        "w0": constant(6, 3, 3, 3),
        "b0": constant(6),
        "s": constant(6),
        "o": constant(6),
        "m": constant(6),
        "v": np.abs(constant(6)) + np.float32(0.1),
        "zero": np.float32(0),
        "six": np.float32(6),
        "w1": constant(6, 1, 2, 2),
        "pads": np.array([0, 0, 1, 0, 0, 0, 0, 1], np.int64),
        "none": np.zeros(0, np.float32),
        "sizes": np.array([1, 6, 5, 4], np.int64),
        "w2": constant(12, 4, 2, 2),
        "b2": constant(4),
        "low": np.float32(-0.3),
        "high": np.float32(0.4),
        "w3": constant(5, 4),
        "b3": constant(5),
    }
    return model_of(nodes, {"x": (1, 3, 10, 8)}, ["y"], constants)


def tokens() -> onnx.ModelProto:
    """Attention's parts: layer norm, matrix products, transposes, erf."""
    nodes = [
        node("LayerNormalization", "x gain offset", "n", axis=-1),
        node("MatMul", "n w", "q"),
        node("Add", "q b", "qb"),
        node("Transpose", "n", "kt", perm=[0, 2, 1]),
        node("MatMul", "qb kt", "s"),
        node("Softmax", "s", "p", axis=-1),
        node("MatMul", "p n", "o"),
        node("Div", "o two", "od"),
        node("Erf", "od", "e"),
        node("Mul", "e n", "g"),
        node("ReduceMean", "g", "r", axes=[1], keepdims=0),
        node("Pow", "r twice", "sq"),
        node("Sub", "sq x0", "y"),
    ]
    constants = {
        "gain": constant(8) + np.float32(1),
        "offset": constant(8),
        "w": constant(8, 8),
        "b": constant(8),
        "two": np.float32(1.4142),
        "twice": np.float32(2),
        "x0": constant(1, 8),
    }
    return model_of(nodes, {"x": (1, 6, 8)}, ["y"], constants)


@pytest.mark.parametrize("model", [picture(), tokens()], ids=["picture", "tokens"])
def test_near_onnx_runtime(model: onnx.ModelProto) -> None:
    data = model.SerializeToString()
    prepared = prepared_of(data)
    assert all(t.dtype is DType.FLOAT32 for t in prepared.graph.activations())
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (declared,) = session.get_inputs()
    for _ in range(3):
        x = RNG.standard_normal(declared.shape).astype(np.float32)
        (want,) = session.run(None, {"x": x})
        (got,) = run(prepared, {"x": x})
        assert np.abs(got - want).max() <= 2.0**-18 * np.abs(want).max()


def test_what_has_no_float_kernel_is_named() -> None:
    model = model_of([node("ThresholdedRelu", "x", "y")], {"x": (1, 4)}, ["y"], {})
    message = r"thimble quantize.*\n.*\n.*ThresholdedRelu.*no float32 kernel"
    with pytest.raises(UnsupportedError, match=message):
        prepared_of(model.SerializeToString())


FUNCTIONS = sorted({row.onnx for row in UNARY.values() if row.onnx and row.formula.own})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_of_the_table_is_read_in_float(function: str) -> None:
    model = model_of([node(function, "x", "y")], {"x": (3, 50)}, ["y"], {}, opset=20)
    data = model.SerializeToString()
    x = np.linspace(-9, 9, 150, dtype=np.float32).reshape(3, 50)
    x = np.abs(x) if function in ("Log", "Sqrt") else x
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {"x": x})
    (got,) = run(prepared_of(data), {"x": x})
    assert np.abs(got - want).max() <= 2.0**-21 * np.abs(want).max()


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(
    ("side", "scales"),
    [
        ((9, 7), (2.0, 2.0000038)),
        ((200, 3), (1.5, 1 / 3)),
        ((5, 7), (1.15, 1.1)),
        ((5, 6), (0.2, 1.35)),
    ],
)
def test_places_of_a_resized_image_follow_from_the_file_s_scales(
    side: tuple[int, int], scales: tuple[float, float], coordinates: str
) -> None:
    """ONNX Runtime divides by them, and copies an image whose size stays as it is."""
    factors = np.array([1, 1, *scales], np.float32)
    nodes = [
        node(
            "Resize",
            "x none factors",
            "y",
            mode="linear",
            coordinate_transformation_mode=coordinates,
        )
    ]
    constants = {"none": np.zeros(0, np.float32), "factors": factors}
    model = model_of(nodes, {"x": (1, 2, *side)}, ["y"], constants)
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    x = RNG.standard_normal((1, 2, *side)).astype(np.float32)
    (want,) = session.run(None, {"x": x})
    (got,) = run(prepared_of(data), {"x": x})
    assert np.abs(got - want).max() <= 2.0**-21 * np.abs(want).max()


@pytest.mark.parametrize("coordinates", ["asymmetric", "half_pixel"])
@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize(("old", "new"), [(7, 4), (10, 52), (20, 6), (14, 19), (14, 1)])
def test_places_near_the_middle_of_two_pixels_are_in_it(
    old: int, new: int, rounding: str, coordinates: str
) -> None:
    """3.4999998 for 3.5, say, as quotients in float32 are."""
    constants = {"none": np.zeros(0, np.float32), "size": np.array([1, 1, 1, new], np.int64)}
    how = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    nodes = [node("Resize", "x none none size", "y", mode="nearest", **how)]
    data = model_of(nodes, {"x": (1, 1, 1, old)}, ["y"], constants).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    x = np.arange(old, dtype=np.float32).reshape(1, 1, 1, old)
    (want,) = session.run(None, {"x": x})
    (got,) = run(prepared_of(data), {"x": x})
    np.testing.assert_array_equal(got, want)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other lanes elsewhere")
@pytest.mark.parametrize("shape", [(1, 3, 7, 7), (2, 3, 2, 4), (1, 5, 51), (1, 3, 1, 3), (1, 3, 1)])
def test_a_global_average_adds_in_the_order_of_onnx_runtime(shape: tuple[int, ...]) -> None:
    """Four lanes, joined as on x86: a last bit moves a dynamic quantisation by a step."""
    model = model_of([node("GlobalAveragePool", "x", "y")], {"x": shape}, ["y"], {})
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    prepared = prepared_of(data)
    for _ in range(20):
        x = RNG.standard_normal(shape).astype(np.float32)
        (want,), (got,) = session.run(None, {"x": x}), run(prepared, {"x": x})
        assert got.shape == want.shape and (got == want).all()
