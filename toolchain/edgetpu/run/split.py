"""Cuts one TFLite file into a TFLite file for each stage.

Operators, constants, quantisation, names, metadata and signatures are kept; buffers that a stage
does not use are dropped. Stages run one after another compute what the whole file computes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.supported import FEATURES, version_for
from toolchain.errors import InputError
from toolchain.frontends.tflite.outside import take_in
from toolchain.packages import EDGETPU, lazy

if TYPE_CHECKING:
    import ai_edge_litert.schema_py_generated as schema_module
    import flatbuffers.builder
else:
    schema_module = lazy("ai_edge_litert.schema_py_generated", EDGETPU)
    flatbuffers = lazy("flatbuffers")

schema: Any = schema_module  # generated code without types

_CONTROL_EDGES = "model_control_dependencies"
"""Metadata that numbers operators of the whole file; no stage can carry it."""


@dataclass(frozen=True)
class Segment:
    """One stage as a file. `inputs` and `outputs` are the names of its tensors. `rejected`: why
    edgetpu_compiler takes operators of it by no version that the file could have."""

    data: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    rejected: tuple[str, ...] = ()


class _Buffer:
    """A BufferT that is written 16-byte aligned, as the schema asks (`force_align: 16`)."""

    def __init__(self) -> None:
        self.data: Any = None

    def Pack(self, builder: Any) -> Any:  # noqa: N802 - the schema's name
        content = None
        if self.data is not None and len(self.data):
            raw = np.asarray(self.data, np.uint8).tobytes()
            builder.StartVector(1, len(raw), 16)
            builder.head = builder.Head() - len(raw)
            builder.Bytes[builder.Head() : builder.Head() + len(raw)] = raw
            content = builder.EndVector()
        schema.BufferStart(builder)
        if content is not None:
            schema.BufferAddData(builder, content)
        return schema.BufferEnd(builder)


def split_file(
    data: bytes, graph: PipelineGraph, stage_of: Sequence[int], stages: int
) -> tuple[Segment, ...]:
    """The stages of a TFLite file; `graph` is what `read_graph` returned for it.

    Raises InputError if parts of the file that its reader did not read are corrupt.
    """
    try:
        source = _unpack(data)
        names = _boundary_names(source, graph, stage_of)
        return tuple(
            _segment(source, graph, stage_of, stage, stages, names) for stage in range(stages)
        )
    except (
        struct.error,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        AttributeError,
        UnicodeDecodeError,
    ) as error:
        raise InputError(
            f"{graph.name}: the file is corrupt beyond its operators and tensors: {error}"
        ) from error


def _unpack(data: bytes) -> Any:
    """The file in the schema's object API, with data that lies outside the flatbuffer taken in."""
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    take_in(data, model.buffers or (), model.subgraphs[0].operators or ())
    return model


def _list(values: Any) -> list[int]:
    return [] if values is None else [int(value) for value in values]


def _boundary_names(source: Any, graph: PipelineGraph, stage_of: Sequence[int]) -> dict[int, bytes]:
    """A name of its own for every tensor that crosses stages: segments are joined by name.

    The file's own name wherever it is not taken; ends of the model keep theirs first.
    """
    crossing = [
        tensor
        for tensor, index in graph.producer.items()
        if any(stage_of[user] != stage_of[index] for user in graph.consumers.get(tensor, ()))
    ]
    taken: set[bytes] = set()
    names = {}
    for tensor in dict.fromkeys((*graph.inputs, *graph.outputs, *crossing)):
        given = source.subgraphs[0].tensors[tensor].name or f"tensor_{tensor}".encode()
        given = given if isinstance(given, bytes) else str(given).encode()
        name, number = given, tensor
        while name in taken:
            name, number = given + b"_%d" % number, number + 1
        taken.add(name)
        names[tensor] = name
    return names


