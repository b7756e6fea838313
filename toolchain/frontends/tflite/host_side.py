"""Operators that the host must run: a model is compiled up to them.

TFLite_Detection_PostProcess decodes boxes and drops those that overlap better ones. These are a few
thousand float operations in data-dependent loops, for which a firmware has code of its own. Inputs
of it that the model computes become the model's outputs. The operator is removed, with everything
that depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from toolchain.errors import InputError
from toolchain.frontends.front_end import HostOperator
from toolchain.frontends.tflite.file import FileModel, FileOp, read_file
from toolchain.frontends.tflite.outside import take_in
from toolchain.packages import VERIFY, lazy

if TYPE_CHECKING:
    import ai_edge_litert.schema_py_generated as schema
    import flatbuffers.builder
else:
    schema = lazy("ai_edge_litert.schema_py_generated", VERIFY)
    flatbuffers = lazy("flatbuffers")

_WORK: Mapping[str, str] = MappingProxyType(
    {"TFLite_Detection_PostProcess": "decoding boxes and suppressing overlapping ones"}
)


def _is_host_side(op: FileOp) -> bool:
    return op.code == "CUSTOM" and op.custom in _WORK


def _constant(model: FileModel, index: int) -> bool:
    tensor = model.tensors[index].tensor
    return tensor is not None and tensor.is_constant


def _cut(model: FileModel) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Operators that stay, by their place, and the outputs of what is left."""
    gone = {output for op in model.ops if _is_host_side(op) for output in op.outputs}
    kept = []
    for place, op in enumerate(model.ops):
        if _is_host_side(op) or gone & set(op.inputs):
            gone |= set(op.outputs)
        else:
            kept.append(place)
    read = (i for op in model.ops if _is_host_side(op) for i in op.inputs if i != -1)
    wanted = [i for i in read if i not in gone and not _constant(model, i)]
    stay = [i for i in model.outputs if i not in gone]
    ends = set(model.inputs)
    return tuple(kept), tuple(i for i in dict.fromkeys((*wanted, *stay)) if i not in ends)


def without_host_side(model: FileModel) -> FileModel:
    """The model up to the host's operators; the same model if there are none.

    Raises InputError if nothing is left.
    """
    if not any(map(_is_host_side, model.ops)):
        return model
    kept, outputs = _cut(model)
    if not kept or not outputs:
        raise InputError(
            "nothing is left of the model without TFLite_Detection_PostProcess, which is its "
            "caller's work"
        )
    return replace(model, ops=tuple(model.ops[place] for place in kept), outputs=outputs)


def bytes_without_host_side(data: bytes) -> bytes:
    """The file of `without_host_side`, for other runtimes."""
    model = read_file(data)
    if not any(map(_is_host_side, model.ops)):
        return data
    kept, outputs = _cut(model)
    types: Any = schema  # code without types, as its builder
    written = types.ModelT.InitFromObj(types.Model.GetRootAs(data))
    main = written.subgraphs[0]
    take_in(data, written.buffers or (), main.operators)
    main.operators = [main.operators[place] for place in kept]
    main.outputs = list(outputs)
    written.signatureDefs = None
    make: Any = flatbuffers.builder.Builder
    builder = make(1 << 16)
    builder.Finish(written.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def host_operators(data: bytes) -> tuple[HostOperator, ...]:
    """Operators of a TFLite file that the firmware's caller runs."""
    model = read_file(data)
    found = []
    for op in filter(_is_host_side, model.ops):
        present = [i for i in op.inputs if i != -1]
        found.append(
            HostOperator(
                op.custom,
                _WORK[op.custom],
                tuple(model.tensors[i].name for i in present if not _constant(model, i)),
                tuple(model.tensors[i].name for i in present if _constant(model, i)),
                tuple(model.tensors[i].name for i in op.outputs),
            )
        )
    return tuple(found)
