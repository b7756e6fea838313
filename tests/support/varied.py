"""Values that differ from another in one field: what a cache's key must tell apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation, Tensor


def varied(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """`value` with one thing changed, each with the name of what it is, down to the last field."""
    if is_dataclass(value) and not isinstance(value, type | Enum):
        for entry in fields(value):
            for at, other in varied(getattr(value, entry.name), f"{where}.{entry.name}"):
                yield at, replace(value, **{entry.name: other})
        return
    if isinstance(value, Enum):
        for other in type(value):
            if other is not value:
                yield f"{where}={other.name}", other
                return
    if isinstance(value, tuple):
        yield f"{where} longer", (*value, value[-1] if value else 1)
        for at, one in enumerate(value):
            for name, other in varied(one, f"{where}[{at}]"):
                yield name, (*value[:at], other, *value[at + 1 :])
    elif isinstance(value, Mapping):
        for key, one in value.items():
            for name, other in varied(one, f"{where}[{key}]"):
                yield name, MappingProxyType({**value, key: other})
    elif isinstance(value, np.ndarray):
        yield from _arrays(value, where)
    else:
        yield from _plain(value, where)


def _plain(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, bool):
        yield f"{where} the other", not value
    elif isinstance(value, int):
        yield f"{where} + 1", value + 1
    elif isinstance(value, float):
        yield f"{where} next", math.nextafter(value, math.inf)
        if value == 0:
            yield f"{where} of the other sign", -value
    elif isinstance(value, str):
        yield f"{where} longer", f"{value}x"
    elif value is None:
        yield f"{where} there", 0


def _arrays(value: np.ndarray, where: str) -> Iterator[tuple[str, np.ndarray]]:
    if value.size:
        data = bytearray(value.tobytes())
        data[-1] ^= 1
        other = np.frombuffer(bytes(data), value.dtype).reshape(value.shape)
        yield f"{where} last byte", other
    yield f"{where} flat", value.reshape(1, *value.shape)


def varied_operators(op: Op, graph: Graph) -> Iterator[tuple[str, Op, Graph]]:
    """The operator with one thing that counts changed: its kind, an attribute, the shape, element
    type, quantisation or data of a tensor, which of its operands are one tensor.
    """
    yield "kind", replace(op, kind=f"{op.kind}x"), graph
    for at, attributes in varied(op.attributes, "attributes"):
        yield at, replace(op, attributes=attributes), graph
    for name in dict.fromkeys((*op.present_inputs(), *op.outputs)):
        for at, tensor in _varied_tensor(graph.tensors[name]):
            table = MappingProxyType({**graph.tensors, name: tensor})
            yield f"{name}{at}", op, replace(graph, tensors=table)
    if len(op.inputs) > 1:
        yield "absent operand", replace(op, inputs=("", *op.inputs[1:])), graph
        if op.inputs[0] != op.inputs[1]:
            twice = (op.inputs[1], *op.inputs[1:])
            yield "one operand twice", replace(op, inputs=twice), graph
    yield "one operand more", replace(op, inputs=(*op.inputs, op.inputs[0])), graph


def _varied_tensor(tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    for dtype in (DType.INT16, DType.UINT8):
        if tensor.dtype is not dtype:
            yield f" {dtype.value}", replace(tensor, dtype=dtype)
    yield " shape", replace(tensor, shape=(*tensor.shape, 1))
    given = tensor.quantisation
    if given is None:
        yield " scale", replace(tensor, quantisation=Quantisation((1.0,), (0,)))
    else:
        yield " no scale", replace(tensor, quantisation=None)
        for at, q in varied(given, " "):
            yield at, replace(tensor, quantisation=q)
    if tensor.constant is None:
        zeros = np.zeros(tensor.shape, tensor.dtype.numpy)
        yield " a constant", replace(tensor, constant=zeros)
    else:
        yield " no constant", replace(tensor, constant=None)
        for at, data in _arrays(tensor.constant, " data"):
            yield at, replace(tensor, constant=data)
