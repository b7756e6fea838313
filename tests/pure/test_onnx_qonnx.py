"""QONNX's Quant and BipolarQuant: as QONNX defines them, in ONNX's own operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from tests.support.onnx_models import model_of, prepared_of, run
from toolchain.errors import UnsupportedError
from toolchain.frontends.onnx.qonnx import in_standard_operators

DOMAIN = "qonnx.custom_op.general"
SHAPE = (1, 2, 5, 5)


def _model(bits: float = 8, weights: str = "Quant", **attributes: object) -> bytes:
    """A convolution, and a Relu, between values that Quant stores."""
    quant = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"} | attributes
    weighed = ["w", "ws"] if weights == "BipolarQuant" else ["w", "ws", "zero", "bits"]
    own = {} if weights == "BipolarQuant" else quant | {"narrow": 1, "signed": 1}
    nodes = [
        helper.make_node("Quant", ["x", "xs", "zero", "eight"], ["xq"], domain=DOMAIN, signed=1),
        helper.make_node(weights, weighed, ["wq"], domain=DOMAIN, **own),
        helper.make_node("Conv", ["xq", "wq"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Quant", ["r", "ys", "zero", "bits"], ["y"], domain=DOMAIN, **quant),
    ]
    rng = np.random.default_rng(2)
    constants = {
        "w": rng.normal(0, 1, (3, 2, 3, 3)).astype(np.float32),
        "ws": np.array([0.03, 0.02, 0.05], np.float32).reshape(3, 1, 1, 1) * 2.0 ** (8 - bits),
        "xs": np.float32(0.02),
        "ys": np.float32(0.0473 * 2.0 ** (8 - bits)),
        "zero": np.float32(0),
        "bits": np.float32(bits),
        "eight": np.float32(8),
    }
    constants = {name: np.asarray(value, np.float32) for name, value in constants.items()}
    made = model_of(nodes, {"x": SHAPE}, ["y"], constants)
    made.opset_import.append(helper.make_opsetid(DOMAIN, 2))
    return made.SerializeToString()


def _quant(x: np.ndarray, scale: np.ndarray, low: int, high: int) -> np.ndarray:
    """QONNX's definition, without a zero point."""
    return np.clip(np.rint(x / scale), low, high).astype(np.float32) * scale


def _expected(data: bytes, x: np.ndarray, bits: int, signed: int) -> np.ndarray:
    held = {
        t.name: onnx.numpy_helper.to_array(t) for t in onnx.load_from_string(data).graph.initializer
    }
    most = 2 ** (bits - 1) - 1
    weights = _quant(held["w"], held["ws"], -most, most).astype(np.float64)
    if "BipolarQuant" in str(data):
        weights = np.where(held["w"] >= 0, held["ws"], -held["ws"]).astype(np.float64)
    image = _quant(x, held["xs"], -128, 127).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(image[0], (3, 3), axis=(1, 2))
    sums = np.maximum(np.einsum("chwij,ocij->ohw", windows, weights), 0)[None].astype(np.float32)
    low, high = (-(2 ** (bits - 1)), most) if signed else (0, 2**bits - 1)
    return _quant(sums, held["ys"], low, high)


@pytest.mark.parametrize(
    ("bits", "signed", "weights"),
    [(8, 1, "Quant"), (8, 0, "Quant"), (4, 1, "Quant"), (3, 0, "Quant"), (8, 1, "BipolarQuant")],
)
def test_values_are_those_that_qonnx_defines(bits: int, signed: int, weights: str) -> None:
    data, x = _model(bits, weights, signed=signed), np.random.default_rng(5).normal(0, 1, SHAPE)
    x = x.astype(np.float32)
    want = _expected(data, x, bits, signed)
    session = onnxruntime.InferenceSession(in_standard_operators(data))
    np.testing.assert_allclose(session.run(None, {"x": x})[0], want, rtol=0, atol=1e-5)
    prepared = prepared_of(data)
    (got,) = run(prepared, {"x": x})
    assert len(np.unique(want)) > 3
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)
    assert {tensor.dtype.value for tensor in prepared.graph.tensors.values()} <= {"int8", "int32"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bits": 16}, "has 16 bits, and int8 has 8"),
        ({"rounding_mode": "FLOOR"}, "rounds by FLOOR, where ONNX rounds to even"),
    ],
)
def test_what_onnx_cannot_say_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{said}; export with export_onnx_qcdq"):
        prepared_of(_model(**given))


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("BipolarQuant", "no kernel has activations of one bit; train activations of 2 bits"),
        ("Trunc", "drops the low bits of sums.*nn.AvgPool2d with a QuantIdentity"),
    ],
)
def test_what_no_kernel_computes_is_refused(operator: str, said: str) -> None:
    given = ["x", "one"] if operator == "BipolarQuant" else ["x", "one", "zero", "ten", "eight"]
    node = helper.make_node(operator, given, ["y"], domain=DOMAIN)
    values = {"one": 1, "zero": 0, "ten": 10, "eight": 8}
    constants = {name: np.asarray(value, np.float32) for name, value in values.items()}
    made = model_of([node], {"x": SHAPE}, ["y"], {name: constants[name] for name in given[1:]})
    made.opset_import.append(helper.make_opsetid(DOMAIN, 2))
    with pytest.raises(UnsupportedError, match=said):
        prepared_of(made.SerializeToString())


