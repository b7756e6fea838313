"""Graphs written as TFLite files, through the `write` half of each kind's binding."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from enum import Enum
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
from flatbuffers import flexbuffers

from toolchain.ir import Graph, Op, Tensor
from toolchain.ir.names import fresh_name
from toolchain.ops import spec_of
from toolchain.ops.operator import operator_of
from toolchain.ops.spec import WrittenOp

_TYPES = {
    name.lower(): code for name, code in vars(schema.TensorType).items() if not name.startswith("_")
}


class _Writer:
    def __init__(self, graph: Graph, int4: Collection[str] = ()) -> None:
        self.graph = graph
        self.int4 = int4
        self.index: dict[str, int] = {}
        self.tensors: list[Any] = []
        self.buffers: list[Any] = [schema.BufferT()]
        self.codes: list[Any] = []

    def tensor(self, tensor: Tensor) -> int:
        """Add a tensor, once, and return its index."""
        if tensor.name in self.index:
            return self.index[tensor.name]
        written = schema.TensorT()
        written.name = tensor.name
        written.shape = list(tensor.shape)
        written.type = _TYPES[tensor.dtype.value]
        written.isVariable = tensor.name in self.graph.sources[len(self.graph.inputs) :]
        if tensor.constant is not None:
            buffer = schema.BufferT()
            data = np.ascontiguousarray(tensor.constant, tensor.dtype.numpy).tobytes()
            buffer.data = np.frombuffer(data, np.uint8)
            if tensor.name in self.int4:
                written.type = schema.TensorType.INT4
                halves = np.append(buffer.data, np.zeros(buffer.data.size % 2, np.uint8)) & 15
                buffer.data = halves[::2] | halves[1::2] << 4
            written.buffer = len(self.buffers)
            self.buffers.append(buffer)
        if tensor.quantisation is not None:
            written.quantization = schema.QuantizationParametersT()
            written.quantization.scale = list(tensor.quantisation.scales)
            written.quantization.zeroPoint = list(tensor.quantisation.zero_points)
            written.quantization.quantizedDimension = tensor.quantisation.axis or 0
        self.index[tensor.name] = len(self.tensors)
        self.tensors.append(written)
        return self.index[tensor.name]

    def operators(self, op: Op) -> list[Any]:
        """The operator, after the one that it stands behind."""
        form = _written(op, self.graph)
        inputs = [self.index.get(name, -1) for name in op.inputs]
        outputs = [self.index[name] for name in op.outputs if name in self.index]
        if form.behind is None:
            return [self.operator(op, form, inputs, outputs)]
        passed = schema.TensorT()
        passed.name, passed.type = f"{op.name}/passed", _TYPES[form.between]
        passed.shape = list(self.graph.output(op).shape)
        self.tensors.append(passed)
        between = [len(self.tensors) - 1]
        return [
            self.operator(op, form.behind, inputs, between),
            self.operator(op, form, between, outputs),
        ]

    def operator(self, op: Op, form: WrittenOp, own: list[int], outputs: list[int]) -> Any:
        code = schema.OperatorCodeT()
        custom = not hasattr(schema.BuiltinOperator, form.builtin)
        code.builtinCode = getattr(schema.BuiltinOperator, "CUSTOM" if custom else form.builtin)
        code.customCode = form.builtin if custom else None
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.version = form.version
        written = schema.OperatorT()
        written.opcodeIndex = len(self.codes)
        self.codes.append(code)
        extra = [replace(t, name=f"{op.name}/{t.name}") for t in form.extra_inputs]
        inputs = own + [self.tensor(tensor) for tensor in extra]
        written.inputs = [inputs[i] if i >= 0 else -1 for i in form.order] or inputs
        written.intermediates = [
            self.tensor(replace(t, name=fresh_name(t.name, self.graph.tensors)))
            for t in form.intermediates
        ]
        written.outputs = outputs
        if custom:
            written.customOptions = np.frombuffer(flexbuffers.Dumps(dict(form.options)), np.uint8)
        if form.options_type:
            written.builtinOptionsType = getattr(schema.BuiltinOptions, form.options_type)
            written.builtinOptions = getattr(schema, form.options_type + "T")()
            for field, value in form.options.items():
                assert hasattr(written.builtinOptions, field), f"{form.options_type}.{field}"
                setattr(written.builtinOptions, field, _plain(field, value))
        return written


_ENUMERATIONS = {
    "fusedActivationFunction": schema.ActivationFunctionType,
    "inDataType": schema.TensorType,
    "mode": schema.MirrorPadMode,
    "outDataType": schema.TensorType,
    "outputType": schema.TensorType,
    "padding": schema.Padding,
}


def _plain(field: str, value: Any) -> Any:
    """Members of the schema's enumerations may be given by name; the rest as it is."""
    name = value.value if isinstance(value, Enum) else value
    return getattr(_ENUMERATIONS[field], name) if isinstance(name, str) else value


def _written(op: Op, graph: Graph) -> WrittenOp:
    spec = spec_of(op.kind)
    types = [None if x is None else x.dtype for x in graph.input_tensors(op)]
    known = any(form.takes(types) for form in spec.forms)
    # Of legacy files the tensors are uint8, and int8 writes them.
    form = spec.form(op, graph) if known else spec.forms[0]
    assert form.tflite is not None, f"{op.kind} has no TFLite binding"
    written: WrittenOp = form.tflite.write(operator_of(op, graph))
    return written


def _unmentioned(graph: Graph) -> set[str]:
    """States that an operator keeps without the file's mentioning them."""
    found: set[str] = set()
    for op in graph.ops if graph.states else ():
        order = _written(op, graph).order
        left = {op.inputs[i] for i in set(range(len(op.inputs))) - set(order)} if order else set()
        found |= left & {state.input for state in graph.states}
    return found


def tflite_bytes(graph: Graph, int4: Collection[str] = ()) -> bytes:
    """The graph as a TFLite file: tensors in the graph's order, operators as they stand.

    `int4`: names of constants, from -8 to 7, to store as int4.
    """
    writer = _Writer(graph, int4)
    updated = {state.output for state in graph.states}
    for tensor in graph.tensors.values():
        if tensor.name not in updated | _unmentioned(graph):
            writer.tensor(tensor)
    main = schema.SubGraphT()
    main.name = "main"
    main.operators = [written for op in graph.ops for written in writer.operators(op)]
    main.inputs = [writer.index[name] for name in graph.inputs]
    main.outputs = [writer.index[name] for name in graph.outputs]
    main.tensors = writer.tensors
    model = schema.ModelT()
    model.version = 3
    model.operatorCodes = writer.codes
    model.subgraphs = [main]
    model.buffers = writer.buffers
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())
