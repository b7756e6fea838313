"""Changes of TFLite models that are aimed at what found faults before, and mostly stay sound.

Constants that operators share, sums and floats at the ends of their types, channels that compute
nothing, absurd ratios of scales, subgraphs that call subgraphs.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Sequence
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import numpy as np

from tests.support.mutations import CANNOT_PACK, packed

_SUM_TYPES = {schema.TensorType.INT32: "<i4", schema.TensorType.INT64: "<i8"}
_BYTE_TYPES = {schema.TensorType.INT8: "i1", schema.TensorType.UINT8: "u1"}
_ODD_FLOATS = (0.0, -0.0, 1e-45, -1e-40, 1.1754944e-38, 3.4028235e38, -3.4028235e38, 1.0, -1.0)
_BOMB_SHARE = 0.002
"""Of nested calls: those whose copies no machine holds."""
_RECURSIVE_SHARE = 0.003
"""Of calls: those of the main subgraph."""
_MOST_RESULTS = 8

Aim = Callable[[Any, random.Random], bool]
"""Whether there was something to change."""


def aimed_model(model: Any, rng: random.Random, aims: Sequence[Aim] | None = None) -> bytes | None:
    """One or two such changes of a model, which it is good for nothing else after; the file.

    `aims`: which may be chosen; by default all. None where the writer refuses the values.
    """
    wanted, done, chosen = rng.choice((1, 1, 2)), 0, _AIMS if aims is None else aims
    try:
        for aim in rng.sample(chosen, len(chosen)):
            done += aim(model, rng)
            if done == wanted:
                break
        return packed(model)
    except CANNOT_PACK:
        return None


def _copy(part: Any) -> Any:
    return pickle.loads(pickle.dumps(part))


def _data(model: Any, tensor: Any) -> Any:
    """The bytes of a constant; None of anything else."""
    data = model.buffers[tensor.buffer].data if tensor.buffer < len(model.buffers) else None
    return None if data is None or not len(data) else np.array(data, np.uint8)


def _put(model: Any, tensor: Any, data: Any) -> None:
    """A buffer of its own, so that no other tensor changes with it."""
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(data.tobytes(), np.uint8)
    tensor.buffer = len(model.buffers)
    model.buffers.append(buffer)


def _constants(model: Any, types: Any) -> list[tuple[Any, Any]]:
    found = []
    for tensor in model.subgraphs[0].tensors:
        if tensor.type in types and (data := _data(model, tensor)) is not None:
            found.append((tensor, data))
    return found


def _shared(model: Any, rng: random.Random) -> bool:
    """An operator again on inputs of its own, mostly of another quantisation, with the same
    constants."""
    graph = model.subgraphs[0]
    operator = _copy(rng.choice(graph.operators))
    ends = {"inputs": [], "outputs": []}
    for field, made in ends.items():
        indices = [int(index) for index in getattr(operator, field)]
        for place, index in enumerate(indices):
            if index < 0 or _data(model, graph.tensors[index]) is not None:
                continue
            tensor = _copy(graph.tensors[index])
            tensor.name = f"{_text(tensor.name)}/{len(graph.tensors)}"
            if rng.random() < 0.8:
                _requantise(tensor, rng)
            indices[place] = len(graph.tensors)
            made.append(len(graph.tensors))
            graph.tensors.append(tensor)
        setattr(operator, field, indices)
    graph.operators.append(operator)
    graph.inputs = [*map(int, graph.inputs), *ends["inputs"]]
    graph.outputs = [*map(int, graph.outputs), *ends["outputs"]]
    return True


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _requantise(tensor: Any, rng: random.Random) -> None:
    """Another zero point, or now and then another scale, where the tensor has them."""
    q = tensor.quantization
    if q is None or q.scale is None or not len(q.scale):
        return
    if tensor.type in _BYTE_TYPES and rng.random() < 0.8:
        info = np.iinfo(_BYTE_TYPES[tensor.type])
        q.zeroPoint = [rng.choice((info.min, info.max, rng.randint(info.min, info.max)))]
    else:
        q.scale = [float(scale) * 2.0 ** rng.choice((-1, 1, 0.3)) for scale in q.scale]


def _limits(model: Any, rng: random.Random) -> bool:
    """Biases at the ends of their type, where sums wrap."""
    found = [(t, d) for t, d in _constants(model, _SUM_TYPES) if t.quantization is not None]
    if not found:
        return False
    tensor, data = rng.choice(found)
    values = data.view(_SUM_TYPES[tensor.type])
    ends = (2**31 - 1, -(2**31), 2**30, -(2**30), 2_130_617_867, -(2**31) + rng.randrange(1 << 20))
    how = rng.randrange(3)
    chosen = rng.sample(range(len(values)), rng.randint(1, len(values))) if how else range(1)
    for place in chosen:
        values[place] = rng.choice(ends) if how < 2 else ends[0]
    _put(model, tensor, values)
    return True


def _weight_scales(model: Any, rng: random.Random) -> bool:
    """Scales of weights and of sums, larger or smaller together by a power of two."""
    factor = 2.0 ** rng.choice((-40, -31, -24, -16, -8, 8, 16, 24, 31, 40))
    scaled = 0
    for tensor, _ in _constants(model, {**_SUM_TYPES, **_BYTE_TYPES}):
        q = tensor.quantization
        if q is not None and q.scale is not None:
            q.scale = [min(max(float(scale) * factor, 1.2e-38), 3e38) for scale in q.scale]
            scaled += len(q.scale)
    return scaled > 0


def _end_scales(model: Any, rng: random.Random) -> bool:
    """The scale of one value between operators, or of an end, far from the others."""
    found = [
        tensor
        for tensor in model.subgraphs[0].tensors
        if tensor.quantization is not None
        and tensor.quantization.scale is not None
        and len(tensor.quantization.scale) == 1
        and _data(model, tensor) is None
    ]
    if found:
        q = rng.choice(found).quantization
        q.scale = [min(max(float(q.scale[0]) * 2.0 ** rng.uniform(-40, 40), 1.2e-38), 3e38)]
    return bool(found)


def dead(model: Any, rng: random.Random) -> bool:
    """Filters of nothing but zeros, or weights that read nothing of a channel."""
    found = [(t, d) for t, d in _constants(model, _BYTE_TYPES) if len(t.shape) in (2, 4)]
    for tensor, data in rng.sample(found, min(len(found), rng.choice((1, 2, 5, 9)))):
        shape = tuple(int(size) for size in tensor.shape)
        if int(np.prod(shape)) != data.size:
            continue
        zero = 0
        if tensor.quantization is not None and tensor.quantization.zeroPoint is not None:
            zero = int(tensor.quantization.zeroPoint[0]) & 255 if len(shape) else 0
        values = np.moveaxis(data.reshape(shape), rng.choice((0, 0, 0, -1)), 0)
        size = len(values)
        values[
            rng.sample(range(size), rng.choice((1, size // 2, max(0, size - 2), max(0, size - 1))))
        ] = zero
        _put(model, tensor, data)
    return bool(found)


def _odd_floats(model: Any, rng: random.Random) -> bool:
    """Float constants with zeros of both signs, denormal numbers, the largest ones."""
    found = [
        (tensor, data)
        for tensor, data in _constants(model, (schema.TensorType.FLOAT32,))
        if data.size % 4 == 0
    ]
    for tensor, data in found:
        values = data.view("<f4")
        for place in rng.sample(range(len(values)), rng.randint(1, min(len(values), 8))):
            values[place] = rng.choice(_ODD_FLOATS)
        _put(model, tensor, values)
    return bool(found)


def nested(model: Any, rng: random.Random) -> bool:
    """The model as a subgraph that others call, one above the other, once or many times each."""
    depth, times = rng.choice((1, 1, 2, 3)), rng.choice((1, 2, 2, 3))
    if rng.random() < _BOMB_SHARE:
        depth, times = rng.choice((8, 14, 30)), rng.choice((2, 4))
    model.signatureDefs = None
    for level in range(depth):
        inner = model.subgraphs[0]
        model.subgraphs.append(inner)
        model.subgraphs[0] = _caller(model, inner, len(model.subgraphs) - 1, level, times, rng)
    return True


def _caller(model: Any, inner: Any, number: int, level: int, times: int, rng: random.Random) -> Any:
    """A subgraph that calls number `number`; results go on into the next call where they fit."""
    graph = schema.SubGraphT()
    graph.tensors, graph.operators = [], []

    def ends(field: str, call: int) -> list[int]:
        for index in getattr(inner, field):
            tensor = _copy(inner.tensors[int(index)])
            tensor.name = f"{_text(tensor.name)}_{level}_{call}"
            tensor.buffer, tensor.isVariable = 0, False
            graph.tensors.append(tensor)
        count = len(getattr(inner, field))
        return list(range(len(graph.tensors) - count, len(graph.tensors)))

    graph.inputs = given = ends("inputs", 0)
    results: list[int] = []
    for call in range(times):
        made = ends("outputs", call + 1)
        called = number if rng.random() >= _RECURSIVE_SHARE else 0
        graph.operators.append(_call(model, graph, called, given, made, rng))
        both = rng.random() < 0.5 and len(results) + len(made) <= _MOST_RESULTS
        results = [*results, *made] if both else made
        if len(made) == len(given) and all(
            _same_kind(graph.tensors[one], graph.tensors[other])
            for one, other in zip(made, given, strict=True)
        ):
            given = made
    graph.outputs = results
    return graph


def _same_kind(one: Any, other: Any) -> bool:
    first, second = one.quantization, other.quantization
    scales = [None if q is None or q.scale is None else list(q.scale) for q in (first, second)]
    return (
        one.type == other.type and list(one.shape) == list(other.shape) and scales[0] == scales[1]
    )


def _call(
    model: Any, graph: Any, number: int, given: list[int], made: list[int], rng: random.Random
) -> Any:
    operator, code = schema.OperatorT(), schema.OperatorCodeT()
    operator.inputs, operator.outputs = given, made
    how = rng.choice(("CALL", "STABLEHLO_COMPOSITE", "IF"))
    if how == "CALL":
        operator.builtinOptions = schema.CallOptionsT()
        operator.builtinOptions.subgraph = number
        operator.builtinOptionsType = schema.BuiltinOptions.CallOptions
    elif how == "STABLEHLO_COMPOSITE":
        options = operator.builtinOptions2 = schema.StableHLOCompositeOptionsT()
        options.name, options.decompositionSubgraphIndex = "fuzz.call", number
        operator.builtinOptions2Type = schema.BuiltinOptions2.StableHLOCompositeOptions
    else:
        flag = schema.TensorT()
        flag.name, flag.shape, flag.type = f"flag_{len(graph.tensors)}", [], schema.TensorType.BOOL
        _put(model, flag, np.array([rng.randrange(2)], np.uint8))
        operator.inputs = [len(graph.tensors), *given]
        graph.tensors.append(flag)
        operator.builtinOptions = schema.IfOptionsT()
        operator.builtinOptions.thenSubgraphIndex = number
        operator.builtinOptions.elseSubgraphIndex = number
        operator.builtinOptionsType = schema.BuiltinOptions.IfOptions
    code.builtinCode = getattr(schema.BuiltinOperator, how)
    code.deprecatedBuiltinCode, code.version = min(127, code.builtinCode), 1
    operator.opcodeIndex = len(model.operatorCodes)
    model.operatorCodes.append(code)
    return operator


_AIMS: tuple[Aim, ...] = (_shared, _limits, _weight_scales, _end_scales, dead, _odd_floats, nested)
