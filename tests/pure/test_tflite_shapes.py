"""Shape arithmetic in TFLite files is computed while reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest

from tests.support.graph_builder import Builder
from tests.support.litert import run_litert
from tests.support.mutations import packed, unpacked
from tests.support.tflite_writer import tflite_bytes
from toolchain.errors import InputError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import Graph
from toolchain.ops.interpret import interpret
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.unary.relu import Relu

INT32 = schema.TensorType.INT32


def read(data: bytes) -> Graph:
    return FRONT_END.read(data, Path("model.tflite"))


class Editor:
    """Adds operators and int32 tensors to a model in the object API."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.main = model.subgraphs[0]

    def tensor(self, shape: list[int], values: list[int] | None = None) -> int:
        made = schema.TensorT()
        made.name = f"shape_{len(self.main.tensors)}"
        made.shape, made.type = shape, INT32
        if values is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.array(values, np.int32).tobytes(), np.uint8)
            made.buffer = len(self.model.buffers)
            self.model.buffers.append(buffer)
        self.main.tensors.append(made)
        return len(self.main.tensors) - 1

    def operator(self, builtin: str, inputs: list[int], output: int, options: Any = None) -> None:
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, builtin)
        code.deprecatedBuiltinCode = min(127, code.builtinCode)
        made = schema.OperatorT()
        made.opcodeIndex = len(self.model.operatorCodes)
        self.model.operatorCodes.append(code)
        made.inputs, made.outputs = inputs, [output]
        if options is not None:
            made.builtinOptions = options
            name = type(options).__name__.removesuffix("T")
            made.builtinOptionsType = getattr(schema.BuiltinOptions, name)
        self.main.operators.insert(len(self.main.operators) - 1, made)


def flattening(source: Any = None) -> bytes:
    """relu, then a reshape to [batch, -1] as Keras' Flatten writes it for an open batch."""
    build = Builder()
    x = build.input((1, 4, 3, 2))
    y = build.op("reshape", [build.op("relu", [x], Relu())], Reshape((1, 24)))
    model = unpacked(tflite_bytes(build.graph([y])))
    edit = Editor(model)
    reshape = edit.main.operators[-1]
    data = reshape.inputs[0]
    shape, batch, target = edit.tensor([4]), edit.tensor([]), edit.tensor([2])
    edit.operator("SHAPE", [data], shape, schema.ShapeOptionsT(outType=INT32))
    bounds = [edit.tensor([1], [value]) for value in (0, 1, 1)]
    edit.operator(
        "STRIDED_SLICE", [shape, *bounds], batch, schema.StridedSliceOptionsT(shrinkAxisMask=1)
    )
    rest = edit.tensor([], [-1])
    edit.operator("PACK", [batch, rest], target, schema.PackOptionsT(valuesCount=2, axis=0))
    reshape.inputs = [data, target]
    reshape.builtinOptions.newShape = None
    for index in (edit.main.inputs[0], data, reshape.outputs[0]):
        tensor = edit.main.tensors[index]
        tensor.shapeSignature = [-1, *tensor.shape[1:]]
    output = edit.main.tensors[reshape.outputs[0]]
    output.shape, output.shapeSignature = [1, 1], [-1, -1]
    if source is not None:
        source(edit)
    return packed(model)


def test_flatten_with_an_open_batch_is_a_plain_reshape() -> None:
    data = flattening()
    graph = read(data)
    assert [op.kind for op in graph.ops] == ["relu", "reshape"]
    assert graph.tensors[graph.outputs[0]].shape == (1, 24)
    values = np.random.default_rng(0).integers(-128, 128, (1, 4, 3, 2)).astype(np.int8)
    (expected,) = run_litert(data, [values])
    np.testing.assert_array_equal(interpret(graph, [values])[0], expected)


def test_shape_arithmetic_that_contradicts_itself_is_refused() -> None:
    def spoil(edit: Editor) -> None:
        stride = edit.main.tensors[edit.main.operators[-3].inputs[3]]
        edit.model.buffers[stride.buffer].data = np.zeros(4, np.uint8)
        edit.main.operators[-3].builtinOptions.shrinkAxisMask = 0

    with pytest.raises(InputError, match="STRIDED_SLICE"):
        read(flattening(spoil))


def test_an_output_may_be_only_a_shape() -> None:
    def spoil(edit: Editor) -> None:
        edit.main.outputs = [edit.main.operators[-2].outputs[0]]

    data = flattening(spoil)
    values = np.random.default_rng(0).integers(-128, 128, (1, 4, 3, 2)).astype(np.int8)
    (expected,) = run_litert(data, [values])
    np.testing.assert_array_equal(interpret(read(data), [values])[0], expected)
