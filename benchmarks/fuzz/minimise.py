"""Smaller and nearer to its seed: a file that ends as a given one does.

Parts are left out and fields put back to the seed's one by one, as long as the outcome stays the
same: its kind, and where.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from google.protobuf import json_format

from benchmarks.fuzz.outcome import Outcome
from benchmarks.fuzz.seeds import TFLITE
from tests.support.mutations import packed, unpacked

Judge = Callable[[bytes], Outcome]
Path = tuple[str | int, ...]
_LONGEST_LIST = 200
"""Items of a longer one (weights) are left alone."""


def minimised(data: bytes, suffix: str, judge: Judge, seed: bytes | None = None) -> bytes:
    """The smallest file that was found with the outcome of `data`; itself where it cannot be
    parsed."""
    wanted = _key(judge(data))
    read, write = (unpacked, packed) if suffix == TFLITE else (_onnx_tree, _onnx_bytes)
    try:
        tree = read(data)
        found = write(copy.deepcopy(tree))
    except Exception:  # damaged bytes: nothing that could be left out
        return data
    if _key(judge(found)) != wanted:
        return data
    goals = [None] if seed is None else [read(seed), None]
    for goal in goals:
        changed = True
        while changed:
            changed = False
            for edit in list(_edits(tree, goal)):
                candidate = copy.deepcopy(tree)
                try:
                    edit(candidate)
                    other = write(candidate)
                except Exception:  # an earlier edit took the part, or the writer refuses it
                    continue
                nearer = len(other) < len(found) or (goal is not None and other != found)
                if nearer and _key(judge(other)) == wanted:
                    tree, found, changed = candidate, other, True
    return found


def _key(outcome: Outcome) -> tuple[str, str]:
    return outcome.kind, outcome.where


def _onnx_tree(data: bytes) -> Any:
    return json_format.MessageToDict(onnx.ModelProto.FromString(data))


def _onnx_bytes(tree: Any) -> bytes:
    return bytes(json_format.ParseDict(tree, onnx.ModelProto()).SerializeToString())


Edit = Callable[[Any], None]


def _edits(tree: Any, goal: Any) -> Iterator[Edit]:
    """Large ones first: fields put back to what they are in `goal`; without one, parts left out."""
    for path in sorted(_paths(tree, ()), key=len):
        there, other = _at(goal, path)
        if goal is not None:
            if there and not _same(_at(tree, path)[1], other):
                yield lambda root, path=path, other=other: _put(root, path, copy.deepcopy(other))
        elif isinstance(path[-1], int):
            yield lambda root, path=path: _remove(root, path)
        elif _at(tree, path)[1] is not None:
            yield lambda root, path=path: _put(root, path, None)


def _fields(node: Any) -> dict[str, Any] | None:
    if isinstance(node, dict):
        return node
    return vars(node) if hasattr(node, "__dict__") and not isinstance(node, np.ndarray) else None


def _paths(node: Any, path: Path) -> Iterator[Path]:
    fields = _fields(node)
    if fields is not None:
        for name, value in fields.items():
            yield (*path, name)
            yield from _paths(value, (*path, name))
    elif isinstance(node, list) and len(node) <= _LONGEST_LIST:
        for index, value in enumerate(node):
            yield (*path, index)
            yield from _paths(value, (*path, index))


def _at(root: Any, path: Path) -> tuple[bool, Any]:
    """Whether there is something at the path, and what."""
    node = root
    for step in path:
        fields = _fields(node)
        if isinstance(step, int):
            if not isinstance(node, list) or step >= len(node):
                return False, None
            node = node[step]
        elif fields is None or step not in fields:
            return False, None
        else:
            node = fields[step]
    return root is not None, node


def _same(one: Any, other: Any) -> bool:
    first, second = _fields(one), _fields(other)
    if first is not None and second is not None:
        return first.keys() == second.keys() and all(_same(first[k], second[k]) for k in first)
    if isinstance(one, list | np.ndarray) and isinstance(other, list | np.ndarray):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)


def _put(root: Any, path: Path, value: Any) -> None:
    _, parent = _at(root, path[:-1])
    if isinstance(parent, list):
        parent[int(path[-1])] = value
    else:
        fields = _fields(parent)
        assert fields is not None
        fields[str(path[-1])] = value


def _remove(root: Any, path: Path) -> None:
    _, parent = _at(root, path[:-1])
    del parent[int(path[-1])]
