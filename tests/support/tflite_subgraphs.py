"""TFLite files with several subgraphs, written in the schema's object API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np

from toolchain.ir import Quantisation


class File:
    """A model, to which subgraphs are added; the first one is the main one."""

    def __init__(self) -> None:
        self.model: Any = schema.ModelT()
        self.model.version = 3
        self.model.operatorCodes, self.model.subgraphs = [], []
        self.model.buffers = [schema.BufferT()]

    def subgraph(self) -> Subgraph:
        return Subgraph(self)

    def data(self) -> bytes:
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


class Subgraph:
    """Tensors are numbers; `inputs` and `outputs` are lists to fill."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.number = len(file.model.subgraphs)
        self.written: Any = schema.SubGraphT()
        self.written.tensors, self.written.operators = [], []
        self.written.inputs, self.written.outputs = [], []
        file.model.subgraphs.append(self.written)

    @property
    def inputs(self) -> Any:
        return self.written.inputs

    @property
    def outputs(self) -> Any:
        return self.written.outputs

    def tensor(
        self,
        shape: Sequence[int],
        dtype: str = "float32",
        data: Any = None,
        quantised: Quantisation | None = None,
    ) -> int:
        made: Any = schema.TensorT()
        made.name = f"tensor_{len(self.written.tensors)}"
        made.shape, made.type = list(shape), getattr(schema.TensorType, dtype.upper())
        if quantised is not None:
            made.quantization = schema.QuantizationParametersT()
            made.quantization.scale = list(quantised.scales)
            made.quantization.zeroPoint = list(quantised.zero_points)
        if data is not None:
            buffer: Any = schema.BufferT()
            raw = np.broadcast_to(np.asarray(data, dtype), tuple(shape)).tobytes()
            buffer.data = np.frombuffer(raw, np.uint8)
            made.buffer = len(self.file.model.buffers)
            self.file.model.buffers.append(buffer)
        self.written.tensors.append(made)
        return len(self.written.tensors) - 1

    def constant(self, data: Any, dtype: str = "int32") -> int:
        return self.tensor(np.shape(data), dtype, data)

    def op(
        self, builtin: str, inputs: Sequence[int], outputs: Sequence[int], options: Any = None
    ) -> None:
        code: Any = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, builtin)
        code.deprecatedBuiltinCode, code.version = min(127, code.builtinCode), 1
        made: Any = schema.OperatorT()
        made.opcodeIndex = len(self.file.model.operatorCodes)
        self.file.model.operatorCodes.append(code)
        made.inputs, made.outputs = list(inputs), list(outputs)
        if options is not None:
            name = type(options).__name__.removesuffix("T")
            if hasattr(schema.BuiltinOptions, name):
                made.builtinOptions = options
                made.builtinOptionsType = getattr(schema.BuiltinOptions, name)
            else:
                made.builtinOptions2 = options
                made.builtinOptions2Type = getattr(schema.BuiltinOptions2, name)
        self.written.operators.append(made)
