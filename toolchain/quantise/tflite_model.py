"""TFLite files as objects that can be changed, run with every tensor kept, and widened to float."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toolchain.device.patience import RUN_SECONDS, bounded
from toolchain.errors import InputError
from toolchain.frontends.tflite.objects import bytes_of, object_of
from toolchain.packages import VERIFY, lazy
from toolchain.progress import Report, silent
from toolchain.quantise.tflite_rules import Fixed, stored_in_int8

if TYPE_CHECKING:
    import ai_edge_litert.interpreter as litert
    import ai_edge_litert.schema_py_generated as schema
else:
    litert = lazy("ai_edge_litert.interpreter", VERIFY)
    schema = lazy("ai_edge_litert.schema_py_generated", VERIFY)

Floats = NDArray[np.float32]
Sample = Mapping[str, NDArray[np.generic]]
_LEVELS = 255
_LARGEST_ARCHIVE_BYTES = 1 << 26
_LEAST_SCALE = 2.0**-26
"""Below it LiteRT refuses a ReLU6, whose 6 would overrun 32 bits."""


@dataclass
class Range:
    """The least and greatest value of a tensor so far, 0.0 included."""

    low: float = 0.0
    high: float = 0.0

    def add(self, values: NDArray[Any]) -> None:
        finite = values[np.isfinite(values)]
        if finite.size:
            self.low = min(self.low, float(finite.min()))
            self.high = max(self.high, float(finite.max()))

    def scaling(self) -> Fixed:
        """Scale and zero point; 0.0 is a level."""
        scale = max(float(np.float32((self.high - self.low) / _LEVELS)), _LEAST_SCALE)
        return scale, int(np.clip(round(-128 - self.low / scale), -128, 127))


def with_archive_of(source: bytes, data: bytes) -> bytes:
    """`data` with the files, such as labels, that metadata keep in a zip archive behind `source`.

    A damaged archive is left out, as the reader of labels takes it for absent.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(source)) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > _LARGEST_ARCHIVE_BYTES:
                return data
            files = {entry.filename: archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError):
        return data
    target = io.BytesIO(data)
    with zipfile.ZipFile(target, "a") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return target.getvalue()


def interpreter(data: bytes) -> Any:
    """LiteRT with every tensor kept (not its reference kernels: their int8 SUM is wrong). Raises
    InputError where it refuses the file."""
    make: Any = litert.Interpreter
    kind = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        made = make(
            model_content=data,
            experimental_op_resolver_type=kind,
            experimental_preserve_all_tensors=True,
        )
        made.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise InputError(f"LiteRT refuses the model: {str(error).strip()}") from error
    return made


def run(machine: Any, sample: Sample, limit_seconds: float = RUN_SECONDS) -> None:
    """One inference. Inputs are float, by their tensors' names. Raises InputError where it takes
    longer than it may.
    """
    for detail in machine.get_input_details():
        machine.set_tensor(detail["index"], sample[detail["name"]].astype(detail["dtype"]))
    bounded("an inference of the model in LiteRT", limit_seconds, machine.invoke)


def widened(data: bytes) -> bytes:
    """The file with float32 constants where it has float16 or int8 ones beside float values.

    Raises InputError for a file that cannot be read, and for one whose activations are integers.
    """
    return bytes_of(_Widened(object_of(data)).model)


