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
from toolchain.frontends.onnx.file import check_names, read_node, tensor_data
from toolchain.frontends.onnx.model import Array, FileModel, Node, is_graph
from toolchain.frontends.onnx.operators import Trait, operator
from toolchain.frontends.onnx.operators.unread import IF, LOOP
from toolchain.frontends.onnx.protos import Body, constants_from_nodes
from toolchain.frontends.onnx.rewriting import in_new_forms
from toolchain.frontends.onnx.writing import Writer
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

    def copies(graph: onnx.GraphProto) -> _Copies:
        writer = Writer(node, dict(constants), opset, names)
        return _Copies(writer, _read(node, graph, opset), written)

    if node.operator == IF:
        taken = constants.get(node.inputs[0])
        if taken is None or taken.size != 1:
            return None
        branch = node.attributes["then_branch" if taken.reshape(()) else "else_branch"]
        copy_of_branch = copies(branch)
        return copy_of_branch.body(copy_of_branch.step("branch", ()), ())
    count, condition = (_known(node, index, constants) for index in (0, 1))
    if node.operator != LOOP or count is None or condition is None:
        return None
    return _unrolled(copies(node.attributes["body"]), int(count.reshape(())), condition)


def _known(node: Node, index: int, constants: Mapping[str, Array]) -> Array | None:
    """The bound or the first condition of a Loop; an absent one never stops it."""
    if index < len(node.inputs) and node.inputs[index]:
        return constants.get(node.inputs[index])
    return np.asarray((_MOST_STEPS + 1, True)[index])


def _unrolled(copies: _Copies, count: int, condition: Array) -> Body | None:
    carried = copies.writer.node.inputs[2:]
    scanned: list[tuple[str, ...]] = []
    while len(scanned) < count and condition.reshape(()):
        if len(scanned) == _MOST_STEPS or len(copies.writer.nodes) > _MOST_NODES:
            return None
        number = copies.constant(f"{len(scanned)}/number", np.asarray(len(scanned), np.int64))
        going = copies.constant(f"{len(scanned)}/going", np.asarray(True))
        goes_on, *results = copies.step(str(len(scanned)), (number, going, *carried))
        if goes_on not in copies.known:
            return None
        condition = copies.known[goes_on]
        carried = tuple(results[: len(carried)])
        scanned.append(tuple(results[len(carried) :]))
    if not scanned:
        return None
    return copies.body(carried, tuple(zip(*scanned, strict=True)))


def _read(node: Node, graph: onnx.GraphProto, opset: int) -> _Graph:
    check_names(graph, f"the graph of {node}")
    constants_of_graph = {
        t.name: tensor_data(t, f"a constant of {node}") for t in graph.initializer
    }
    nodes = tuple(read_node(node.index, part) for part in graph.node)
    plain = constants_from_nodes(FileModel(nodes, constants_of_graph, (), (), opset))
    modern = in_new_forms(plain, dict)
    inputs = tuple(value.name for value in graph.input)
    return _Graph(inputs, tuple(v.name for v in graph.output), modern.nodes, modern.constants)


class _Copies:
    """Writes the operators of a graph any number of times, under names of their own."""

    def __init__(self, writer: Writer, graph: _Graph, written: WrittenOut) -> None:
        self.writer = writer
        self._graph, self._written = graph, written
        self._added: dict[str, Array] = {}
        self._own = {name: self.constant(name, data) for name, data in graph.constants.items()}

    @property
    def known(self) -> Mapping[str, Array]:
        """Constants by name, computed ones included."""
        return self.writer.constants

    def constant(self, stem: str, data: Array) -> str:
        name = self.writer.fresh(stem)
        self._know({name: data})
        return name

    def step(self, stem: str, inputs: tuple[str, ...]) -> tuple[str, ...]:
        """Write the graph once; returns the names of its outputs."""
        around = self.writer.node
        if len(inputs) != len(self._graph.inputs):
            raise InputError(f"{around} gives its body {len(inputs)} values")
        self._written.add(f"{around}", len(self._graph.nodes))
        names = {**self._own, **dict(zip(self._graph.inputs, inputs, strict=True))}
        for node in self._graph.nodes:
            inputs = _named(node.inputs, names)
            names |= {out: self.writer.fresh(f"{stem}/{out}") for out in node.outputs if out}
            held = {
                key: _renamed(value, names) if is_graph(value) else value
                for key, value in node.attributes.items()
            }
            outputs = _named(node.outputs, names)
            self._add(replace(node, inputs=inputs, outputs=outputs, attributes=held))
        return _named(self._graph.outputs, names)

    def body(self, results: Iterable[str], scanned: Iterable[tuple[str, ...]]) -> Body:
        """The operators that were written, with those that give the node's outputs."""
        writer, carried, collected = self.writer, tuple(results), tuple(scanned)
        outputs = writer.node.outputs
        for name, result in zip(outputs, carried, strict=False):
            if name:
                writer.write("Identity", (result,), (name,))
        zero = self.constant("first", np.zeros(1, np.int64))
        for parts, name in zip(collected, outputs[len(carried) :], strict=False):
            wide = []
            for part in parts:
                wide.append(writer.names.fresh(f"{part}/{name}/wide"))
                writer.write("Unsqueeze", (part, zero), (wide[-1],))
            if name:
                writer.write("Concat", wide, (name,), axis=0)
        return Body(tuple(writer.nodes), self._added)

    def _know(self, values: Mapping[str, Array]) -> None:
        self.writer.constants.update(values)
        self._added.update(values)

    def _add(self, node: Node) -> None:
        """Compute what is known, such as the condition; write the rest."""
        known, given = self.known, [name for name in node.inputs if name]
        nested = any(map(is_graph, node.attributes.values()))
        large = any(known[name].size > _LARGEST_KNOWN for name in given if name in known)
        if (
            "." in node.operator
            or nested
            or large
            or Trait.ENLARGES in operator(node.operator).traits
            or any(name not in known for name in given)
        ):
            self.writer.put(node)
            return
        self._know(evaluate(node, {name: known[name] for name in given}, self.writer.opset))


def _renamed(graph: onnx.GraphProto, names: Mapping[str, str]) -> onnx.GraphProto:
    """A graph in an operator that reads tensors of the graph around it under other names."""
    inner = {value.name for value in (*graph.input, *graph.initializer)}
    inner.update(name for node in graph.node for name in node.output)
    outside = {name: new for name, new in names.items() if name not in inner}
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
