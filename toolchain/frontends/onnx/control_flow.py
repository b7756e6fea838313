"""If whose condition is known, and Loop whose count is known, written out.

Keras's recurrent layers come as such a Loop, PyTorch's `squeeze` as such an If.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.onnx.evaluation import evaluate
from toolchain.frontends.onnx.file import Array, FileModel, Node, is_graph, read_node, tensor_data
from toolchain.frontends.onnx.old_forms import in_new_forms
from toolchain.frontends.onnx.operators import ENLARGING
from toolchain.frontends.onnx.protos import Body, constants_from_nodes
from toolchain.frontends.written_out import WrittenOut
from toolchain.ir.names import Names

if TYPE_CHECKING:
    import onnx

_MOST_STEPS = 4096
_MOST_NODES = 1 << 15
_LARGEST_KNOWN = 1 << 20
"""Elements of a tensor that is still computed while a loop is written out; a loop may double it."""


@dataclass(frozen=True)
class _Graph:
    """A branch or a body. `constants` are its own; other names are those of the graph around it."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]


def written_out(
    node: Node, constants: Mapping[str, Array], opset: int, names: Names, written: WrittenOut
) -> Body | None:
    """The operators of a Loop or an If; None if how often or whether they run is not known.

    `names`: of the tensors inside; `written`: of the whole file. Raises InputError where that is
    too much, and as `evaluate`.
    """
    if node.operator == "If":
        taken = constants.get(node.inputs[0])
        if taken is None or taken.size != 1:
            return None
        branch = node.attributes["then_branch" if taken.reshape(()) else "else_branch"]
        writer = _Writer(node, constants, _read(node, branch, opset), opset, names, written)
        return writer.body(writer.step("branch", ()), ())
    count, condition = (_known(node, index, constants) for index in (0, 1))
    if node.operator != "Loop" or count is None or condition is None:
        return None
    body = _read(node, node.attributes["body"], opset)
    writer = _Writer(node, constants, body, opset, names, written)
    return _unrolled(writer, int(count.reshape(())), condition)


def _known(node: Node, index: int, constants: Mapping[str, Array]) -> Array | None:
    """The bound or the first condition of a Loop; an absent one never stops it."""
    if index < len(node.inputs) and node.inputs[index]:
        return constants.get(node.inputs[index])
    return np.asarray((_MOST_STEPS + 1, True)[index])


def _unrolled(writer: _Writer, count: int, condition: Array) -> Body | None:
    carried = writer.node.inputs[2:]
    scanned: list[tuple[str, ...]] = []
    while len(scanned) < count and condition.reshape(()):
        if len(scanned) == _MOST_STEPS or len(writer.nodes) > _MOST_NODES:
            return None
        number = writer.constant(f"{len(scanned)}/number", np.asarray(len(scanned), np.int64))
        going = writer.constant(f"{len(scanned)}/going", np.asarray(True))
        goes_on, *results = writer.step(str(len(scanned)), (number, going, *carried))
        if goes_on not in writer.known:
            return None
        condition = writer.known[goes_on]
        carried = tuple(results[: len(carried)])
        scanned.append(tuple(results[len(carried) :]))
    if not scanned:
        return None
    return writer.body(carried, tuple(zip(*scanned, strict=True)))


def _read(node: Node, graph: onnx.GraphProto, opset: int) -> _Graph:
    own = {t.name: tensor_data(t, f"a constant of {node}") for t in graph.initializer}
    nodes = tuple(read_node(node.index, part) for part in graph.node)
    plain = constants_from_nodes(FileModel(nodes, own, (), (), opset))
    modern = in_new_forms(plain, dict)
    inputs = tuple(value.name for value in graph.input)
    return _Graph(inputs, tuple(v.name for v in graph.output), modern.nodes, modern.constants)