class _Widened:
    def __init__(self, model: Any) -> None:
        self.model = model
        self._types: Any = schema.TensorType
        for number, graph in enumerate(model.subgraphs):
            if number == 0:
                self._widen(graph)

    def _widen(self, graph: Any) -> None:
        types = self._types
        written = {int(i) for op in graph.operators for i in op.outputs}
        kept = []
        known: dict[int, int] = {}
        for op in graph.operators:
            name = code_of(self.model, op)
            if name == "QUANTIZE":
                raise InputError("it is quantised already: compile it as it is")
            inputs = [int(i) for i in op.inputs]
            stored = name == "DEQUANTIZE" and inputs[0] not in written
            if stored and values_of(self.model, graph, inputs[0]) is not None:
                known[int(op.outputs[0])] = inputs[0]
            else:
                kept.append(op)
        for target, source in known.items():
            self._set(graph.tensors[target], _float_values(self.model, graph, source))
        for op in kept:
            if code_of(self.model, op) == "DEPTHWISE_CONV_2D":
                self._give_bias(graph, op)
            place = stored_in_int8(code_of(self.model, op))
            if place is None:
                continue
            w = int(op.inputs[place])
            weights, y = graph.tensors[w], graph.tensors[int(op.outputs[0])]
            if y.type == types.FLOAT32 and weights.type == types.INT8 and w not in written:
                self._set(weights, _float_values(self.model, graph, w))
            if hasattr(op.builtinOptions, "asymmetricQuantizeInputs"):
                op.builtinOptions.asymmetricQuantizeInputs = False
        graph.operators = kept

    def _give_bias(self, graph: Any, op: Any) -> None:
        """Add a bias of zeros where there is none: LiteRT's default kernels crash without one."""
        x, w, *bias = (int(i) for i in op.inputs)
        shape = graph.tensors[w].shape
        if bias[:1] not in ([], [-1]) or graph.tensors[x].type != self._types.FLOAT32:
            return
        made = made_object("TensorT")
        made.name, made.shape = graph.tensors[w].name + b"_bias", [int(shape[-1])]
        graph.tensors.append(made)
        self._set(made, np.zeros(int(shape[-1]), np.float32))
        op.inputs = [x, w, len(graph.tensors) - 1]

    def _set(self, tensor: Any, values: Floats) -> None:
        tensor.type, tensor.quantization = self._types.FLOAT32, None
        tensor.buffer = add_buffer(self.model, values)


def code_of(model: Any, op: Any) -> str:
    """The name of an operator: builtin, or custom."""
    code = model.operatorCodes[op.opcodeIndex]
    number = max(code.builtinCode, code.deprecatedBuiltinCode)
    if code.customCode:
        return str(code.customCode.decode("utf-8", "replace"))
    names = {value: name for name, value in vars(schema.BuiltinOperator).items()}
    return str(names.get(number, number))


def made_object(name: str) -> Any:
    """A new object of the schema."""
    return getattr(schema, name)()


def add_buffer(model: Any, values: NDArray[Any]) -> int:
    """Add a buffer with these values; return its number."""
    made = made_object("BufferT")
    made.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
    model.buffers.append(made)
    return len(model.buffers) - 1


_NUMPY = {"FLOAT32": "f4", "FLOAT16": "f2", "INT8": "i1", "INT32": "i4", "UINT8": "u1"}


def values_of(model: Any, graph: Any, index: int) -> NDArray[Any] | None:
    """A constant's elements; None for what is computed, or of another type."""
    tensor = graph.tensors[index]
    data = model.buffers[tensor.buffer].data
    names = {value: name for name, value in vars(schema.TensorType).items()}
    kind = _NUMPY.get(str(names.get(tensor.type)))
    if data is None or len(data) == 0 or kind is None:
        return None
    shape: list[int] = [] if tensor.shape is None else list(tensor.shape)
    return np.frombuffer(bytes(data), kind).reshape(shape)


def _float_values(model: Any, graph: Any, index: int) -> Floats:
    values, tensor = values_of(model, graph, index), graph.tensors[index]
    assert values is not None
    if values.dtype != np.int8:
        return values.astype(np.float32)
    scales = np.array(tensor.quantization.scale, np.float32)
    zeros = np.array(tensor.quantization.zeroPoint, np.int32)
    if scales.size > 1:
        shape = [1] * values.ndim
        shape[tensor.quantization.quantizedDimension] = -1
        scales, zeros = scales.reshape(shape), zeros.reshape(shape)
    widened_values: Floats = (values.astype(np.int32) - zeros).astype(np.float32) * scales
    return widened_values


def ranges(
    data: bytes,
    samples: Sequence[Sample],
    report: Report = silent,
    limit_seconds: float = RUN_SECONDS,
) -> dict[int, Range]:
    """Least and greatest value of each float tensor over the samples, by its number.

    Raises InputError where a sample takes longer than `limit_seconds`.
    """
    machine = interpreter(data)
    details = [d for d in machine.get_tensor_details() if d["dtype"] is np.float32]
    seen_by_tensor = {int(d["index"]): Range() for d in details}
    for number, sample in enumerate(samples):
        report("calibrating", number, len(samples))
        run(machine, sample, limit_seconds)
        for index, seen in seen_by_tensor.items():
            try:
                seen.add(machine.get_tensor(index))
            except ValueError:  # a scratch tensor of a kernel
                continue
    return seen_by_tensor
