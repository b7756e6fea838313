"""TFLite files as pipeline graphs."""

from __future__ import annotations

import math
from pathlib import Path

from toolchain.edgetpu.compiled import compiled_bytes
from toolchain.edgetpu.graph import PipelineGraph, PipelineOp, PipelineTensor
from toolchain.errors import InputError
from toolchain.frontends.tflite import control
from toolchain.frontends.tflite.file import FileModel, FileOp, FileTensor, read_file
from toolchain.frontends.tflite.refusals import QUANTISE, of_model

COMPILED_OPERATOR = "edgetpu-custom-op"
_WEIGHTED = frozenset(
    {
        "BATCH_MATMUL",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED",
        "SVDF",
        "TRANSPOSE_CONV",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
    }
)
_QUANTISED = frozenset({"INT8", "UINT8", "INT16"})


def read_tflite(data: bytes, path: Path) -> PipelineGraph:
    """The pipeline graph of a TFLite file. Raises InputError, naming operator and remedy."""
    try:
        model = read_file(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    _refuse(model, path)
    written = {t for op in model.ops for t in op.outputs} | set(model.inputs)
    buffers: dict[int, int] = {}
    variables = _variables(model)
    ops = []
    sizes: list[int] = []
    for op in model.ops:
        present = tuple(dict.fromkeys(t for t in op.inputs if t != -1))
        used = dict.fromkeys(variables[t] for t in (*present, *op.outputs) if t in variables)
        states = (*(t for t in present if model.tensors[t].variable), *used)
        constants = []
        for tensor in present:
            if tensor in written or tensor in states:
                continue
            found = model.tensors[tensor]
            key = found.buffer or -1 - tensor  # buffer 0 is empty by convention
            if key not in buffers:
                buffers[key] = len(sizes)
                sizes.append(_constant_bytes(found, op, path))
            constants.append((buffers[key], _shape(found)))
        shared = tuple(dict.fromkeys(index for index, _ in constants))
        ops.append(
            PipelineOp(
                op.custom or op.code,
                tuple(t for t in present if t in written),
                tuple(dict.fromkeys(op.outputs)),
                shared,
                _macs(op, model),
                compiled_bytes(
                    op.code, [shape for _, shape in constants], sum(sizes[i] for i in shared)
                ),
                states,
            )
        )
    return PipelineGraph(
        path.stem,
        tuple(PipelineTensor(found.name, _size(found)) for found in model.tensors),
        tuple(sizes),
        tuple(ops),
        tuple(dict.fromkeys(model.inputs)),
        tuple(dict.fromkeys(model.outputs)),
    )


def _variables(model: FileModel) -> dict[int, int]:
    """Resource tensors to one tensor for each variable: handles of one name are one variable."""
    first: dict[tuple[object, object], int] = {}
    found = {}
    for op in model.ops:
        if op.code == "VAR_HANDLE" and op.outputs:
            options = op.needed_options
            key = (options.container, options.sharedName)
            found[op.outputs[0]] = first.setdefault(key, op.outputs[0])
    return found


def _refuse(model: FileModel, path: Path) -> None:
    for op in model.ops:
        if op.custom == COMPILED_OPERATOR:
            raise InputError(
                f"{path} is already compiled for the Edge TPU ({op}); give the .tflite file from "
                "before edgetpu_compiler"
            )
    for op in model.ops:
        if op.code in control.OPERATORS:
            raise InputError(
                f"{path}: {op} calls a subgraph, which a pipeline has no place for; export the "
                "model without branches and loops"
            )
        if op.code == "CALL_ONCE" and not 0 < op.needed_options.initSubgraphIndex <= len(
            model.others
        ):
            number = op.needed_options.initSubgraphIndex
            raise InputError(f"{path}: {op} calls subgraph {number}, which does not exist")
    if (reason := of_model(model)) != "":
        raise InputError(f"{path}: {reason}")
    if not model.ops:
        raise InputError(f"{path}: the model has no operators")
    float_op = next((op for op in model.ops if _is_float(op, model)), None)
    quantised = any(_quantised(op, model) for op in model.ops)
    if float_op is not None and (float_op.code in _WEIGHTED or not quantised):
        raise InputError(f"{path}: {float_op} computes in floating point; {QUANTISE}")
    if not quantised:
        raise InputError(f"{path}: no operator is quantised; {QUANTISE}")
    variables = _variables(model)
    for op in model.ops:
        for index in (*op.inputs, *op.outputs):
            if index != -1 and index not in variables:
                _refuse_tensor(model.tensors[index], op, path)
    for index in (*model.inputs, *model.outputs):
        if model.tensors[index].tensor is None:
            found = model.tensors[index]
            raise InputError(f"{path}: {found.name!r} is {found.type_name.lower()}, not a number")


def _refuse_tensor(found: FileTensor, op: FileOp, path: Path) -> None:
    if any(axis > 0 for axis in found.open_axes):
        raise InputError(
            f"{path}: tensor {found.name!r} of {op} has a dynamic shape (dimensions "
            f"{', '.join(map(str, found.open_axes))} are open); the Edge TPU needs fixed shapes: "
            "convert the model with a fixed input shape"
        )
    if (found.tensor is None or found.type_name == "INT4") and not found.variable:
        reason = found.refusal or f"tensor {found.name!r} is {found.type_name.lower()}"
        raise InputError(f"{path}: {op}: {reason}; the Edge TPU takes int8 models without it")


def _types(op: FileOp, model: FileModel) -> set[str]:
    return {model.tensors[i].type_name for i in (*op.inputs, *op.outputs) if i != -1}


def _is_float(op: FileOp, model: FileModel) -> bool:
    """An operator that computes in floating point, ends that convert left aside."""
    return op.code not in ("QUANTIZE", "DEQUANTIZE") and bool(
        _types(op, model) & {"FLOAT32", "FLOAT16", "FLOAT64"}
    )


def _quantised(op: FileOp, model: FileModel) -> bool:
    return op.code not in ("QUANTIZE", "DEQUANTIZE") and bool(_types(op, model) & _QUANTISED)


def _shape(found: FileTensor) -> tuple[int, ...]:
    return () if found.tensor is None else found.tensor.shape


def _size(found: FileTensor) -> int:
    """Bytes of a tensor; 0 for what no pipeline carries."""
    if found.tensor is None:
        return 0
    return math.prod(found.tensor.shape) * found.tensor.dtype.size_bytes


def _constant_bytes(found: FileTensor, op: FileOp, path: Path) -> int:
    if found.tensor is None or found.tensor.constant is None:
        raise InputError(f"{path}: {op} reads {found.name!r}, which nothing writes")
    return int(found.tensor.constant.nbytes)


def _macs(op: FileOp, model: FileModel) -> int:
    """Multiplications of an operator with weights; 0 for others."""
    shapes = [() if i == -1 else _shape(model.tensors[i]) for i in op.inputs]
    output = _shape(model.tensors[op.outputs[0]]) if op.outputs else ()
    if len(shapes) < 2:
        return 0
    elements = math.prod(output)
    if op.code in ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV") and len(shapes[1]) == 4:
        channels, height, width, depth = shapes[1]
        if op.code == "DEPTHWISE_CONV_2D":
            return elements * height * width
        if op.code == "TRANSPOSE_CONV":
            return math.prod(shapes[2]) * height * width * channels if len(shapes) > 2 else 0
        return elements * height * width * depth
    if op.code in ("FULLY_CONNECTED", "BATCH_MATMUL") and shapes[1]:
        return elements * (shapes[1][-1] if op.code == "FULLY_CONNECTED" else shapes[0][-1])
    return 0
