"""Fourier transforms in TFLite files: complex numbers that no tensor holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import pytest

from tests.support.litert import run_litert
from toolchain import passes
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ops.arithmetic.float_math import Float32
from toolchain.ops.interpret import interpret
from toolchain.ops.signal.fourier_f32 import magnitude, real_transform
from toolchain.ops.signal.rfft2d import Kept, Rfft2d

_FRAMES, _LENGTH = 3, 16
_BINS = _LENGTH // 2 + 1


class _File:
    """A spectrogram as TensorFlow's converter writes it: reshaped before and after RFFT2D."""

    def __init__(self) -> None:
        self.model = schema.ModelT()
        self.model.version, self.model.buffers = 3, [schema.BufferT()]
        self.model.operatorCodes = []
        self.main = schema.SubGraphT()
        self.main.tensors, self.main.operators = [], []
        self.x = self.tensor("x", (_FRAMES, 1, _LENGTH))
        length = self.constant("length", (1, _LENGTH))
        self.numbers = self.tensor("numbers", (_FRAMES, 1, _BINS), "COMPLEX64")
        self.operator("RFFT2D", (self.x, length), self.numbers, schema.Rfft2dOptionsT())
        self.rows = self.tensor("rows", (_FRAMES, _BINS), "COMPLEX64")
        shape = self.constant("shape", (_FRAMES, _BINS))
        self.operator("RESHAPE", (self.numbers, shape), self.rows, schema.ReshapeOptionsT())

    def tensor(self, name: str, shape: tuple[int, ...], dtype: str = "FLOAT32") -> int:
        made: Any = schema.TensorT()
        made.name, made.shape = name, list(shape)
        made.type = getattr(schema.TensorType, dtype)
        self.main.tensors.append(made)
        return len(self.main.tensors) - 1

    def constant(self, name: str, values: tuple[int, ...]) -> int:
        index = self.tensor(name, (len(values),), "INT32")
        buffer: Any = schema.BufferT()
        buffer.data = np.frombuffer(np.array(values, np.int32).tobytes(), np.uint8)
        self.main.tensors[index].buffer = len(self.model.buffers)
        self.model.buffers.append(buffer)
        return index

    def operator(
        self, builtin: str, inputs: tuple[int, ...], output: int, options: Any = None
    ) -> None:
        code: Any = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, builtin)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
        written: Any = schema.OperatorT()
        written.opcodeIndex = len(self.model.operatorCodes)
        written.inputs, written.outputs = list(inputs), [output]
        if options is not None:
            kind = type(options).__name__.removesuffix("T")
            written.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
            written.builtinOptions = options
        self.model.operatorCodes.append(code)
        self.main.operators.append(written)

    def bytes(self, *outputs: int) -> bytes:
        self.main.inputs, self.main.outputs = [self.x], list(outputs)
        self.model.subgraphs = [self.main]
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def _near(got: Float32, want: Float32) -> bool:
    return bool(np.abs(got - want).max() <= 2.0**-21 * np.abs(want).max())


def test_two_parts_of_a_spectrum_are_one_transform() -> None:
    file = _File()
    ends = [file.tensor(name, (_FRAMES, _BINS)) for name in ("real", "imag")]
    for name, end in zip(("REAL", "IMAG"), ends, strict=True):
        file.operator(name, (file.rows,), end)
    data = file.bytes(*ends)
    graph = passes.prepare(FRONT_END.read(data, Path("two.tflite"))).graph
    transforms = [op for op in graph.ops if op.kind == "rfft2d"]
    assert [op.attributes for op in transforms] == [Rfft2d(1, _LENGTH, (Kept.REAL, Kept.IMAGINARY))]
    x = np.random.default_rng(2).normal(0, 9, (_FRAMES, 1, _LENGTH)).astype(np.float32)
    for got, want in zip(interpret(graph, [x]), run_litert(data, [x]), strict=True):
        assert got.shape == want.shape
        assert _near(np.asarray(got, np.float32), want)


def test_complex_outputs_and_arithmetic_are_refused() -> None:
    file = _File()
    with pytest.raises(UnsupportedError, match="output of the model is complex"):
        FRONT_END.read(file.bytes(file.rows), Path("out.tflite"))
    squared = file.tensor("squared", (_FRAMES, _BINS), "COMPLEX64")
    file.operator("MUL", (file.rows, file.rows), squared, schema.MulOptionsT())
    with pytest.raises(UnsupportedError, match=r"computes with complex numbers.*\n?.*COMPLEX_ABS"):
        FRONT_END.read(file.bytes(squared), Path("squared.tflite"))


def test_a_shape_that_does_not_fit_is_an_error() -> None:
    file = _File()
    wrong = file.tensor("wrong", (_FRAMES, _BINS + 1))
    file.operator("COMPLEX_ABS", (file.rows,), wrong)
    with pytest.raises(InputError, match="does not fit its output"):
        FRONT_END.read(file.bytes(wrong), Path("wrong.tflite"))


@pytest.mark.parametrize("scale", [1e-38, 1e-22, 1.0, 1e20])
def test_magnitudes_neither_overrun_nor_vanish(scale: float) -> None:
    numbers = (np.random.default_rng(4).normal(0, 1, (50, 2)) * scale).astype(np.float32)
    want = np.hypot(*numbers.astype(np.float64).T)
    np.testing.assert_allclose(magnitude(numbers), want, 3e-7, 2e-45)


@pytest.mark.parametrize("length", [2, 8, 64, 512, 4096])
def test_transforms_are_near_double_precision(length: int) -> None:
    x = np.random.default_rng(length).normal(0, 50, (4, length)).astype(np.float32)
    got, want = real_transform(x), np.fft.rfft(x.astype(np.float64))
    error = np.abs(got[..., 0] + 1j * got[..., 1] - want).max()
    assert error <= 2.0**-21 * np.abs(want).max()
