"""`thimble quantize` of TFLite files: the int8 file computes nearly the same in LiteRT, and our C
computes exactly what LiteRT does with it."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from benchmarks.zoo_mobile import mobilenet_v2
from tests.support.tflite_writer import tflite_bytes
from toolchain import load_model, verify_model
from toolchain.cli import run
from toolchain.errors import InputError
from toolchain.frontends.tflite.file import read_file
from toolchain.ir import DType, Graph, Tensor
from toolchain.ops import forms
from toolchain.ops.unary.dequantize import dequantized
from toolchain.planning.options import PlanOptions
from toolchain.quantise.post_training import Quantised
from toolchain.quantise.tflite import quantise_tflite

ECOSYSTEM = Path(__file__).parents[1] / "ecosystem"
SAMPLES = 6


def in_float(graph: Graph) -> Graph:
    """The network before somebody quantised it."""

    def real(tensor: Tensor) -> Tensor:
        if tensor.quantisation is None:
            return tensor
        data = None if tensor.constant is None else dequantized(tensor, tensor.constant)
        return replace(tensor, dtype=DType.FLOAT32, quantisation=None, constant=data)

    tensors = {name: real(tensor) for name, tensor in graph.tensors.items()}
    return replace(graph, tensors=MappingProxyType(tensors))


def ends(model: Path) -> dict[str, tuple[int, ...]]:
    graph = load_model(model)
    return {name: graph.tensors[name].shape for name in graph.inputs}


def samples(folder: Path, **shapes: tuple[int, ...]) -> Path:
    rng = np.random.default_rng(1)
    drawn = {n: rng.standard_normal((SAMPLES, *s[1:])) for n, s in shapes.items()}
    file = folder / "samples.npz"
    np.savez(file, **{name: values.astype(np.float32) for name, values in drawn.items()})
    return file


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A float MobileNetV2 of 32 x 32 pixels."""
    file = tmp_path_factory.mktemp("float") / "net.tflite"
    file.write_bytes(tflite_bytes(in_float(mobilenet_v2("net", 0.2, 32, 10))))
    return file


@pytest.mark.parametrize("per_channel", [True, False])
def test_a_network_of_convolutions(network: Path, tmp_path: Path, per_channel: bool) -> None:
    out = tmp_path / "int8.tflite"
    data = samples(tmp_path, **ends(network))
    made = quantise_tflite(network, [data], out, per_channel=per_channel)
    assert made.samples == made.compared == SAMPLES and not made.left_in_float
    assert made.int8_bytes < made.float_bytes / 2
    (output,) = made.outputs
    assert output.noise_db > (15 if per_channel else 5)
    graph = load_model(out)
    scales = [t.q.scales for t in graph.tensors.values() if t.is_constant and len(t.shape) == 4]
    assert any(len(s) > 1 for s in scales) == per_channel
    checked = verify_model(out, board="host", runs=2)
    assert checked.passed and checked.differing == 0


@pytest.mark.parametrize(
    ("name", "left"), [("tf_computed_weights", ()), ("tf_gathers", ("SCATTER_ND",))]
)
def test_files_of_a_converter(name: str, left: tuple[str, ...], tmp_path: Path) -> None:
    """One with int8 weights beside float activations, and one whose rest stays in float."""
    model, out = ECOSYSTEM / f"{name}_float.tflite", tmp_path / "int8.tflite"
    made = quantise_tflite(model, [samples(tmp_path, **ends(model))], out)
    assert tuple(operator.split()[0] for operator, _ in made.left_in_float) == left
    assert all(output.noise_db > 12 for output in made.outputs)
    int8 = [t for t in load_model(out).tensors.values() if t.dtype is DType.INT8]
    assert len(int8) > 3
    options = PlanOptions(allow_float=bool(left))
    checked = verify_model(out, board="host", runs=2, options=options)
    assert checked.passed and checked.differing == 0


