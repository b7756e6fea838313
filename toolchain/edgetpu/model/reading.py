"""Reads model files for the stage planner: TFLite files and neutral summaries become one checked
value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolchain.edgetpu.model.graph import PipelineGraph, PipelineOp, PipelineTensor
from toolchain.errors import InputError
from toolchain.files.records import parse_json
from toolchain.frontends import read_model_file
from toolchain.frontends.tflite import control
from toolchain.frontends.tflite.file import FileModel, FileOp, FileTensor, read_file
from toolchain.frontends.tflite.refusals import QUANTISE, of_model

LARGEST_OPERATORS = 20_000
_LARGEST_BYTES = 1 << 40
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
_FLOATS = frozenset({"FLOAT32", "FLOAT16", "FLOAT64"})
_QUANTISED = frozenset({"INT8", "UINT8", "INT16"})


def read_graph(path: Path) -> PipelineGraph:
    """The pipeline graph of a TFLite file or a neutral summary.

    Raises InputError for a file that is corrupt, in floating point, compiled already, or dynamic.
    """
    data = read_model_file(path)
    if data[:64].lstrip()[:1] in (b"{", b"["):
        graph = _read_summary(data, path)
    else:
        graph = read_tflite(data, path)
    if len(graph.ops) > LARGEST_OPERATORS:
        raise InputError(f"{path} has {len(graph.ops)} operators; at most {LARGEST_OPERATORS}")
    return check_graph(graph, str(path))


def check_graph(graph: PipelineGraph, path: str) -> PipelineGraph:
    """The graph with its operators in topological order. Raises InputError if there is none."""
    if not graph.ops:
        raise InputError(f"{path}: the model has no operators")
    if not graph.outputs:
        raise InputError(f"{path}: the model has no outputs")
    known = set(graph.inputs)
    written: set[int] = set()
    for index, op in enumerate(graph.ops):
        for tensor in op.outputs:
            if tensor in written or tensor in graph.inputs:
                raise InputError(f"{path}: operator {index} ({op.kind}) writes a tensor again")
            written.add(tensor)
    for index, op in enumerate(graph.ops):
        for tensor in op.inputs:
            if tensor not in written and tensor not in known:
                name = graph.tensors[tensor].name
                raise InputError(
                    f"{path}: operator {index} ({op.kind}) reads {name!r}, which nothing writes"
                )
            if tensor not in known:
                name = graph.tensors[tensor].name
                raise InputError(
                    f"{path}: operator {index} ({op.kind}) reads {name!r} before it "
                    "is written: the operators are not in topological order"
                )
        known.update(op.outputs)
    for tensor in graph.outputs:
        if tensor not in written:
            name = graph.tensors[tensor].name
            raise InputError(
                f"{path}: no operator computes the model's output {name!r}; a "
                "pipeline cannot hand an input or a constant through"
            )
    return graph


def _read_summary(data: bytes, path: Path) -> PipelineGraph:
    content = parse_json(data, str(path))
    try:
        return _summary(content)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError) as error:
        raise InputError(
            f"{path} is no graph summary: {type(error).__name__}: {error}; it needs tensors "
            "[{name, shape, dtype, bytes, is_param}], ops [{type, inputs, outputs, param_bytes, "
            "macs}], inputs, outputs"
        ) from error


def _summary(content: Mapping[str, Any]) -> PipelineGraph:
    tensors: Sequence[Mapping[str, Any]] = content["tensors"]
    sizes = [_count(tensor["bytes"]) for tensor in tensors]
    constant = [bool(tensor["is_param"]) for tensor in tensors]
    ops = []
    extra: list[int] = []
    for op in content["ops"]:
        inputs = _indices(op["inputs"], len(tensors))
        outputs = _indices(op["outputs"], len(tensors))
        constants = [i for i in inputs if constant[i]]
        own = _count(op.get("param_bytes", 0)) - sum(sizes[i] for i in constants)
        if own > 0:  # parameters that no tensor of the summary carries
            constants.append(len(tensors) + len(extra))
            extra.append(own)
        shapes = [tuple(_count(n) for n in tensors[i]["shape"]) for i in inputs if constant[i]]
        params = sum(sizes[i] for i in inputs if constant[i]) + max(own, 0)
        ops.append(
            PipelineOp(
                str(op["type"]),
                tuple(i for i in inputs if not constant[i]),
                outputs,
                tuple(constants),
                _count(op.get("macs", 0)),
                compiled_bytes(str(op["type"]), shapes, params),
            )
        )
    return PipelineGraph(
        str(content.get("name", "model")),
        tuple(
            PipelineTensor(str(tensor["name"]), size)
            for tensor, size in zip(tensors, sizes, strict=True)
        ),
        (*(s if c else 0 for s, c in zip(sizes, constant, strict=True)), *extra),
        tuple(ops),
        _indices(content["inputs"], len(tensors)),
        _indices(content["outputs"], len(tensors)),
    )


def _indices(values: Sequence[Any], size: int) -> tuple[int, ...]:
    """Tensor indices, each once; -1 stands for an absent optional input."""
    indices: dict[int, None] = {}
    for value in values:
        index = int(value)
        if index != value or not -1 <= index < size:
            raise ValueError(f"there is no tensor {value}")
        if index >= 0:
            indices[index] = None
    return tuple(indices)


def _count(value: Any) -> int:
    """A size or a number of things."""
    number = int(value)
    if number != value or not 0 <= number <= _LARGEST_BYTES or not math.isfinite(value):
        raise ValueError(f"{value} is no size")
    return number


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
            entry = model.tensors[tensor]
            key = entry.buffer or -1 - tensor  # buffer 0 is empty by convention
            if key not in buffers:
                buffers[key] = len(sizes)
                sizes.append(_constant_bytes(entry, op, path))
            constants.append((buffers[key], _shape(entry)))
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
        tuple(PipelineTensor(entry.name, _size(entry)) for entry in model.tensors),
        tuple(sizes),
        tuple(ops),
        tuple(dict.fromkeys(model.inputs)),
        tuple(dict.fromkeys(model.outputs)),
    )


def _variables(model: FileModel) -> dict[int, int]:
    """Resource tensors to one tensor for each variable: handles of one name are one variable."""
    first: dict[tuple[object, object], int] = {}
    variables = {}
    for op in model.ops:
        if op.code == "VAR_HANDLE" and op.outputs:
            options = op.needed_options
            key = (options.container, options.sharedName)
            variables[op.outputs[0]] = first.setdefault(key, op.outputs[0])
    return variables


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
    float_op = next((op for op in model.ops if _computes_in(_FLOATS, op, model)), None)
    quantised = any(_computes_in(_QUANTISED, op, model) for op in model.ops)
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
            entry = model.tensors[index]
            raise InputError(f"{path}: {entry.name!r} is {entry.type_name.lower()}, not a number")


def _refuse_tensor(entry: FileTensor, op: FileOp, path: Path) -> None:
    if any(axis > 0 for axis in entry.open_axes):
        raise InputError(
            f"{path}: tensor {entry.name!r} of {op} has a dynamic shape (dimensions "
            f"{', '.join(map(str, entry.open_axes))} are open); the Edge TPU needs fixed shapes: "
            "convert the model with a fixed input shape"
        )
    if (entry.tensor is None or entry.type_name == "INT4") and not entry.variable:
        reason = entry.refusal or f"tensor {entry.name!r} is {entry.type_name.lower()}"
        raise InputError(f"{path}: {op}: {reason}; the Edge TPU takes int8 models without it")


def _computes_in(types: frozenset[str], op: FileOp, model: FileModel) -> bool:
    """Whether an operator reads or writes one of these types, ends that convert left aside."""
    return op.code not in ("QUANTIZE", "DEQUANTIZE") and any(
        model.tensors[i].type_name in types for i in (*op.inputs, *op.outputs) if i != -1
    )


def _shape(entry: FileTensor) -> tuple[int, ...]:
    return () if entry.tensor is None else entry.tensor.shape


def _size(entry: FileTensor) -> int:
    """Bytes of a tensor; 0 for what no pipeline carries."""
    if entry.tensor is None:
        return 0
    return math.prod(entry.tensor.shape) * entry.tensor.dtype.size_bytes


def _constant_bytes(entry: FileTensor, op: FileOp, path: Path) -> int:
    if entry.tensor is None or entry.tensor.constant is None:
        raise InputError(f"{path}: {op} reads {entry.name!r}, which nothing writes")
    return int(entry.tensor.constant.nbytes)


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


def compiled_bytes(kind: str, constant_shapes: Sequence[tuple[int, ...]], params: int) -> int:
    """Parameter bytes after the Edge TPU compiler, fitted to published reports of it: mean error
    2.5%, at most 15%.

    `constant_shapes`: shapes of the operator's constants, weights first: conv [Cout, kh, kw, Cin],
    depthwise [1, kh, kw, C], fully connected [out, in]. `params` is returned for other operators.
    """
    weights = constant_shapes[0] if constant_shapes else ()
    if kind == "CONV_2D" and len(weights) == 4:
        out_channels, height, width, in_channels = weights
        return _up(out_channels, 16) * (height * width * in_channels + 12)
    if kind == "DEPTHWISE_CONV_2D" and len(weights) == 4:
        _, height, width, channels = weights
        return channels * (4 * height * width + 12)
    if kind == "FULLY_CONNECTED" and len(weights) == 2:
        return _up(weights[0], 64) * (weights[1] + 12)
    return params


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
