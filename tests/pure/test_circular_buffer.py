"""CIRCULAR_BUFFER: rows that are kept from run to run, and when it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import pytest
from flatbuffers import flexbuffers

from toolchain import passes
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array
from toolchain.reference.process import Runtime, RuntimeProcess, open_model

ZERO = 5
PATH = Path("ring.tflite")


def file(
    rows: int, options: dict[str, int] | None = None, width: tuple[int, int] = (2, 3)
) -> bytes:
    """A buffer of `rows`, which is a variable, as tflite-micro's converter marks it; then RELU."""
    main, model = schema.SubGraphT(), schema.ModelT()
    model.version, model.buffers = 3, [schema.BufferT()]
    shapes = {"x": (1, 1, *width), "rows": (1, rows, 2, 3), "y": (1, rows, 2, 3)}
    main.tensors = []
    for name, shape in shapes.items():
        tensor: Any = schema.TensorT()
        tensor.name, tensor.shape, tensor.type = name, list(shape), schema.TensorType.INT8
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale, tensor.quantization.zeroPoint = [0.5], [ZERO]
        tensor.isVariable = name == "rows"
        main.tensors.append(tensor)
    ring, relu = schema.OperatorT(), schema.OperatorT()
    ring.inputs, ring.outputs, ring.opcodeIndex = [0], [1], 0
    relu.inputs, relu.outputs, relu.opcodeIndex = [1], [2], 1
    if options is not None:
        ring.customOptions = np.frombuffer(flexbuffers.Dumps(options), np.uint8)
    codes: list[Any] = [schema.OperatorCodeT(), schema.OperatorCodeT()]
    codes[0].builtinCode = codes[0].deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
    codes[0].customCode = "CIRCULAR_BUFFER"
    codes[1].builtinCode = codes[1].deprecatedBuiltinCode = schema.BuiltinOperator.RELU
    for code in codes:
        code.version = 1
    main.operators, model.operatorCodes = [ring, relu], codes
    main.inputs, main.outputs, model.subgraphs = [0], [2], [main]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@pytest.mark.parametrize(
    ("rows", "options"), [(1, {"cycles_max": 1}), (4, {"cycles_max": 1}), (5, None)]
)
def test_rows_move_up_as_in_tflite_micro(rows: int, options: dict[str, int] | None) -> None:
    pytest.importorskip("tflite_micro")
    data = file(rows, options)
    graph = passes.prepare(FRONT_END.read(data, PATH)).graph
    opened = open_model(RuntimeProcess(), Runtime.TFLITE_MICRO, data, 1)
    memory: dict[str, Array] = {}
    rng = np.random.default_rng(rows)
    for _ in range(rows + 3):
        x = rng.integers(-128, 128, (1, 1, 2, 3)).astype(np.int8)
        (got,), (want,) = interpret(graph, [x], memory), opened.run([x])
        np.testing.assert_array_equal(got, want)


def test_a_run_that_ends_early_is_refused() -> None:
    for options in ({"cycles_max": 3}, None):
        cycles = 2 if options is None else 3
        with pytest.raises(UnsupportedError, match=f"run only every {cycles} runs"):
            FRONT_END.read(file(4, options), PATH)


def test_rows_of_another_shape_are_an_error() -> None:
    with pytest.raises(InputError, match="puts x: int8"):
        FRONT_END.read(file(4, {"cycles_max": 1}, width=(2, 4)), PATH)