def test_the_command(network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = samples(tmp_path, **ends(network)), tmp_path / "int8.tflite"
    command = ["quantize", str(network), "--data", str(data), "-o"]
    assert run([*command, str(out), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["samples"] == SAMPLES and told["left_in_float"] == []
    assert {layer["operator"] for layer in told["layers"]} >= {"CONV_2D", "ADD"}
    assert run([*command, str(network)]) != 0
    assert "is read by this command" in capsys.readouterr().err
    assert run([*command, str(out), "--method", "entropy"]) != 0
    assert "is for ONNX models" in capsys.readouterr().err


def float_sample(name: str, builtin: str) -> Graph:
    """A random operator of float32, the first that the file names so."""
    for seed in range(60):
        graph = in_float(forms()[name].sample(np.random.default_rng(seed)))
        if [op.code for op in read_file(tflite_bytes(graph)).ops] == [builtin]:
            return graph
    raise AssertionError(f"no sample of {name} is a {builtin}")


def quantised(graph: Graph, folder: Path, low: float, high: float) -> tuple[Path, Quantised]:
    """The int8 form of a float network, on inputs spread evenly from `low` to `high`."""
    rng = np.random.default_rng(3)
    model, data, out = (folder / name for name in ("net.tflite", "data.npz", "int8.tflite"))
    model.write_bytes(tflite_bytes(graph))
    given = {n: rng.uniform(low, high, (4, *graph.tensors[n].shape)) for n in graph.inputs}
    np.savez(data, **{name: values.astype(np.float32) for name, values in given.items()})
    return out, quantise_tflite(model, [data], out)


@pytest.mark.parametrize("builtin", ["DIV", "SQRT"])
def test_divisions_and_roots_are_int8(builtin: str, tmp_path: Path) -> None:
    graph = float_sample(f"{builtin.lower()}.float32", builtin)
    out, made = quantised(graph, tmp_path, 0.5, 4)
    assert not made.left_in_float and made.outputs[0].noise_db > 20
    checked = verify_model(out, board="host", runs=2)
    assert checked.passed and checked.differing == 0


def test_a_depthwise_convolution_without_a_bias(tmp_path: Path) -> None:
    """LiteRT's default kernels crash on it, and took this process with them."""
    graph = float_sample("depthwise_conv2d.float32", "DEPTHWISE_CONV_2D")
    (op,) = graph.ops
    graph = replace(graph, ops=(replace(op, inputs=op.inputs[:2]),))
    out, made = quantised(graph, tmp_path, -1, 1)
    assert not made.left_in_float and made.outputs[0].noise_db > 20
    checked = verify_model(out, board="host", runs=2)
    assert checked.passed and checked.differing == 0


@pytest.mark.parametrize(("spread", "left"), [(10.0, 0), (1000.0, 1)])
def test_wide_numbers_are_compared_in_float(spread: float, left: int, tmp_path: Path) -> None:
    """LiteRT's int8 comparison is wrong for scales of 1 and more: 2,000 / 255 is one."""
    graph = float_sample("compare.float32", "GREATER")
    _, made = quantised(graph, tmp_path, -spread, spread)
    assert len(made.left_in_float) == left
    assert made.outputs[0].noise_db > 15


def test_labels_are_kept(network: Path, tmp_path: Path) -> None:
    """They lie in a zip archive behind the model."""
    model, out = tmp_path / "labelled.tflite", tmp_path / "int8.tflite"
    model.write_bytes(network.read_bytes())
    with zipfile.ZipFile(model, "a") as archive:
        archive.writestr("labels.txt", "cat\ndog\n")
    quantise_tflite(model, [samples(tmp_path, **ends(network))], out)
    with zipfile.ZipFile(out) as archive:
        assert archive.read("labels.txt") == b"cat\ndog\n"
    load_model(out)


def test_what_is_refused(tmp_path: Path) -> None:
    no_model = tmp_path / "text.tflite"
    no_model.write_text("twenty bytes of text")
    with pytest.raises(InputError, match="this is no TFLite file"):
        quantise_tflite(no_model, [], tmp_path / "out.tflite")
    with pytest.raises(InputError, match="quantised already"):
        quantise_tflite(ECOSYSTEM / "tf_einsums.tflite", [], tmp_path / "out.tflite")
    assert not (tmp_path / "out.tflite").exists()
