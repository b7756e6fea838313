"""Files whose tensors have the names that the toolchain invents for its own.

The names are learned: a file is read, passed, rewritten and split, and every name of a tensor or an
operator that it did not have is one that a file can be given.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import onnx

from benchmarks.fuzz.aimed import aimed_model, dead
from benchmarks.fuzz.seeds import TFLITE, seed
from tests.support.mutations import packed, thawed, unpacked
from toolchain import passes
from toolchain.boards import board
from toolchain.frontends import front_end_of
from toolchain.ir import Graph
from toolchain.passes import Prepared
from toolchain.passes.identity_rewriting import partition, sites
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions

_WAYS = 4
"""Files of a seed whose names are learned: itself, two with dead channels, one with invented
names."""
_KEPT = 10_000
_BOARD = "netduinoplus2"
_PLAIN = PlanOptions(scheduler="rpo", allocator="greedy-size", allow_float=True)
_SPLIT = replace(_PLAIN, max_slowdown=0.5, split_seconds=0.05)
_SPLIT_FAMILY = "network/"
"""The seeds of which blocks have names to learn; splitting each of the others costs more."""


@dataclass(frozen=True)
class _Learned:
    data: bytes
    names: tuple[str, ...]


def invented(name: str, rng: random.Random) -> bytes | None:
    """A file of the seed `name` in which up to five tensors have invented names.

    None where nothing was invented for it.
    """
    found = _learned(name, rng.randrange(_WAYS))
    return _renamed(found, seed(name).suffix, rng) if found.names else None


def learned(name: str, way: int) -> tuple[str, ...]:
    """The names that were invented for one of the files of the seed `name`."""
    return _learned(name, way).names


@lru_cache(_KEPT)
def _learned(name: str, way: int) -> _Learned:
    start, rng = seed(name), random.Random(f"{name} {way}")
    data = start.data
    if way == _WAYS - 1:
        before = _learned(name, 0)
        data = _renamed(before, start.suffix, rng) if before.names else data
    elif way and start.model is not None:
        data = aimed_model(thawed(start.model), rng, (dead,)) or data
    own = set(_own_names(data, start.suffix))
    made = _made_names(data, start.suffix, is_split=name.startswith(_SPLIT_FAMILY))
    return _Learned(data, tuple(sorted(made - own - {""})))


def _made_names(data: bytes, suffix: str, *, is_split: bool) -> set[str]:
    """All names on the way to a plan, as far as the way goes."""
    found: set[str] = set()
    try:
        path = Path("case" + suffix)
        graph = front_end_of(path, data).read(data, path)
        found.update(_names(graph))
        prepared = Prepared(graph)
        for step in passes.DEFAULT:
            prepared = step.run(prepared)
            found.update(_names(prepared.graph))
        for site in sites(prepared.graph):
            found.update(_names(partition(prepared.graph, site)))
        for options in (_PLAIN, _SPLIT) if is_split else (_PLAIN,):
            plan = plan_graph(prepared.graph, board(_BOARD), options, prepared.boundaries)
            found.update(_names(plan.graph))
    except Exception:  # the levels judge that; here are the names until then
        return found
    return found


def _names(graph: Graph) -> Iterator[str]:
    yield from graph.tensors
    yield from (op.name for op in graph.ops)


def _own_names(data: bytes, suffix: str) -> Iterator[str]:
    if suffix == TFLITE:
        for graph in unpacked(data).subgraphs:
            yield from (_text(tensor.name) for tensor in graph.tensors)
        return
    model = onnx.ModelProto.FromString(data)
    for node in model.graph.node:
        yield from (node.name, *node.input, *node.output)
    yield from (tensor.name for tensor in model.graph.initializer)
    yield from (value.name for value in model.graph.input)


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _renamed(found: _Learned, suffix: str, rng: random.Random) -> bytes:
    alike: dict[str, list[str]] = {}
    for name in found.names:
        alike.setdefault(re.sub(r"\d+", "0", name), []).append(name)
    ways = sorted(alike)
    names = [rng.choice(alike[rng.choice(ways)]) for _ in range(rng.choice((1, 2, 3, 5)))]
    names = list(dict.fromkeys(names))
    if suffix == TFLITE:
        return _renamed_tflite(found.data, names, rng)
    return _renamed_onnx(found.data, names, rng)


def _renamed_tflite(data: bytes, names: Iterable[str], rng: random.Random) -> bytes:
    model = unpacked(data)
    for name in names:
        graph = rng.choice(model.subgraphs)
        if graph.tensors:
            rng.choice(graph.tensors).name = name
    return packed(model)


def _renamed_onnx(data: bytes, names: Iterable[str], rng: random.Random) -> bytes:
    """Of a tensor everywhere; or of a node, whose name nothing refers to."""
    model = onnx.ModelProto.FromString(data)
    graph = model.graph
    for name in names:
        node = rng.choice(graph.node)
        if rng.random() < 0.3:
            node.name = name
            continue
        old = rng.choice([*node.input, *node.output])
        for other in graph.node:
            for operands in (other.input, other.output):
                operands[:] = [name if operand == old else operand for operand in operands]
        for listed in (graph.initializer, graph.input, graph.output, graph.value_info):
            for value in listed:
                value.name = name if value.name == old else value.name
    return bytes(model.SerializeToString())
