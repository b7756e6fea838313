"""What is said of TFLite files that cannot be compiled: everything at once, and what is so."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from tests.support.tflite_subgraphs import File
from tests.support.tflite_writer import tflite_bytes
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends import load_model
from toolchain.frontends.front_end import Reading
from toolchain.frontends.tflite import FRONT_END
from toolchain.ops import specs


def message(file: File) -> str:
    with pytest.raises(InputError) as caught:
        FRONT_END.read(file.data(), Path("model.tflite"))
    return str(caught.value)


def custom(name: str) -> File:
    file = File()
    main = file.subgraph()
    x, y = main.tensor((1, 4), "int8"), main.tensor((1, 4), "int8")
    main.inputs.append(x)
    main.op("CUSTOM", [x], [y])
    file.model.operatorCodes[-1].customCode = name
    main.outputs.append(y)
    return file


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("edgetpu-custom-op", "already compiled for the Edge TPU"),
        ("ethos-u", "already compiled for Arm's Ethos-U; give the .tflite file from before Vela"),
        ("XC_conv2d_v2", "already compiled for XMOS's xcore"),
        ("NeutronGraph", "already compiled for NXP's eIQ Neutron"),
        ("FlexErf", "convert without tf.lite.OpsSet.SELECT_TF_OPS"),
        ("MyOperator", "custom operators have no known meaning"),
    ],
)
def test_custom_operators_are_called_what_they_are(name: str, said: str) -> None:
    assert said in message(custom(name))


@pytest.mark.parametrize(("name", "processor"), [("ethos-u", "Ethos-U"), ("XC_ld_flash", "xcore")])
def test_a_compiled_operator_reads_what_no_file_has(name: str, processor: str) -> None:
    """Vela's scratch tensors, and xcore's, which a driver gives: the file is not broken."""
    file = custom(name)
    main = file.model.subgraphs[0]
    scratch = copy(main.tensors[0])
    scratch.name = "model_scratch"
    main.tensors.append(scratch)
    main.operators[0].inputs = [*main.operators[0].inputs, len(main.tensors) - 1]
    said = message(file)
    assert processor in said and "scratch" not in said


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("net.pte", b"\x10\0\0\0ET12" + bytes(40), r"an ExecuTorch program.*torch\.onnx\.export"),
        ("net.tflite", b"\x10\0\0\0ET12" + bytes(40), "an ExecuTorch program"),
        ("net.bin", b"ML\xefR\x0dStableHLO_v1.0.0\0", "StableHLO.*tf.lite.TFLiteConverter"),
        ("net.mlir", b"module { %0 = stablehlo.add %a, %b }", "StableHLO"),
        ("net.keras", b"PK\x03\x04", "a Keras model; convert it.*from_keras_model"),
        ("net.pt", b"PK\x03\x04", "a PyTorch file"),
        ("net.bin", bytes(40), "no model file that Thimble reads"),
    ],
)
def test_files_of_other_tools_are_told_how_to_become_models(
    name: str, data: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError, match=said):
        load_model(path)


def mixed(options: Any) -> File:
    """An ADD with `options`, and an operator that nobody has a kernel for."""
    file = File()
    main = file.subgraph()
    x, y, z = (main.tensor((1, 4)) for _ in range(3))
    main.inputs.append(x)
    main.op("ADD", [x, x], [y], options)
    main.op("WHERE", [y], [z], schema.WhereOptionsT())
    main.outputs.append(z)
    return file


def test_a_structural_error_does_not_hide_the_rest() -> None:
    said = message(mixed(None)).splitlines()
    assert "ADD (operator 0) has no options" in said[0]
    assert "1 of 2 operators is not supported" in said[1]
    assert "WHERE (operator 1)" in said[2]


def test_in_float_nothing_tells_to_quantise(tmp_path: Path) -> None:
    file = File()
    main = file.subgraph()
    x, y = main.tensor((1, 4, 8), "float64"), main.tensor((1, 4, 8), "float64")
    main.inputs.append(x)
    main.op("ABS", [x], [y])
    main.outputs.append(y)
    path = tmp_path / "model.tflite"
    path.write_bytes(file.data())
    with pytest.raises(UnsupportedError, match="quantise the model fully"):
        load_model(path)
    with pytest.raises(UnsupportedError) as caught:
        load_model(path, Reading(allow_float=True))
    assert "ABS" in str(caught.value)
    assert "quantise" not in str(caught.value)


def unknown_size(first: str) -> File:
    """A RESHAPE to a shape that is computed, or an input without a shape, and a MEAN of it."""
    file = File()
    main = file.subgraph()
    x, shape, made = main.tensor((1, 4, 4, 2)), main.tensor((4,), "int32"), main.tensor(())
    y, axes = main.tensor((1, 2)), main.constant((1, 2))
    if first == "RESHAPE":
        main.inputs.extend((x, shape))
        main.op("RESHAPE", [x, shape], [made], schema.ReshapeOptionsT())
    else:
        main.inputs.append(made)
    main.op("MEAN", [made, axes], [y], schema.ReducerOptionsT())
    main.outputs.append(y)
    return file


@pytest.mark.parametrize(("first", "blamed"), [("RESHAPE", "RESHAPE"), ("", "MEAN")])
def test_a_shape_that_only_a_run_tells(first: str, blamed: str) -> None:
    """The operator that makes it is blamed alone, not those that read a tensor of 0 dimensions."""
    said = message(unknown_size(first))
    assert "1 of" in said and "known only when it runs" in said and "batch_shape" in said
    assert f"{blamed} (operator 0)" in said and "0 dimensions" not in said


def test_a_type_without_a_kernel_names_those_with_one() -> None:
    file = File()
    main = file.subgraph()
    x, y = main.tensor((1, 4), "uint16"), main.tensor((1, 4), "uint16")
    main.inputs.append(x)
    main.op("ABS", [x], [y])
    main.outputs.append(y)
    assert "tensor_0' is uint16, and its kernels take" in (said := message(file))
    assert "tf.cast" in said


def lstm(change: Callable[[Any, Any], None]) -> bytes:
    """An int8 LSTM, whose operator and tensors are changed."""
    graph = specs()["lstm"].forms[0].sample(np.random.default_rng(0))
    model = schema.ModelT.InitFromPackedBuf(tflite_bytes(graph), 0)
    change(model.subgraphs[0].operators[0], model.subgraphs[0].tensors)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def test_an_lstm_without_the_scale_of_its_hidden_state() -> None:
    """LiteRT looks for it in the file, and stops."""

    def without(op: Any, tensors: Any) -> None:
        tensors[op.intermediates[4]].quantization = None

    data = lstm(without)
    with pytest.raises(UnsupportedError, match=r"without which LiteRT.*representative_dataset"):
        FRONT_END.read(data, Path("model.tflite"))
    with pytest.raises(RuntimeError, match=r"hidden->quantization\.type"):
        Interpreter(model_content=data).allocate_tensors()


def test_an_lstm_of_int16_activations() -> None:
    def wide(op: Any, tensors: Any) -> None:
        for index in (op.inputs[0], op.inputs[18], op.outputs[0]):
            tensors[index].type = schema.TensorType.INT16
            tensors[index].quantization.zeroPoint = [0]

    with pytest.raises(UnsupportedError, match=r"int16.*LiteRT's kernel would read as int8"):
        FRONT_END.read(lstm(wide), Path("model.tflite"))