def ends_of_stage(
    graph: PipelineGraph, stage_of: Sequence[int], stage: int, stages: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The input and output tensors of a stage. The model's own are in the file's order."""
    members = [index for index, at in enumerate(stage_of) if at == stage]
    written = dict.fromkeys(t for index in members for t in graph.ops[index].outputs)
    if stage == 0:
        inputs = graph.inputs
    else:
        read = dict.fromkeys(t for index in members for t in graph.ops[index].inputs)
        inputs = tuple(t for t in read if t not in written)
    if stage == stages - 1:
        return inputs, graph.outputs
    outputs = tuple(
        t for t in written if any(stage_of[user] > stage for user in graph.consumers.get(t, ()))
    )
    return inputs, outputs


def _segment(
    source: Any,
    graph: PipelineGraph,
    stage_of: Sequence[int],
    stage: int,
    stages: int,
    names: dict[int, bytes],
) -> Segment:
    main = source.subgraphs[0]
    inputs, outputs = ends_of_stage(graph, stage_of, stage, stages)
    members = _members(source, stage_of, stage)
    used = set(inputs) | set(outputs)
    for op in members:
        used.update(_list(op.inputs), _list(op.outputs), _list(op.intermediates))
    used.discard(-1)
    kept = sorted(used)
    place = {tensor: index for index, tensor in enumerate(kept)} | {-1: -1}
    writing = set(graph.producer) | set(graph.inputs)
    buffers = _Buffers(source)
    target = schema.ModelT()
    target.version = source.version
    target.description = source.description
    codes = _Codes(source)
    part = schema.SubGraphT()
    part.name = main.name
    part.tensors = [
        _tensor(main.tensors[tensor], tensor, names, buffers, tensor not in writing)
        for tensor in kept
    ]
    part.inputs = [place[tensor] for tensor in inputs]
    part.outputs = [place[tensor] for tensor in outputs]
    part.operators = [_operator(op, place, codes, main.tensors) for op in members]
    target.subgraphs = [part, *_initialisers(source, part.operators, buffers, codes)]
    target.operatorCodes = codes.target
    target.metadata = [
        _metadata(entry, buffers)
        for entry in source.metadata or ()
        if _text(entry.name) != _CONTROL_EDGES
    ] or None
    target.metadataBuffer = [buffers.carry(i) for i in _list(source.metadataBuffer)] or None
    target.signatureDefs = [
        _signature(signature, inputs, outputs, place, names)
        for signature in source.signatureDefs or ()
        if not signature.subgraphIndex
    ] or None
    target.buffers = buffers.target
    make: Any = flatbuffers.builder.Builder  # code without types
    builder = make(1 << 16)
    builder.Finish(target.Pack(builder), b"TFL3")
    return Segment(
        bytes(builder.Output()),
        tuple(_text(names[t]) for t in inputs),
        tuple(_text(names[t]) for t in outputs),
        tuple(codes.rejected),
    )


def _kind(source: Any, op: Any) -> int:
    return int(source.operatorCodes[op.opcodeIndex].builtinCode)


def _members(source: Any, stage_of: Sequence[int], stage: int) -> list[Any]:
    """Operators of a stage. Variables are initialised wherever there are any: by CALL_ONCE."""
    main, kinds = source.subgraphs[0], schema.BuiltinOperator
    calls = [op for op in main.operators if _kind(source, op) == kinds.CALL_ONCE]
    members = [
        op
        for op, at in zip(main.operators, stage_of, strict=True)
        if at == stage and _kind(source, op) != kinds.CALL_ONCE
    ]
    keeps = any(_kind(source, op) == kinds.VAR_HANDLE for op in members)
    return [*calls, *members] if keeps else members


def _initialisers(
    source: Any, operators: Sequence[Any], buffers: _Buffers, codes: _Codes
) -> list[Any]:
    """The subgraphs that the CALL_ONCE among a stage's `operators` call, which then name them."""
    parts: list[Any] = []
    for op in operators:
        if op.builtinOptionsType != schema.BuiltinOptions.CallOnceOptions:
            continue
        subgraph = source.subgraphs[op.builtinOptions.initSubgraphIndex]
        place = {index: index for index in range(-1, len(subgraph.tensors))}
        part = schema.SubGraphT()
        part.name = subgraph.name
        part.tensors = [
            _tensor(tensor, index, {}, buffers, True)
            for index, tensor in enumerate(subgraph.tensors)
        ]
        part.inputs, part.outputs = _list(subgraph.inputs), _list(subgraph.outputs)
        part.operators = [
            _operator(inner, place, codes, subgraph.tensors) for inner in subgraph.operators
        ]
        parts.append(part)
        op.builtinOptions = schema.CallOnceOptionsT()
        op.builtinOptions.initSubgraphIndex = len(parts)
    return parts


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name or "")