def test_other_files_stay_as_they_are() -> None:
    digits = Path(__file__).parents[2] / "examples" / "digits" / "digits_qdq.onnx"
    data = digits.read_bytes()
    assert in_standard_operators(data) is data


def decomposed(code: int = 1, scale: str = "s") -> bytes:
    """A dense layer as PyTorch's older exporter leaves that of a PT2E model."""

    def node(kind: str, inputs: str, output: str) -> onnx.NodeProto:
        return helper.make_node(kind, inputs.split(), [output], domain="quantized_decomposed")

    rng = np.random.default_rng(4)
    nodes = [
        node("quantize_per_tensor", f"x {scale} z low high type", "xq"),
        node("dequantize_per_tensor", f"xq {scale} z low high type", "xd"),
        node("dequantize_per_channel", "w ws wz axis narrow high type", "wd"),
        helper.make_node("Transpose", ["wd"], ["wt"], perm=[1, 0]),
        helper.make_node("MatMul", ["xd", "wt"], ["m"]),
        node("quantize_per_tensor", "m ys z narrow high type", "yq"),
        node("dequantize_per_tensor", "yq ys z narrow high type", "y"),
    ]
    constants = {
        "s": np.float64(0.02),
        "ys": np.float64(0.05),
        "z": np.int64(3),
        "type": np.int64(code),
        "low": np.int64(-128),
        "narrow": np.int64(-100),
        "high": np.int64(127),
        "axis": np.int64(0),
        "wz": np.zeros(5, np.int64),
        "w": rng.integers(-127, 128, (5, 8)).astype(np.int8),
        "ws": rng.uniform(0.005, 0.02, 5).astype(np.float32),
    }
    return model_of(nodes, {"x": (1, 8)}, ["y"], constants).SerializeToString()


def test_values_of_pytorch_are_those_of_its_quantisers() -> None:
    data = decomposed()
    session = onnxruntime.InferenceSession(in_standard_operators(data))
    prepared = prepared_of(data)
    w, ws = (
        onnx.numpy_helper.to_array(t)
        for t in onnx.load_from_string(data).graph.initializer
        if t.name in ("w", "ws")
    )
    rng, clipped = np.random.default_rng(1), 0
    for _ in range(20):
        x = rng.standard_normal((1, 8)).astype(np.float32) * 2
        stored = np.clip(np.rint(x / np.float32(0.02)) + 3, -128, 127)
        real = ((stored - 3) * 0.02) @ (w * ws[:, None].astype(np.float64)).T
        steps = np.rint(real / 0.05) + 3
        clipped += (steps < -100).any()
        want = (np.clip(steps, -100, 127) - 3) * 0.05
        (theirs,), (ours,) = session.run(None, {"x": x}), run(prepared, {"x": x})
        assert np.abs(theirs - want).max() < 0.051 and np.abs(ours - theirs).max() < 0.051
    assert clipped


def test_what_pytorch_s_quantisers_store_otherwise_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"stores numbers of PyTorch's type 2; export by"):
        prepared_of(decomposed(code=2))
    with pytest.raises(UnsupportedError, match="computes its input 1 while the model runs"):
        prepared_of(decomposed(scale="x"))