class _Writer:
    """Writes the operators of a graph any number of times, under names of their own."""

    def __init__(
        self,
        node: Node,
        constants: Mapping[str, Array],
        graph: _Graph,
        opset: int,
        names: Names,
        written: WrittenOut,
    ) -> None:
        self.node = node
        self.nodes: list[Node] = []
        self.known = dict(constants)
        self._added: dict[str, Array] = {}
        self._graph, self._opset, self._names = graph, opset, names
        self._written = written
        self._own = {name: self.constant(name, data) for name, data in graph.constants.items()}

    def constant(self, stem: str, data: Array) -> str:
        name = self._fresh(stem)
        self.known[name] = self._added[name] = data
        return name

    def _fresh(self, stem: str) -> str:
        return self._names.fresh(f"{self.node.outputs[0]}/{self.node.index}/{stem}")

    def step(self, stem: str, inputs: tuple[str, ...]) -> tuple[str, ...]:
        """Write the graph once; returns the names of its outputs."""
        if len(inputs) != len(self._graph.inputs):
            raise InputError(f"{self.node} gives its body {len(inputs)} values")
        self._written.add(f"{self.node}", len(self._graph.nodes))
        names = {**self._own, **dict(zip(self._graph.inputs, inputs, strict=True))}
        for node in self._graph.nodes:
            inputs = _named(node.inputs, names)
            names |= {out: self._fresh(f"{stem}/{out}") for out in node.outputs if out}
            held = {
                key: _renamed(value, names) if is_graph(value) else value
                for key, value in node.attributes.items()
            }
            outputs = _named(node.outputs, names)
            self._add(replace(node, inputs=inputs, outputs=outputs, attributes=held))
        return _named(self._graph.outputs, names)

    def body(self, results: Iterable[str], scanned: Iterable[tuple[str, ...]]) -> Body:
        """What was written, with the operators that give the node's own outputs."""
        carried, collected = tuple(results), tuple(scanned)
        for name, result in zip(self.node.outputs, carried, strict=False):
            self._plain("Identity", (result,), name)
        zero = self.constant("first", np.zeros(1, np.int64))
        for parts, name in zip(collected, self.node.outputs[len(carried) :], strict=False):
            wide = []
            for part in parts:
                wide.append(self._names.fresh(f"{part}/{name}/wide"))
                self._plain("Unsqueeze", (part, zero), wide[-1])
            if name:
                self.nodes.append(self._node("Concat", tuple(wide), name, {"axis": 0}))
        return Body(tuple(self.nodes), self._added)

    def _plain(self, operator: str, inputs: tuple[str, ...], output: str) -> None:
        if output:
            self.nodes.append(self._node(operator, inputs, output, {}))

    def _node(
        self, operator: str, inputs: tuple[str, ...], output: str, attributes: Mapping[str, int]
    ) -> Node:
        return Node(self.node.index, operator, self.node.name, inputs, (output,), attributes)

    def _add(self, node: Node) -> None:
        """Compute what is known, such as the condition; write the rest."""
        given = [name for name in node.inputs if name]
        nested = any(map(is_graph, node.attributes.values()))
        large = any(self.known[name].size > _LARGEST_KNOWN for name in given if name in self.known)
        if (
            "." in node.operator
            or nested
            or large
            or node.operator in ENLARGING
            or any(name not in self.known for name in given)
        ):
            self.nodes.append(node)
            return
        values = evaluate(node, {name: self.known[name] for name in given}, self._opset)
        self.known |= values
        self._added |= values


def _renamed(graph: onnx.GraphProto, names: Mapping[str, str]) -> onnx.GraphProto:
    """A graph in an operator that reads tensors of the graph around it under other names."""
    own = {value.name for value in (*graph.input, *graph.initializer)}
    own.update(name for node in graph.node for name in node.output)
    outside = {name: new for name, new in names.items() if name not in own}
    made = deepcopy(graph)
    for node in made.node:
        node.input[:] = _named(node.input, outside)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                attribute.g.CopyFrom(_renamed(attribute.g, outside))
    for value in made.output:
        value.name = outside.get(value.name, value.name)
    return made


def _named(names: Iterable[str], table: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(table.get(name, name) for name in names)
