"""Damaged TFLite files: bytes at random, and fields of the flatbuffer at random."""

from __future__ import annotations

import pickle
import random
import struct
from collections.abc import Callable
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np

INTEGERS = (0, 1, -1, 2, 3, 5, 8, 127, 128, 255, -128, -129, 65535, 100000, 2**31 - 1, -(2**31))
FLOATS = (0.0, -1.0, float("nan"), float("inf"), 1e-40, 1e-30, 1e30)
_TYPES = 25
"""One past the last element type of the schema."""
_BUILTINS = 210
_OPTIONS = sorted(name for name in vars(schema) if name.endswith("OptionsT"))
_NAMES = ("", "x", "*/ int x;", "größe", "a" * 300, '"\\', "main", "int", "\0", "%s%n", "../x")
CANNOT_PACK = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error),
)
"""What a change raises that builds on an earlier one, and the writer for values without a place."""


def unpacked(data: bytes) -> Any:
    """The file in the schema's object API."""
    return schema.ModelT.InitFromPackedBuf(data)


def packed(model: Any) -> bytes:
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def damaged_bytes(data: bytes, rng: random.Random, other: bytes = b"") -> bytes:
    """Cut short, grown, or up to eight bytes or words overwritten, mostly near the file's two ends.

    `other`: a file that a piece may be taken from.
    """
    result = bytearray(data)
    if len(result) < 16:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(64)))
    how = rng.randrange(8)
    if how == 0:
        return bytes(result[: rng.randrange(len(result))])
    if how == 1:
        return _spliced(result, rng, other or data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        tail = rng.randrange(max(0, len(result) - 8000), len(result) - 4)
        at = rng.choice((tail, tail, rng.randrange(min(4000, len(result) - 4))))
        word = at & ~3
        if how in (2, 3):
            result[at] ^= 1 << rng.randrange(8)
        elif how == 4:
            value = rng.choice((*INTEGERS, len(result), rng.getrandbits(32)))
            result[word : word + 4] = struct.pack("<I", value & 0xFFFFFFFF)
        elif how == 5:
            source = rng.randrange(len(result) - 4) & ~3
            result[word : word + 4] = result[source : source + 4]
        elif how == 6:
            result[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        else:
            (offset,) = struct.unpack_from("<I", result, word)
            step = rng.choice((-8, -4, -1, 1, 4, 8))
            result[word : word + 4] = struct.pack("<I", (offset + step) & 0xFFFFFFFF)
    return bytes(result)


def _spliced(result: bytearray, rng: random.Random, other: bytes) -> bytes:
    """A piece taken out, put in twice, or replaced by one of the other file."""
    begin = rng.randrange(len(result))
    end = min(len(result), begin + rng.choice((1, 4, 16, 64, 1024)))
    at = rng.randrange(len(other))
    pieces = (b"", result[begin:end] * 2, other[at : at + end - begin], other[at:])
    return bytes(result[:begin]) + bytes(rng.choice(pieces)) + bytes(result[end:])


def damaged_fields(data: bytes, rng: random.Random) -> bytes:
    """Some fields changed to what few converters write; still a whole flatbuffer."""
    return damaged_model(unpacked(data), rng) or data


def frozen(data: bytes) -> bytes:
    """A file as `thawed` takes it, sooner than by parsing it again."""
    return pickle.dumps(unpacked(data), pickle.HIGHEST_PROTOCOL)


def thawed(kept: bytes) -> Any:
    return pickle.loads(kept)


def damaged_model(model: Any, rng: random.Random) -> bytes | None:
    """Up to six fields of a model changed, which it is good for nothing else after; the file.

    None where the writer refuses the values.
    """
    try:
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
            _damage(model, rng)
        return packed(model)
    except CANNOT_PACK:
        return None


def _damage(model: Any, rng: random.Random) -> None:
    graph = model.subgraphs[0]
    if not graph.tensors or not graph.operators:
        return
    tensor, operator = rng.choice(graph.tensors), rng.choice(graph.operators)
    rng.choice(_DAMAGES)(model, tensor, operator, rng)


def _listed(values: Any) -> list[Any]:
    return [] if values is None else [int(value) for value in values]


def _shape(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    shape = _listed(tensor.shape)
    how = rng.random()
    if shape and how < 0.3:
        shape[rng.randrange(len(shape))] = rng.choice(INTEGERS)
    elif shape and how < 0.6:
        at = rng.randrange(len(shape))
        shape[at] = rng.choice((shape[at] + 1, shape[at] - 1, 2 * shape[at], shape[at] // 2))
    elif shape and how < 0.7:
        rng.shuffle(shape)
    elif shape and how < 0.8:
        del shape[rng.randrange(len(shape))]
    elif how < 0.85:
        tensor.shapeSignature = [rng.choice((-1, -1, 1, size)) for size in shape]
    else:
        shape.insert(rng.randrange(len(shape) + 1), rng.choice((0, 1, 1, 2, -1, 2**31 - 1)))
    tensor.shape = shape


def _whole_shape(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    """One size of all tensors that have it becomes another, and their data with it."""
    sizes = sorted({size for t in model.subgraphs[0].tensors for size in _listed(t.shape)})
    if not sizes:
        return
    old = rng.choice(sizes)
    new = max(0, rng.choice((old + 1, old - 1, 2 * old, 1, rng.randrange(1, 40))))
    for other in model.subgraphs[0].tensors:
        shape = _listed(other.shape)
        if old in shape:
            other.shape = [new if size == old else size for size in shape]
            data = model.buffers[other.buffer].data if other.buffer < len(model.buffers) else None
            if data is not None and len(data) and 0 <= new < 1000:
                share = new ** shape.count(old) / max(1, old ** shape.count(old))
                whole = np.resize(np.asarray(data, np.uint8), min(1 << 16, int(len(data) * share)))
                model.buffers[other.buffer].data = whole


def _type(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    """Of one tensor, or of all that have the same."""
    old, new = tensor.type, rng.choice((rng.randrange(_TYPES), 0, 2, 3, 4, 6, 7, 9, -1, 100))
    if rng.random() < 0.5:
        tensor.type = new
        return
    for other in model.subgraphs[0].tensors:
        if other.type == old:
            other.type = new


def _buffer(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    if rng.random() < 0.3:
        tensor.buffer = rng.choice((0, rng.randrange(len(model.buffers)), 2**32 - 1))
        return
    buffer = rng.choice(model.buffers)
    if buffer.data is None or len(buffer.data) < 4:
        if rng.random() < 0.3:
            buffer.offset, buffer.size = rng.choice(((2, 4), (2**40, 100), (8, 2**63)))
        return
    data = np.array(buffer.data, np.uint8)
    how = rng.randrange(5)
    if how == 0:
        data = data[: rng.randrange(len(data))]
    elif how == 1:
        data[:] = rng.choice((0, 127, 128, 255))
    else:
        words = data[: len(data) & ~3].view("<i4")
        at = rng.randrange(len(words))
        near = int(words[at]) + rng.choice((-1, 1))
        words[at] = np.int64(rng.choice((*INTEGERS, near, near))).astype(np.int32)
    buffer.data = data


def _scales(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    q = tensor.quantization
    if q is None or q.scale is None or not len(q.scale):
        if rng.random() < 0.3:
            q = tensor.quantization = schema.QuantizationParametersT()
            q.scale, q.zeroPoint = [0.1], [rng.choice((0, 0, 3))]
        return
    how = rng.randrange(8)
    scales = [float(scale) for scale in q.scale]
    if how == 0:
        q.scale = [rng.choice(FLOATS) for _ in scales]
    elif how == 1:
        q.zeroPoint = [rng.choice((0, 128, -129, 2**40)) for _ in scales]
    elif how == 2:
        q.scale = None
    elif how == 3:
        q.scale, q.quantizedDimension = [*scales, 1.0], rng.choice(INTEGERS)
    elif how == 4:
        factor = 2.0 ** rng.uniform(-20, 20)
        q.scale = [min(scale * factor, 3e38) for scale in scales]
    elif how == 5:
        factor = 2.0 ** rng.choice((-31, -16, -8, -1, 1, 2, 8, 16, 31))
        q.scale = [min(scale * factor, 3e38) for scale in scales]
    elif how == 6:
        q.zeroPoint = [rng.choice((-128, -1, 1, 127, 255, rng.randrange(-128, 128)))] * len(scales)
    else:
        count = len(scales) if len(scales) > 1 else (_listed(tensor.shape) or [1])[-1]
        if count < 4096:
            q.scale = [scales[0] * rng.uniform(0.5, 2.0) for _ in range(count)]
            q.zeroPoint = [0] * count
            q.quantizedDimension = rng.choice((0, len(_listed(tensor.shape)) - 1, -1))


def _options(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    names = [] if operator.builtinOptions is None else list(vars(operator.builtinOptions))
    if not names:
        return
    name = rng.choice(names)
    value = getattr(operator.builtinOptions, name)
    changed: Any = value
    if isinstance(value, bool):
        changed = not value
    elif isinstance(value, int):
        near = (value + 1, value - 1, 2 * value)
        changed = rng.choice((rng.choice(INTEGERS), rng.choice(near), rng.randrange(10)))
    elif isinstance(value, float):
        changed = rng.choice((*FLOATS, value * 2.0 ** rng.uniform(-10, 10), -value))
    elif hasattr(value, "__len__") and not isinstance(value, bytes):
        changed = [rng.choice((*INTEGERS, *range(6))) for _ in range(rng.randrange(6))]
    setattr(operator.builtinOptions, name, changed)


def _other_options(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    """None, those of another operator's, or a type without a table."""
    how = rng.randrange(4)
    if how == 0:
        operator.builtinOptions, operator.builtinOptionsType = None, 0
    elif how == 1:
        operator.builtinOptionsType = rng.choice((rng.randrange(140), 255))
    elif how == 2:
        name = rng.choice(_OPTIONS)
        operator.builtinOptions = getattr(schema, name)()
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, name[:-1], 0)
    else:
        operator.customOptions = np.zeros(rng.randrange(8), np.uint8)


def _code(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    how = rng.randrange(5)
    if how == 0:
        operator.opcodeIndex = rng.choice((rng.randrange(len(model.operatorCodes) + 1), 2**31))
        return
    code = rng.choice(model.operatorCodes)
    if how <= 2:
        code.version = rng.choice((*range(-1, 13), 100, 2**31 - 1))
    elif how == 3:
        code.builtinCode = rng.choice((rng.randrange(_BUILTINS), -1, 2**31 - 1))
        code.deprecatedBuiltinCode = min(max(code.builtinCode, 0), 127)
    else:
        code.builtinCode, code.customCode = schema.BuiltinOperator.CUSTOM, rng.choice(_NAMES)


def _operands(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    """Of an operator or of the model: one named anew, added, left out, or two exchanged."""
    graph = model.subgraphs[0]
    tensors = len(graph.tensors)
    fields = ((operator, "inputs"), (operator, "inputs"), (operator, "outputs"))
    owner, field = rng.choice((*fields, (graph, "inputs"), (graph, "outputs")))
    if rng.random() < 0.03:
        field = "intermediates" if owner is operator else field
    values = _listed(getattr(owner, field))
    how = rng.randrange(5)
    if values and how == 0:
        values[rng.randrange(len(values))] = rng.choice((-1, -1, -2, tensors, 2**31 - 1))
    elif values and how == 1:
        values[rng.randrange(len(values))] = rng.randrange(tensors)
    elif how == 2:
        values.append(rng.randrange(tensors))
    elif values and how == 3:
        del values[rng.randrange(len(values))]
    else:
        rng.shuffle(values)
    setattr(owner, field, values)


def _operators(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    """One dropped or put in again, or the order changed."""
    graph = model.subgraphs[0]
    how = rng.randrange(4)
    if how == 0:
        graph.operators.remove(operator)
    elif how == 1:
        graph.operators.append(operator)
    elif how == 2:
        rng.shuffle(graph.operators)
    else:
        _again(graph, operator, rng)


def _again(graph: Any, operator: Any, rng: random.Random) -> None:
    """The operator once more, on its own outputs or on its own inputs, writing other tensors."""
    copy = pickle.loads(pickle.dumps(operator))
    first, inputs, outputs = len(graph.tensors), _listed(copy.inputs), _listed(copy.outputs)
    if not inputs or not outputs or max(outputs) >= first or min(outputs) < 0:
        return
    graph.tensors += [pickle.loads(pickle.dumps(graph.tensors[index])) for index in outputs]
    copy.outputs = list(range(first, len(graph.tensors)))
    if rng.random() < 0.7:
        copy.inputs = [outputs[0], *inputs[1:]]
    graph.operators.append(copy)
    graph.outputs = [*_listed(graph.outputs), *copy.outputs][-rng.randrange(1, 4) :]


def _constness(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    """A variable, a constant with data, or without any."""
    how = rng.randrange(4)
    if how == 0:
        tensor.isVariable = not tensor.isVariable
    elif how == 1:
        tensor.buffer = 0
    elif how == 2:
        size = int(np.prod([max(0, s) for s in _listed(tensor.shape)], dtype=np.float64))
        buffer = schema.BufferT()
        bytes_each = {0: 4, 2: 4, 4: 8, 7: 2}.get(tensor.type, 1)
        buffer.data = np.frombuffer(rng.randbytes(min(size * bytes_each, 1 << 16)), np.uint8)
        tensor.buffer = len(model.buffers)
        model.buffers.append(buffer)
        inputs = _listed(model.subgraphs[0].inputs)
        if rng.random() < 0.7:
            model.subgraphs[0].inputs = [
                i for i in inputs if model.subgraphs[0].tensors[i] is not tensor
            ]
    else:
        tensor.externalBuffer = rng.choice((0, 1, 7))


def _rest(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    """Names, the schema's version, subgraphs, signatures, metadata."""
    how = rng.randrange(8)
    if how <= 2:
        tensor.name = rng.choice((*_NAMES, model.subgraphs[0].tensors[0].name))
    elif how == 3:
        model.version = rng.choice((0, 1, 2, 4, 2**32 - 1))
    elif how == 4:
        if len(model.subgraphs) < 5:
            model.subgraphs.append(model.subgraphs[0])
    elif how == 5:
        model.signatureDefs = [schema.SignatureDefT()]
        model.signatureDefs[0].subgraphIndex = rng.choice((0, 1, 2**32 - 1))
        entry = schema.TensorMapT()
        entry.name, entry.tensorIndex = rng.choice(_NAMES), rng.choice((0, 1, 2**32 - 1))
        model.signatureDefs[0].inputs = [entry]
    elif how == 6:
        entry = schema.MetadataT()
        entry.name = rng.choice((*_NAMES, "min_runtime_version"))
        entry.buffer = rng.choice((0, 1, 2**32 - 1))
        model.metadata = [entry]
    else:
        tensor.sparsity = schema.SparsityParametersT()


_DAMAGES: tuple[Callable[[Any, Any, Any, random.Random], None], ...] = (
    *(_shape, _shape, _whole_shape, _whole_shape, _whole_shape),
    *(_type, _type, _buffer, _buffer, _buffer),
    *(_scales, _scales, _scales, _scales),
    *(_options, _options, _options, _options, _options),
    *(_other_options, _code, _code, _operands, _operands, _operands),
    *(_operators, _constness, _rest),
)
