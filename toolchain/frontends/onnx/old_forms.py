"""Operators as opsets before 13 write them, in the form of opset 13, which the readers know.

What moved over time: attributes became inputs (Slice, Clip, Pad, Squeeze, ...), broadcasting lost
its attributes, names changed (Upsample is Resize). The softmaxes of opsets below 13 are left as
they are: their readers look at the file's opset. Source: the history of each operator in
`onnx/defs`, and of Resize 10 in ONNX Runtime, which the standard does not define.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.onnx.file import Array, FileModel, Node, dtype_code, names_of
from toolchain.ir.names import Names

OLDEST_FORMS = 13
"""Operators have at least the form of this opset after `in_new_forms`."""
_WITHOUT_MEANING = frozenset(
    {"broadcast", "consumed_inputs", "is_test", "momentum", "output_sequence", "spatial"}
)
"""Attributes that say nothing about what an inference computes, or only their default."""
_BROADCASTING = frozenset(
    {"Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "PRelu", "Pow", "Sub", "Xor"}
)
RENAMED = frozenset({"Upsample"})
"""Operators that have another name in opset 13."""
Ranks = Callable[[], Mapping[str, int]]


def in_new_forms(model: FileModel, ranks: Ranks) -> FileModel:
    """The same model with every operator in the form of opset 13 or later.

    `ranks` gives the number of dimensions of each tensor that it can tell; it is called at most
    once, for what only opsets below 7 have. Raises InputError for what has no new form.
    """
    if model.opset >= OLDEST_FORMS:
        return model
    converter = _Converter(dict(model.constants), model.opset, ranks, names_of(model))
    nodes = tuple(part for node in model.nodes for part in converter.parts(node))
    return replace(model, nodes=nodes, constants=converter.constants)


@dataclass
class _Converter:
    constants: dict[str, Array]
    opset: int
    find_ranks: Ranks
    names: Names
    found_ranks: Mapping[str, int] | None = None

    def parts(self, node: Node) -> Iterator[Node]:
        before, convert = _FORMS.get(node.operator, (0, _as_it_is))
        if self.opset < before:
            yield from convert(self, node)
        elif self.opset < _BROADCAST and node.operator in _BROADCASTING:
            yield from _broadcast(self, node)
        else:
            yield _without(node)

    def constant(self, node: Node, stem: str, values: Any, dtype: type[np.generic]) -> str:
        name = self.fresh(node, stem)
        self.constants[name] = np.asarray(values, dtype)
        return name

    def fresh(self, node: Node, stem: str) -> str:
        return self.names.fresh(f"{node.outputs[0]}/{node.index}/{stem}")

    def rank(self, node: Node, name: str) -> int:
        if name in self.constants:
            return self.constants[name].ndim
        if self.found_ranks is None:
            self.found_ranks = self.find_ranks()
        if name not in self.found_ranks:
            raise InputError(
                f"{node} of opset {self.opset}: the rank of {name!r} cannot be told; convert the "
                "model with onnx.version_converter.convert_version(model, 13)"
            )
        return self.found_ranks[name]


Convert = Callable[[_Converter, Node], Iterator[Node]]
_BROADCAST = 7
"""The first opset whose binary operators broadcast without attributes."""


def _without(node: Node, *names: str) -> Node:
    """`node` without the attributes `names` and those without meaning."""
    left_out = _WITHOUT_MEANING | set(names)
    if not left_out & node.attributes.keys():
        return node
    kept = {name: value for name, value in node.attributes.items() if name not in left_out}
    return replace(node, attributes=kept)


def _as_it_is(converter: _Converter, node: Node) -> Iterator[Node]:
    yield _without(node)


def _given(*attributes: tuple[str, type[np.generic]]) -> Convert:
    """Attributes that became the inputs from 1 on, in this order."""

    def convert(converter: _Converter, node: Node) -> Iterator[Node]:
        inputs = [node.inputs[0]]
        for name, dtype in attributes:
            value = node.attributes.get(name)
            inputs.append("" if value is None else converter.constant(node, name, value, dtype))
        while not inputs[-1]:
            inputs.pop()
        moved = replace(node, inputs=tuple(inputs))
        if len(node.inputs) > 1:  # the newer form already, which some files use too early
            moved = replace(node, inputs=node.inputs)
        yield _without(moved, *(name for name, _ in attributes))

    return convert


def _slice(converter: _Converter, node: Node) -> Iterator[Node]:
    if "starts" not in node.attributes:
        yield node
        return
    starts, ends = node.attributes["starts"], node.attributes["ends"]
    axes = node.attributes.get("axes", list(range(len(starts))))
    lists = {"starts": starts, "ends": ends, "axes": axes}
    names = tuple(converter.constant(node, n, values, np.int64) for n, values in lists.items())
    yield _without(replace(node, inputs=(node.inputs[0], *names)), *lists)


def _pad(converter: _Converter, node: Node) -> Iterator[Node]:
    if len(node.inputs) > 1:
        yield node
        return
    pads = node.attributes.get("pads", node.attributes.get("paddings", []))
    value = node.attributes.get("value", 0.0)
    inputs = (
        node.inputs[0],
        converter.constant(node, "pads", pads, np.int64),
        converter.constant(node, "value", value, np.float32),
    )
    yield _without(replace(node, inputs=inputs), "pads", "paddings", "value")


def _upsample(converter: _Converter, node: Node) -> Iterator[Node]:
    if len(node.inputs) > 1:
        scales = node.inputs[1]
    else:
        given = node.attributes.get("scales")
        if given is None:
            given = [1.0, 1.0, *(node.attributes.get(f"{n}_scale", 1.0) for n in _SPATIAL)]
        scales = converter.constant(node, "scales", given, np.float32)
    yield _resize_of(node, scales, "floor")


_SPATIAL = ("height", "width")


def _resize(converter: _Converter, node: Node) -> Iterator[Node]:
    """Resize 10: an enlarged image takes the pixel before, a reduced one the pixel after."""
    scales = converter.constants.get(node.inputs[1])
    factors = [] if scales is None else scales.astype(float).reshape(-1).tolist()
    reduces = any(factor < 1 for factor in factors)
    if reduces and any(factor > 1 for factor in factors):
        raise InputError(f"{node} of opset 10 enlarges one dimension and reduces another")
    yield _resize_of(node, node.inputs[1], "ceil" if reduces else "floor")


def _resize_of(node: Node, scales: str, nearest: str) -> Node:
    attributes = {
        "mode": {"bilinear": "linear"}.get(*[node.attributes.get("mode", "nearest")] * 2),
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": nearest,
    }
    inputs = (node.inputs[0], "", scales)
    return replace(node, operator="Resize", inputs=inputs, attributes=attributes)


def _dropout(converter: _Converter, node: Node) -> Iterator[Node]:
    yield replace(node, inputs=node.inputs[:1], attributes={})


def _batch_norm(converter: _Converter, node: Node) -> Iterator[Node]:
    if not node.attributes.get("spatial", 1):
        raise InputError(f"{node} normalises each pixel by itself (spatial=0); export it anew")
    yield _without(replace(node, outputs=node.outputs[:1]))


def _cast(converter: _Converter, node: Node) -> Iterator[Node]:
    to = node.attributes["to"]
    yield replace(node, attributes={"to": dtype_code(str(to)) if isinstance(to, str) else to})


def _concat(converter: _Converter, node: Node) -> Iterator[Node]:
    yield replace(node, attributes={"axis": 1} | dict(node.attributes))


def _tile(converter: _Converter, node: Node) -> Iterator[Node]:
    if len(node.inputs) < 3:
        yield node
        return
    count, axis = (converter.constants.get(name) for name in node.inputs[1:3])
    if count is None or axis is None:
        raise InputError(f"{node} of opset {converter.opset} repeats as often as it computes")
    repeats = np.ones(converter.rank(node, node.inputs[0]), np.int64)
    repeats[int(axis.reshape(()))] = int(count.reshape(()))
    name = converter.constant(node, "repeats", repeats, np.int64)
    yield replace(node, inputs=(node.inputs[0], name))


def _broadcast(converter: _Converter, node: Node) -> Iterator[Node]:
    """The second operand's dimensions are those from `axis` on; later opsets count from the end."""
    first, second = node.inputs[:2]
    axis = 1 if node.operator == "PRelu" else node.attributes.get("axis")
    plain = _without(node, "axis")
    rank = 0 if axis is None else converter.rank(node, second)
    if axis is None or rank == 0:
        yield plain
        return
    whole = converter.rank(node, first)
    behind = whole - (axis % whole) - rank
    if behind <= 0:
        yield plain
        return
    wider = converter.fresh(node, "wider")
    places = converter.constant(node, "places", range(rank, rank + behind), np.int64)
    yield Node(node.index, "Unsqueeze", node.name, (second, places), (wider,))
    yield replace(plain, inputs=(first, wider))


_AXES = _given(("axes", np.int64))
_FORMS: Mapping[str, tuple[int, Convert]] = MappingProxyType(
    {
        "BatchNormalization": (13, _batch_norm),
        "Cast": (6, _cast),
        "Clip": (11, _given(("min", np.float32), ("max", np.float32))),
        "Concat": (4, _concat),
        "Dropout": (12, _dropout),
        "Pad": (11, _pad),
        "ReduceSum": (13, _AXES),
        "Reshape": (5, _given(("shape", np.int64))),
        "Resize": (11, _resize),
        "Slice": (10, _slice),
        "Split": (13, _given(("split", np.int64))),
        "Squeeze": (13, _AXES),
        "Tile": (6, _tile),
        "TopK": (10, _given(("k", np.int64))),
        "Unsqueeze": (13, _AXES),
        "Upsample": (OLDEST_FORMS, _upsample),
    }
)
"""By operator, the first opset whose form is the new one, and how older ones become it."""
