"""BIDIRECTIONAL_SEQUENCE_LSTM and _RNN: two layers, against LiteRT over several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from toolchain import passes
from toolchain.errors import UnsupportedError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array

STEPS, INPUTS = 4, 5
UNITS = {"BIDIRECTIONAL_SEQUENCE_LSTM": (4, 4), "BIDIRECTIONAL_SEQUENCE_RNN": (3, 6)}
"""Of both directions; LiteRT's LSTM wants as many of each."""
PATH = Path("both.tflite")


class BothWays:
    """A TFLite file of one bidirectional layer with random weights."""

    def __init__(self, operator: str, *, time_major: bool, merged: bool) -> None:
        self.units = UNITS[operator]
        lstm = operator == "BIDIRECTIONAL_SEQUENCE_LSTM"
        # LiteRT's LSTM takes the state of a second batch from beyond it where outputs are merged.
        self.batches = 1 if lstm and merged and not time_major else 2
        self.rng = np.random.default_rng(len(operator))
        self.model: Any = schema.ModelT()
        self.model.version, self.model.buffers = 3, [schema.BufferT()]
        self.main: Any = schema.SubGraphT()
        self.main.tensors = []
        self.rows = (STEPS, self.batches) if time_major else (self.batches, STEPS)
        options: Any = (
            schema.BidirectionalSequenceLSTMOptionsT()
            if lstm
            else schema.BidirectionalSequenceRNNOptionsT()
        )
        options.fusedActivationFunction = schema.ActivationFunctionType.TANH
        options.timeMajor, options.mergeOutputs = time_major, merged
        self.x = self.tensor("x", (*self.rows, INPUTS))
        self.inputs = [self.x, *(self._lstm() if lstm else self._rnn())]
        self.op: Any = schema.OperatorT()
        self.op.inputs = self.inputs
        widths = (sum(self.units),) if merged else self.units
        self.op.outputs = [self.tensor(f"y{n}", (*self.rows, n)) for n in widths]
        self.op.builtinOptions, name = options, type(options).__name__.removesuffix("T")
        self.op.builtinOptionsType = getattr(schema.BuiltinOptions, name)
        code: Any = schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = getattr(schema.BuiltinOperator, operator)
        code.version = 1
        self.model.operatorCodes = [code]

    def tensor(self, name: str, shape: tuple[int, ...]) -> int:
        made: Any = schema.TensorT()
        made.name, made.shape, made.type = name, list(shape), schema.TensorType.FLOAT32
        self.main.tensors.append(made)
        return len(self.main.tensors) - 1

    def weights(self, *shape: int) -> int:
        index = self.tensor(f"w{len(self.main.tensors)}", shape)
        buffer: Any = schema.BufferT()
        data = self.rng.normal(0, 0.4, shape).astype(np.float32)
        buffer.data = np.frombuffer(data.tobytes(), np.uint8)
        self.main.tensors[index].buffer = len(self.model.buffers)
        self.model.buffers.append(buffer)
        return index

    def state(self, units: int) -> int:
        index = self.tensor(f"s{len(self.main.tensors)}", (self.batches, units))
        self.main.tensors[index].isVariable = True
        return index

    def _lstm(self) -> list[int]:
        found: list[int] = []
        for units in self.units:
            found += [self.weights(units, INPUTS) for _ in range(4)]
            found += [self.weights(units, units) for _ in range(4)]
            found += [-1] * 3 + [self.weights(units) for _ in range(4)] + [-1, -1]
        found += [self.state(units) for units in self.units for _ in range(2)]
        return found + [-1] * 9

    def _rnn(self) -> list[int]:
        found: list[int] = []
        for units in self.units:
            found += [self.weights(units, INPUTS), self.weights(units, units)]
            found += [self.weights(units), self.state(units)]
        return found + [-1] * 3

    def bytes(self) -> bytes:
        self.main.operators = [self.op]
        self.main.inputs, self.main.outputs = [self.x], self.op.outputs
        self.model.subgraphs = [self.main]
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def _litert(data: bytes, runs: list[Array]) -> list[list[Array]]:
    interpreter = Interpreter(
        model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    outputs = []
    for x in runs:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        ends = interpreter.get_output_details()
        outputs.append([interpreter.get_tensor(end["index"]) for end in ends])
    return outputs


@pytest.mark.parametrize("operator", ["BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN"])
@pytest.mark.parametrize(("time_major", "merged"), [(False, False), (False, True), (True, True)])
def test_both_directions_are_litert_s(operator: str, time_major: bool, merged: bool) -> None:
    file = BothWays(operator, time_major=time_major, merged=merged)
    data = file.bytes()
    graph = passes.prepare(FRONT_END.read(data, PATH)).graph
    assert [op.kind for op in graph.ops].count("concat") == merged
    rng = np.random.default_rng(7)
    runs = [rng.normal(0, 1, (*file.rows, INPUTS)).astype(np.float32) for _ in range(3)]
    memory: dict[str, Array] = {}
    for x, wanted in zip(runs, _litert(data, runs), strict=True):
        for got, want in zip(interpret(graph, [x], memory), wanted, strict=True):
            np.testing.assert_allclose(got, want, 0, 2.0**-20)


def test_an_auxiliary_input_is_refused() -> None:
    file = BothWays("BIDIRECTIONAL_SEQUENCE_RNN", time_major=False, merged=True)
    file.op.inputs[9] = file.x
    with pytest.raises(UnsupportedError, match="auxiliary input"):
        FRONT_END.read(file.bytes(), PATH)


class Hybrid(BothWays):
    """The same with int8 matrices."""

    def weights(self, *shape: int) -> int:
        index = super().weights(*shape)
        if len(shape) == 2:
            tensor = self.main.tensors[index]
            tensor.type = schema.TensorType.INT8
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale, tensor.quantization.zeroPoint = [0.01], [0]
            data = self.rng.integers(-127, 128, shape).astype(np.int8)
            self.model.buffers[tensor.buffer].data = np.frombuffer(data.tobytes(), np.uint8)
        return index


def test_int8_weights_are_refused() -> None:
    file = Hybrid("BIDIRECTIONAL_SEQUENCE_LSTM", time_major=False, merged=True)
    with pytest.raises(UnsupportedError, match="int8 weights in both directions"):
        FRONT_END.read(file.bytes(), PATH)
