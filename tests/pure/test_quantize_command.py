"""`thimble quantize`: a float ONNX model becomes an int8 one that compiles, with a report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from toolchain import load_model
from toolchain.cli import run

ROOT = Path(__file__).resolve().parents[2]


def _float_model(file: Path) -> None:
    """Convolution, batch normalisation, ReLU, sigmoid, average, Gemm; the batch is left open."""
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.normal(size=(6, 3, 3, 3)),
        "scale": rng.uniform(0.5, 2, 6),
        "shift": rng.normal(size=6),
        "mean": rng.normal(size=6),
        "variance": rng.uniform(0.5, 2, 6),
        "g": rng.normal(size=(6, 4)),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Sigmoid", ["r"], ["s"]),
        helper.make_node("GlobalAveragePool", ["s"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "g"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(file))


def test_a_float_model_becomes_int8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = tmp_path / "net.onnx", tmp_path / "net_int8.onnx"
    _float_model(model)
    rng = np.random.default_rng(1)
    np.save(tmp_path / "a.npy", rng.normal(size=(5, 3, 8, 8)).astype(np.float32))
    np.savez(tmp_path / "b.npz", x=rng.normal(size=(1, 3, 8, 8)).astype(np.float32))
    files = [str(tmp_path / "a.npy"), str(tmp_path / "b.npz")]
    assert run(["quantize", str(model), "--data", *files, "-o", str(out), "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["samples"] == 6
    assert {"r", "s", "p"} <= {layer["tensor"] for layer in result["layers"]}
    assert all(layer["noise_db"] is None or layer["noise_db"] > 20 for layer in result["layers"])
    (end,) = result["outputs"]
    assert end["output"] == "y" and end["noise_db"] > 15 and 0 < end["max_error"] < 1
    graph = load_model(out)
    assert {"conv2d", "fully_connected", "mean"} & {op.kind for op in graph.ops}
    assert not any(t.dtype.value == "float32" for t in list(graph.tensors.values())[1:-1])
    assert [path.name for path in tmp_path.iterdir() if path.name[0] == "."] == []


def test_the_worst_layers_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = tmp_path / "net.onnx", tmp_path / "net_int8.onnx"
    _float_model(model)
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "a.npy", np.ones((2, 3, 8, 8), np.float32))
    data = str(tmp_path / "data")
    assert run(["quantize", str(model), "-d", data, "-o", str(out), "--per-tensor"]) == 0
    text = capsys.readouterr().out
    assert "worst first" in text and "Sigmoid" in text and "thimble plan" in text
    assert out.is_file()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["net.onnx"], "no data to calibrate with"),
        (["net.onnx", "-d", "small.npy"], "takes shape"),
        (["net.onnx", "-d", "absent.npy"], "cannot be read"),
        (["digits.tflite", "-d", "small.npy"], "quantised already"),
        (["digits.onnx", "-d", "small.npy"], "quantised already"),
        (["small.npy", "-d", "small.npy"], "not a sound ONNX model"),
        (["net.onnx", "-d", "small.npy", "--method", "magic"], "MinMax"),
    ],
)
def test_bad_input_is_one_clear_error(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _float_model(tmp_path / "net.onnx")
    np.save(tmp_path / "small.npy", np.ones((1, 7), np.float32))
    digits = ROOT / "examples" / "digits"
    (tmp_path / "digits.tflite").write_bytes((digits / "digits_int8.tflite").read_bytes())
    (tmp_path / "digits.onnx").write_bytes((digits / "digits_qdq.onnx").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert run(["quantize", *arguments, "-o", "out.onnx"]) == 2
    captured = capsys.readouterr()
    assert complaint in " ".join(captured.err.split())
    assert not (tmp_path / "out.onnx").exists()
