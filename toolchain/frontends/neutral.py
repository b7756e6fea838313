"""Reader of the neutral graph format: topology and sizes only, no weights, no arithmetic.

A JSON object with `name source dtype_bytes nodes [{id op inputs outputs [{name shape bytes}]
inplace?}] inputs [{name shape bytes}] outputs`. `inplace` names the input tensor that the
operator's single output may overwrite; it becomes an `Overlap` with lead 0. Weights are not
counted, graph inputs live from the start to their last use, and a tensor that nothing reads
never dies (as HMCOS, DAC 2022, counts), so it is treated like a graph output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.errors import InputError
from toolchain.files.records import parse_json
from toolchain.frontends.model_file import read_model_file
from toolchain.ir import Buffer, Member, MemoryProblem, Overlap

MAX_TENSOR_BYTES = 1 << 48


@dataclass(frozen=True)
class NeutralTensor:
    """A tensor's name, shape (elements) and size in bytes."""

    name: str
    shape: tuple[int, ...]
    size_bytes: int


@dataclass(frozen=True)
class NeutralNode:
    """An operator. `id` is its name in the file; `inplace` is '' or one of its inputs."""

    id: int | str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[NeutralTensor, ...]
    inplace: str = ""


@dataclass(frozen=True)
class NeutralGraph:
    """A checked graph: every name resolves, every tensor has one producer, no cycle."""

    name: str
    source: str
    dtype_bytes: int
    nodes: tuple[NeutralNode, ...]
    inputs: tuple[NeutralTensor, ...]
    outputs: tuple[str, ...]

    def memory_problem(self) -> MemoryProblem:
        """One buffer a tensor, graph inputs first; predecessors in the order of the inputs."""
        tensors = [*self.inputs, *(t for node in self.nodes for t in node.outputs)]
        index = {tensor.name: i for i, tensor in enumerate(tensors)}
        producer = {t.name: n for n, node in enumerate(self.nodes) for t in node.outputs}
        read = {name for node in self.nodes for name in node.inputs}
        kept = set(self.outputs) | (set(producer) - read)
        arriving = {tensor.name for tensor in self.inputs}
        return MemoryProblem(
            ops=tuple(str(node.id) for node in self.nodes),
            predecessors=tuple(
                tuple(dict.fromkeys(producer[i] for i in node.inputs if i in producer))
                for node in self.nodes
            ),
            uses=tuple(
                tuple(sorted({index[name] for name in _touched(node)})) for node in self.nodes
            ),
            scratch_bytes=(0,) * len(self.nodes),
            buffers=tuple(
                Buffer(
                    name=tensor.name,
                    size_bytes=tensor.size_bytes,
                    members=(Member(tensor.name),),
                    from_start=tensor.name in arriving,
                    to_end=tensor.name in kept,
                )
                for tensor in tensors
            ),
            overlaps=tuple(
                Overlap(n, index[node.inplace], index[node.outputs[0].name])
                for n, node in enumerate(self.nodes)
                if node.inplace
            ),
        )


def _touched(node: NeutralNode) -> tuple[str, ...]:
    return (*node.inputs, *(tensor.name for tensor in node.outputs))


def is_neutral(path: Path) -> bool:
    """Whether the file's name is that of a neutral graph."""
    return path.suffix.lower() == ".json"


def read_neutral(path: Path) -> NeutralGraph:
    """Read and check a neutral graph file. Raises InputError naming it and what is wrong."""
    data = parse_json(read_model_file(path), str(path))
    try:
        return neutral_graph(data, path.stem)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def neutral_graph(data: object, fallback_name: str = "graph") -> NeutralGraph:
    """Check parsed JSON. Raises InputError naming what is wrong."""
    table = _object(data, "the graph")
    name = table.get("name", fallback_name)
    nodes = tuple(
        _node(entry, position) for position, entry in enumerate(_list(table, "nodes", "the graph"))
    )
    graph = NeutralGraph(
        name=name if isinstance(name, str) else fallback_name,
        source=str(table.get("source", "")),
        dtype_bytes=_count(table.get("dtype_bytes", 1), "dtype_bytes"),
        nodes=nodes,
        inputs=tuple(_tensor(t, "the graph's inputs") for t in _list(table, "inputs", "the graph")),
        outputs=_names(_list(table, "outputs", "the graph"), "the graph's outputs"),
    )
    _check(graph)
    return graph


