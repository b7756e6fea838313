"""Forms of old opsets that several operators had, as opset 13 writes them.

Changes over time: attributes became inputs, broadcasting lost its attributes. Source: the history
of each operator in `onnx/defs`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.onnx.model import Node
from toolchain.frontends.onnx.operators.row import Older, Rewrite
from toolchain.frontends.onnx.writing import Writer

_WITHOUT_MEANING = frozenset(
    {"broadcast", "consumed_inputs", "is_test", "momentum", "output_sequence", "spatial"}
)
"""Attributes that say nothing about what an inference computes, or only their default."""


def without(node: Node, *names: str) -> Node:
    """`node` without the attributes `names` and those without meaning."""
    left_out = _WITHOUT_MEANING | set(names)
    if not left_out & node.attributes.keys():
        return node
    kept = {name: value for name, value in node.attributes.items() if name not in left_out}
    return replace(node, attributes=kept)


def given(*attributes: tuple[str, type[np.generic]]) -> Rewrite:
    """Attributes that became the inputs from 1 on, in this order."""

    def convert(writer: Writer) -> None:
        node = writer.node
        inputs = [node.inputs[0]]
        for name, dtype in attributes:
            value = node.attributes.get(name)
            inputs.append("" if value is None else writer.constant(value, dtype, name))
        while not inputs[-1]:
            inputs.pop()
        moved = replace(node, inputs=tuple(inputs))
        if len(node.inputs) > 1:  # the newer form already, which some files use too early
            moved = replace(node, inputs=node.inputs)
        writer.put(without(moved, *(name for name, _ in attributes)))

    return convert


def rank(writer: Writer, name: str) -> int:
    """The number of dimensions of a tensor. Raises InputError where it cannot be told."""
    if name in writer.constants:
        return writer.constants[name].ndim
    ranks = writer.ranks()
    if name not in ranks:
        raise InputError(
            f"{writer.node} of opset {writer.opset}: the rank of {name!r} cannot be told; convert "
            "the model with onnx.version_converter.convert_version(model, 13)"
        )
    return ranks[name]


def _broadcast(writer: Writer) -> None:
    axis = writer.node.attributes.get("axis")
    if axis is None:
        writer.put(without(writer.node, "axis"))
    else:
        align(writer, axis)


def align(writer: Writer, axis: int) -> None:
    """Align the second operand's dimensions with those from `axis` on; later opsets count from the
    end."""
    node = writer.node
    first, second = node.inputs[:2]
    plain, second_rank = without(node, "axis"), rank(writer, second)
    whole = rank(writer, first) if second_rank else 0
    behind = whole - (axis % whole) - second_rank if second_rank else 0
    if behind <= 0:
        writer.put(plain)
        return
    wider = writer.fresh("wider")
    places = writer.constant(range(second_rank, second_rank + behind), np.int64, "places")
    writer.write("Unsqueeze", (second, places), (wider,))
    writer.put(replace(plain, inputs=(first, wider)))


BROADCAST = Older(7, _broadcast)
"""The old form of operators of two operands, which broadcast without attributes from opset 7 on."""
