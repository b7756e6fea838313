"""Damaged TFLite files: bytes at random, and fields of the flatbuffer at random."""

from __future__ import annotations

import random
import struct
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np

INTEGERS = (0, 1, -1, 2, 3, 5, 8, 127, 128, 255, -128, -129, 65535, 100000, 2**31 - 1, -(2**31))
FLOATS = (0.0, -1.0, float("nan"), float("inf"), 1e-40, 1e-30, 1e30)


def unpacked(data: bytes) -> Any:
    """The file in the schema's object API."""
    return schema.ModelT.InitFromPackedBuf(data)


def packed(model: Any) -> bytes:
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """Cut short, or up to eight bytes or words overwritten, mostly near the file's two ends."""
    result = bytearray(data)
    how = rng.randrange(5)
    if how == 0:
        return bytes(result[: rng.randrange(len(result))])
    for _ in range(rng.choice((1, 1, 2, 8))):
        tail = rng.randrange(max(0, len(result) - 8000), len(result) - 4)
        at = rng.choice((tail, tail, rng.randrange(min(4000, len(result) - 4))))
        word = at & ~3
        if how == 1:
            result[at] ^= 1 << rng.randrange(8)
        elif how == 2:
            value = rng.choice((*INTEGERS, len(result), rng.getrandbits(32)))
            result[word : word + 4] = struct.pack("<I", value & 0xFFFFFFFF)
        elif how == 3:
            other = rng.randrange(len(result) - 4) & ~3
            result[word : word + 4] = result[other : other + 4]
        else:
            (value,) = struct.unpack_from("<I", result, word)
            step = rng.choice((-8, -4, -1, 1, 4, 8))
            result[word : word + 4] = struct.pack("<I", (value + step) & 0xFFFFFFFF)
    return bytes(result)


def damaged_fields(data: bytes, rng: random.Random) -> bytes:
    """One to three fields changed to what no converter writes; still a whole flatbuffer."""
    model = unpacked(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        _damage(model, rng)
    try:
        return packed(model)
    except (TypeError, ValueError, struct.error):  # the writer itself refuses such a value
        return data


def _damage(model: Any, rng: random.Random) -> None:
    graph = model.subgraphs[0]
    tensor, operator = rng.choice(graph.tensors), rng.choice(graph.operators)
    rng.choice((_shape, _type, _buffer, _scales, _options, _options, _inputs, _outputs))(
        model, tensor, operator, rng
    )


def _shape(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    shape = [] if tensor.shape is None else list(tensor.shape)
    if shape and rng.random() < 0.6:
        shape[rng.randrange(len(shape))] = rng.choice(INTEGERS)
    else:
        shape.append(rng.choice((0, 1, 2, -1, 2**31 - 1)))
    tensor.shape = shape


def _type(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    tensor.type = rng.randrange(25)


def _buffer(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    if rng.random() < 0.5:
        tensor.buffer = rng.choice((0, rng.randrange(len(model.buffers)), 2**32 - 1))
        return
    buffer = rng.choice(model.buffers)
    if buffer.data is not None and len(buffer.data) >= 4:
        data = np.array(buffer.data, np.uint8)
        data[:4] = np.frombuffer(np.int32(rng.choice(INTEGERS)).tobytes(), np.uint8)
        buffer.data = data if rng.random() < 0.5 else data[: rng.randrange(len(data))]


def _scales(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    q = tensor.quantization
    if q is None or q.scale is None:
        return
    how = rng.randrange(4)
    if how == 0:
        q.scale = [rng.choice(FLOATS) for _ in q.scale]
    elif how == 1:
        q.zeroPoint = [rng.choice((0, 128, -129, 2**40)) for _ in q.scale]
    elif how == 2:
        q.scale = None
    else:
        q.scale, q.quantizedDimension = [*q.scale, 1.0], rng.choice(INTEGERS)


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
        changed = rng.choice(INTEGERS)
    elif isinstance(value, float):
        changed = rng.choice(FLOATS)
    elif hasattr(value, "__len__") and not isinstance(value, bytes):
        changed = [rng.choice(INTEGERS) for _ in range(rng.randrange(6))]
    setattr(operator.builtinOptions, name, changed)


def _inputs(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    tensors = len(model.subgraphs[0].tensors)
    inputs = list(operator.inputs)
    if inputs and rng.random() < 0.6:
        inputs[rng.randrange(len(inputs))] = rng.choice((-1, -2, tensors, rng.randrange(tensors)))
    elif rng.random() < 0.5:
        inputs.append(rng.randrange(tensors))
    else:
        inputs = inputs[:-1]
    operator.inputs = inputs


def _outputs(model: Any, tensor: Any, operator: Any, rng: random.Random) -> None:
    how = rng.randrange(3)
    if how == 0:
        operator.outputs = [rng.randrange(len(model.subgraphs[0].tensors))]
    elif how == 1:
        operator.opcodeIndex = rng.randrange(len(model.operatorCodes) + 1)
    else:
        rng.shuffle(model.subgraphs[0].operators)
