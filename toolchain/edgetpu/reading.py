"""Reads model files for the stage planner: TFLite files and neutral summaries become one checked
value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolchain.edgetpu._tflite import read_tflite
from toolchain.edgetpu.compiled import compiled_bytes
from toolchain.edgetpu.graph import PipelineGraph, PipelineOp, PipelineTensor
from toolchain.errors import InputError
from toolchain.files.records import parse_json
from toolchain.frontends import read_model_file

LARGEST_OPERATORS = 20_000
_LARGEST_BYTES = 1 << 40


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
    graph = PipelineGraph(
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
    return replace(graph, ops=graph.ops)


def _indices(values: Sequence[Any], size: int) -> tuple[int, ...]:
    """Tensor indices, each once; -1 stands for an absent optional input."""
    found: dict[int, None] = {}
    for value in values:
        index = int(value)
        if index != value or not -1 <= index < size:
            raise ValueError(f"there is no tensor {value}")
        if index >= 0:
            found[index] = None
    return tuple(found)


def _count(value: Any) -> int:
    """A size or a number of things."""
    number = int(value)
    if number != value or not 0 <= number <= _LARGEST_BYTES or not math.isfinite(value):
        raise ValueError(f"{value} is no size")
    return number