class _Buffers:
    """The buffers of a stage: the first is empty, as converters have it; others as needed."""

    def __init__(self, source: Any) -> None:
        self._source = source.buffers or []
        self._place: dict[int, int] = {}
        self.target: list[Any] = [_Buffer()]

    def carry(self, index: int) -> int:
        """Where a buffer of the whole file stands in this one."""
        data = self._source[index].data if index else None
        if data is None or not len(data):
            return 0
        if index not in self._place:
            buffer = _Buffer()
            buffer.data = data
            self._place[index] = len(self.target)
            self.target.append(buffer)
        return self._place[index]


class _Codes:
    """The operator codes of a stage, with versions that edgetpu_compiler takes where the features
    used allow it."""

    def __init__(self, source: Any) -> None:
        self._source = source.operatorCodes
        self._place: dict[tuple[int, int], int] = {}
        self.target: list[Any] = []
        self.rejected: dict[str, None] = {}

    def place(self, op: Any, tensors: Any) -> int:
        """Where the code of an operator of the whole file stands in this one."""
        code = self._source[op.opcodeIndex]
        kind = next(
            (k for k in FEATURES if code.builtinCode == getattr(schema.BuiltinOperator, k)), ""
        )
        version, why = version_for(kind, code.version, op, tensors)
        if why:
            self.rejected[why] = None
        key = op.opcodeIndex, version
        if key not in self._place:
            self._place[key] = len(self.target)
            made = schema.OperatorCodeT()
            vars(made).update(vars(code))
            made.version = version
            self.target.append(made)
        return self._place[key]


def _tensor(
    entry: Any, tensor: int, names: dict[int, bytes], buffers: _Buffers, constant: bool
) -> Any:
    made = schema.TensorT()
    vars(made).update(vars(entry))
    made.buffer = buffers.carry(entry.buffer) if constant else 0
    made.name = names.get(tensor, entry.name)
    return made


def _operator(entry: Any, place: dict[int, int], codes: _Codes, tensors: Any) -> Any:
    made = schema.OperatorT()
    vars(made).update(vars(entry))
    made.opcodeIndex = codes.place(entry, tensors)
    made.inputs = [place[tensor] for tensor in _list(entry.inputs)]
    made.outputs = [place[tensor] for tensor in _list(entry.outputs)]
    if entry.intermediates is not None:
        made.intermediates = [place[tensor] for tensor in _list(entry.intermediates)]
    if hasattr(made, "debugMetadataIndex"):
        made.debugMetadataIndex = -1
    return made


def _metadata(entry: Any, buffers: _Buffers) -> Any:
    made = schema.MetadataT()
    made.name = entry.name
    made.buffer = buffers.carry(entry.buffer)
    return made


def _signature(
    signature: Any,
    inputs: Sequence[int],
    outputs: Sequence[int],
    place: dict[int, int],
    names: dict[int, bytes],
) -> Any:
    """The signature of a stage: the model's own names where it has them, else tensor names."""
    made = schema.SignatureDefT()
    made.signatureKey = signature.signatureKey
    made.subgraphIndex = 0
    made.inputs = _maps(signature.inputs, inputs, place, names)
    made.outputs = _maps(signature.outputs, outputs, place, names)
    return made


def _maps(
    signature: Any, ends: Sequence[int], place: dict[int, int], names: dict[int, bytes]
) -> Any:
    given = {entry.tensorIndex: entry.name for entry in signature or ()}
    result = []
    for tensor in dict.fromkeys(ends):
        entry = schema.TensorMapT()
        entry.name = given.get(tensor, names[tensor])
        entry.tensorIndex = place[tensor]
        result.append(entry)
    return result
