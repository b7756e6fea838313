"""The process in which reference runtimes run: a native crash ends it and not Thimble.

It is run by its path, so that it imports NumPy and the one runtime and nothing of Thimble. Messages
on standard input and output are a line of JSON, followed by as many raw bytes as it says. Every
request gets one answer; {"refused": why} if the runtime raised.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_FIRST_ARENA_BYTES, _LARGEST_ARENA_BYTES = 1 << 20, 1 << 30


class LiteRT:
    """An interpreter of LiteRT. Inputs of another shape than the file's resize it."""

    def __init__(self, model: bytes, resolver: str) -> None:
        litert: Any = importlib.import_module("ai_edge_litert.interpreter")
        self._make: Callable[[], Any] = lambda: litert.Interpreter(
            model_content=model,
            num_threads=1,
            experimental_op_resolver_type=getattr(litert.OpResolverType, resolver),
        )
        self.restart()

    def restart(self) -> None:
        self._interpreter = self._make()
        self._interpreter.allocate_tensors()
        self._interpreter.get_input_details()  # raise where a name is no text
        self._interpreter.get_output_details()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        interpreter = self._interpreter
        details = interpreter.get_input_details()
        other = [
            (detail["index"], value.shape)
            for detail, value in zip(details, inputs, strict=True)
            if tuple(detail["shape"]) != value.shape
        ]
        for index, shape in other:
            interpreter.resize_tensor_input(index, list(shape))
        if other:
            interpreter.allocate_tensors()
        for detail, value in zip(details, inputs, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        return [interpreter.get_tensor(end["index"]) for end in interpreter.get_output_details()]


class TfliteMicro:
    """An interpreter of the `tflite-micro` wheel, with an arena as large as it turns out to
    need.
    """

    def __init__(self, model: bytes, outputs: int) -> None:
        self._runtime = importlib.import_module("tflite_micro.python.tflite_micro.runtime")
        self._model, self._outputs = model, outputs
        self._arena_bytes = max(_FIRST_ARENA_BYTES, 10 * len(model))
        self.restart()

    def restart(self) -> None:
        while True:
            try:
                self._interpreter = self._runtime.Interpreter.from_bytes(
                    self._model, arena_size=self._arena_bytes
                )
                return
            except RuntimeError as error:
                larger = 8 * self._arena_bytes
                if "allocate" not in str(error) or larger > _LARGEST_ARENA_BYTES:
                    raise
                self._arena_bytes = larger

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        for index, value in enumerate(inputs):
            self._interpreter.set_input(value, index)
        self._interpreter.invoke()
        return [np.array(self._interpreter.get_output(index)) for index in range(self._outputs)]


class OnnxRuntime:
    """A session of ONNX Runtime on the processor, one thread, its optimiser off."""

    def __init__(self, model: bytes) -> None:
        runtime = importlib.import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        self._session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def restart(self) -> None:
        """Does nothing: an ONNX model keeps no state."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        names = [declared.name for declared in self._session.get_inputs()]
        return [
            np.asarray(v) for v in self._session.run(None, dict(zip(names, inputs, strict=True)))
        ]


def _open(runtime: str, model: bytes, outputs: int) -> LiteRT | TfliteMicro | OnnxRuntime:
    if runtime == "tflite-micro":
        return TfliteMicro(model, outputs)
    if runtime == "onnxruntime":
        return OnnxRuntime(model)
    return LiteRT(model, runtime)


def read_message(source: IO[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """A message and its raw parts. Raises EOFError where the other side has ended."""
    line = source.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    message: dict[str, Any] = json.loads(line)
    parts = []
    for size in message.pop("parts"):
        part = source.read(size)
        if len(part) != size:
            raise EOFError
        parts.append(part)
    return message, parts


def write_message(target: IO[bytes], message: dict[str, Any], parts: Sequence[bytes] = ()) -> None:
    """Write a message as `read_message` reads it, and flush."""
    target.write(json.dumps({**message, "parts": [len(part) for part in parts]}).encode() + b"\n")
    for part in parts:
        target.write(part)
    target.flush()


def packed(arrays: Sequence[Array]) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Types and shapes of arrays, and their bytes. Raises TypeError for non-numeric data."""
    for array in arrays:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"an array of {array.dtype}, not of numbers")
    heads = [{"dtype": array.dtype.str, "shape": list(array.shape)} for array in arrays]
    return heads, [array.tobytes() for array in arrays]


def unpacked(heads: Sequence[dict[str, Any]], parts: Sequence[bytes]) -> list[Array]:
    """The inverse of `packed`; the arrays are writable."""
    return [
        np.frombuffer(bytearray(part), head["dtype"], math.prod(head["shape"])).reshape(
            head["shape"]
        )
        for head, part in zip(heads, parts, strict=True)
    ]


def _answer(
    opened: list[LiteRT | TfliteMicro | OnnxRuntime], message: dict[str, Any], parts: list[bytes]
) -> tuple[dict[str, Any], list[bytes]]:
    if message["do"] == "open":
        opened.append(_open(message["runtime"], parts[0], message["outputs"]))
        return {"handle": len(opened) - 1}, []
    if message["do"] == "restart":
        opened[message["handle"]].restart()
        return {}, []
    heads, data = packed(opened[message["handle"]].run(unpacked(message["arrays"], parts)))
    return {"arrays": heads}, data


def serve(source: IO[bytes], target: IO[bytes], answer: Callable[..., Any] = _answer) -> None:
    """Answer requests until the other side ends."""
    opened: list[LiteRT | TfliteMicro | OnnxRuntime] = []
    while True:
        try:
            message, parts = read_message(source)
        except EOFError:
            return
        try:
            reply, data = answer(opened, message, parts)
        except Exception as error:  # whatever a runtime raises is an answer
            missing = isinstance(error, ImportError)
            reply, data = {"refused": f"{type(error).__name__}: {error}", "missing": missing}, []
        write_message(target, reply, data)


if __name__ == "__main__":
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a runtime's prints are no reply
    serve(sys.stdin.buffer, replies)
