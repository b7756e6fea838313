"""Cut a TFLite file into parts, so that each operator is run by the runtime that is right for
it.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolchain.errors import InputError
from toolchain.frontends.tflite.file import FileModel
from toolchain.frontends.tflite.outside import take_in
from toolchain.ir import DType, Graph
from toolchain.packages import VERIFY, lazy
from toolchain.reference.unwritten import telling

if TYPE_CHECKING:
    import ai_edge_litert.schema_py_generated as schema
    import flatbuffers.builder
else:
    schema = lazy("ai_edge_litert.schema_py_generated", VERIFY)
    flatbuffers = lazy("flatbuffers")

_HOLDING = frozenset({"CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"})
"""Operators that reach what no tensor carries."""
_CHANNELS = 3
"""The axis of depthwise filters that has the channels."""


@dataclass(frozen=True)
class Part:
    """Operators that run together, by their places in the file, and the tensors between parts."""

    ops: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]


def can_be_cut(model: FileModel) -> bool:
    """Whether operators pass values to each other only by tensors."""
    return not model.others and not any(op.code in _HOLDING for op in model.ops)


def parts(model: FileModel, choice: Sequence[object]) -> tuple[Part, ...]:
    """Operators with one choice are together if nothing between them has another; in running
    order.
    """
    producer = {tensor: place for place, op in enumerate(model.ops) for tensor in op.outputs}
    levels: list[int] = []
    for place, op in enumerate(model.ops):
        before = [producer[i] for i in op.inputs if producer.get(i, place) < place]
        judged = choice[place]
        levels.append(max((levels[p] + (choice[p] != judged) for p in before), default=0))
    keys = sorted(
        {(level, choice.index(judged)) for level, judged in zip(levels, choice, strict=True)},
    )
    groups = [
        tuple(p for p in range(len(choice)) if (levels[p], choice[p]) == (level, choice[first]))
        for level, first in keys
    ]
    return tuple(part_of(model, group) for group in groups)


def part_of(model: FileModel, ops: Sequence[int]) -> Part:
    """The part of these operators. It writes what other operators read, what the model returns, and
    what tells which places of its operators' outputs are left unwritten.
    """
    inside = set(ops)
    carried = set(model.inputs) | {i for op in model.ops for i in op.outputs}
    wanted = set(model.outputs) | {
        i for place, op in enumerate(model.ops) if place not in inside for i in op.inputs
    }
    wanted |= {i for place in ops for i in telling(model.ops[place])}
    written = dict.fromkeys(i for p in ops for i in model.ops[p].outputs)
    read = dict.fromkeys(i for p in ops for i in model.ops[p].inputs if i in carried)
    return Part(
        tuple(ops),
        tuple(i for i in read if i not in written),
        tuple(i for i in written if i in wanted),
    )


class Cutter:
    """Writes parts of a file, without what no operator needs.

    Left out are signatures and metadata, which may be broken, and names that are not UTF-8. `graph`
    has the shapes that the file may leave undefined. Scales that `lone_scales` finds are repeated.
    Raises InputError where the file cannot be written again.
    """

    def __init__(self, data: bytes, model: FileModel, graph: Graph) -> None:
        types: Any = schema
        try:
            file = types.Model.GetRootAs(data)
            self._model = types.ModelT()
            self._model.version = file.Version()
            self._model.operatorCodes = [
                types.OperatorCodeT.InitFromObj(file.OperatorCodes(i))
                for i in range(file.OperatorCodesLength())
            ]
            self._model.subgraphs = [types.SubGraphT.InitFromObj(file.Subgraphs(0))]
            self._model.buffers = [
                types.BufferT.InitFromObj(file.Buffers(i)) for i in range(file.BuffersLength())
            ]
            take_in(data, self._model.buffers, self._model.subgraphs[0].operators or ())
        except (struct.error, IndexError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"the file cannot be taken apart: {error}") from error
        self._file = model
        main = self._model.subgraphs[0]
        for given, tensor in zip(model.tensors, main.tensors, strict=True):
            tensor.name = _legible(tensor.name)
            known = graph.tensors.get(given.name)
            if known is not None and not known.is_constant and not given.variable:
                tensor.shape, tensor.shapeSignature = list(known.shape), None
        for index in lone_scales(model):
            filters = main.tensors[index]
            channels = int(filters.shape[_CHANNELS])
            filters.quantization.scale = list(filters.quantization.scale) * channels
            filters.quantization.zeroPoint = [0] * channels
            filters.quantization.quantizedDimension = _CHANNELS

    def written(self, part: Part) -> bytes:
        """The file of these operators alone."""
        types: Any = schema
        whole = self._model.subgraphs[0]
        main, model = types.SubGraphT(), types.ModelT()
        touched = {i for place in part.ops for i in self._touched(place)}
        main.name = _legible(whole.name)
        main.tensors = [
            tensor if i in touched else _nothing(f"unused_{i}")
            for i, tensor in enumerate(whole.tensors)
        ]
        operators = [whole.operators[self._file.ops[place].index] for place in part.ops]
        used = sorted({op.opcodeIndex for op in operators})
        main.operators = [self._renumbered(op, used) for op in operators]
        main.inputs, main.outputs = list(part.reads), list(part.writes)
        kept = {whole.tensors[i].buffer for i in touched}
        model.version = self._model.version
        model.operatorCodes = [self._model.operatorCodes[number] for number in used]
        model.subgraphs = [main]
        model.buffers = [
            buffer if number in kept else types.BufferT()
            for number, buffer in enumerate(self._model.buffers or ())
        ]
        make: Any = flatbuffers.builder.Builder
        builder = make(1 << 16)
        try:
            builder.Finish(model.Pack(builder), b"TFL3")
        except (struct.error, IndexError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"the file cannot be taken apart: {error}") from error
        return bytes(builder.Output())

    def _renumbered(self, op: Any, used: Sequence[int]) -> Any:
        """The operator with its code's number among those that are kept: a runtime refuses a file
        for a code that it lacks, whether an operator has it or not.
        """
        renumbered = copy(op)
        renumbered.opcodeIndex = used.index(op.opcodeIndex)
        return renumbered

    def _touched(self, place: int) -> Collection[int]:
        op = self._file.ops[place]
        return [i for i in (*op.inputs, *op.outputs, *op.intermediates) if i >= 0]


def lone_scales(model: FileModel) -> tuple[int, ...]:
    """Depthwise filters of int8 beside floats that have one scale: LiteRT reads one a channel."""
    found = []
    for op in model.ops:
        if op.code != "DEPTHWISE_CONV_2D" or len(op.inputs) < 2:
            continue
        x, filters = (model.tensors[index] for index in op.inputs[:2])
        stored = filters.tensor
        if x.type_name != "FLOAT32" or stored is None or stored.dtype is not DType.INT8:
            continue
        if stored.quantisation is not None and len(stored.q.scales) < stored.shape[_CHANNELS]:
            found.append(op.inputs[1])
    return tuple(dict.fromkeys(found))


def _legible(name: bytes | None) -> bytes | None:
    """A name of equal length that runtimes take for text."""
    if name is None:
        return None
    try:
        name.decode()
    except UnicodeDecodeError:
        return bytes(byte if byte < 128 else ord("_") for byte in name)
    return name


def _nothing(name: str) -> Any:
    """A placeholder for a tensor that no operator touches: a runtime may refuse the file for the
    original."""
    types: Any = schema
    tensor = types.TensorT()
    tensor.name, tensor.shape, tensor.type = name, [1], types.TensorType.UINT8
    return tensor


def shared_variables(model: FileModel, made: Sequence[Part]) -> bool:
    """Whether two parts use one variable tensor, whose value only one of them would keep."""
    users: Mapping[int, set[int]] = {
        i: {n for n, part in enumerate(made) for p in part.ops if i in model.ops[p].inputs}
        for i, tensor in enumerate(model.tensors)
        if tensor.variable
    }
    return any(len(using) > 1 for using in users.values())