def _object(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: a JSON object is expected, not {type(value).__name__}")
    return value


def _list(table: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = table.get(key)
    if not isinstance(value, list):
        raise InputError(f"{where}: {key!r} must be a list")
    return value


def _names(values: list[Any], where: str) -> tuple[str, ...]:
    for value in values:
        if not isinstance(value, str) or not value:
            raise InputError(f"{where}: {value!r} is not the name of a tensor")
    return tuple(values)


def _count(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_TENSOR_BYTES:
        raise InputError(f"{where}: {value!r} is not a count between 0 and 2^48")
    return value


def _tensor(value: object, where: str) -> NeutralTensor:
    table = _object(value, f"a tensor of {where}")
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise InputError(f"{where}: a tensor without a name")
    shape = table.get("shape", [])
    if not isinstance(shape, list):
        raise InputError(f"tensor {name!r}: 'shape' must be a list")
    return NeutralTensor(
        name,
        tuple(_count(extent, f"shape of tensor {name!r}") for extent in shape),
        _count(table.get("bytes"), f"bytes of tensor {name!r}"),
    )


def _node(value: object, position: int) -> NeutralNode:
    table = _object(value, f"node {position}")
    name = table.get("id", position)
    if not isinstance(name, int | str) or isinstance(name, bool):
        raise InputError(f"node {position}: 'id' must be a number or a name, not {name!r}")
    where = f"node {name!r}"
    node = NeutralNode(
        id=name,
        kind=str(table.get("op", "")),
        inputs=_names(_list(table, "inputs", where), f"{where}: inputs"),
        outputs=tuple(_tensor(t, where) for t in _list(table, "outputs", where)),
        inplace=table.get("inplace") or "",
    )
    if node.inplace and node.inplace not in node.inputs:
        raise InputError(f"{where}: 'inplace' names {node.inplace!r}, which it does not read")
    if node.inplace and len(node.outputs) != 1:
        raise InputError(f"{where}: 'inplace' needs exactly one output, not {len(node.outputs)}")
    return node


def _check(graph: NeutralGraph) -> None:
    """Raise InputError on names that clash or do not resolve, and on cycles."""
    known = {tensor.name: "the graph's inputs" for tensor in graph.inputs}
    if len(known) != len(graph.inputs):
        raise InputError("the graph's inputs: a tensor stands there twice")
    ids: set[int | str] = set()
    for node in graph.nodes:
        if node.id in ids:
            raise InputError(f"node {node.id!r}: two nodes have this id")
        ids.add(node.id)
        for tensor in node.outputs:
            if tensor.name in known:
                raise InputError(
                    f"node {node.id!r}: tensor {tensor.name!r} is already written by "
                    f"{known[tensor.name]}"
                )
            known[tensor.name] = f"node {node.id!r}"
    for node in graph.nodes:
        for name in node.inputs:
            if name not in known:
                raise InputError(f"node {node.id!r}: reads {name!r}, which nothing writes")
    for name in graph.outputs:
        if name not in known:
            raise InputError(f"the graph's outputs: {name!r} is written by nothing")
    _check_acyclic(graph)


def _check_acyclic(graph: NeutralGraph) -> None:
    producer = {t.name: n for n, node in enumerate(graph.nodes) for t in node.outputs}
    waiting = []
    followers: list[list[int]] = [[] for _ in graph.nodes]
    for n, node in enumerate(graph.nodes):
        before = {producer[name] for name in node.inputs if name in producer}
        waiting.append(len(before))
        for p in before:
            followers[p].append(n)
    ready = [n for n, count in enumerate(waiting) if not count]
    for n in ready:
        for follower in followers[n]:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    if len(ready) != len(graph.nodes):
        stuck = next(n for n, count in enumerate(waiting) if count)
        raise InputError(f"node {graph.nodes[stuck].id!r}: lies on or behind a cycle")
