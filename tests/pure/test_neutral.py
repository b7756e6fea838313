"""The neutral graph reader: what it accepts, how it counts, and what it says of bad files."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from toolchain.errors import InputError
from toolchain.frontends.neutral import neutral_graph, read_neutral
from toolchain.ir.memory import footprint

GOOD: dict[str, Any] = {
    "name": "two",
    "source": "by hand",
    "dtype_bytes": 1,
    "inputs": [{"name": "x", "shape": [10], "bytes": 10}],
    "outputs": ["y"],
    "nodes": [
        {
            "id": 0,
            "op": "Conv",
            "inputs": ["x"],
            "outputs": [{"name": "h", "shape": [8], "bytes": 8}],
        },
        {
            "id": 1,
            "op": "Relu",
            "inputs": ["h"],
            "outputs": [{"name": "y", "shape": [8], "bytes": 8}],
            "inplace": "h",
        },
    ],
}


def test_counts_in_place_and_keeps_ids() -> None:
    graph = neutral_graph(GOOD)
    assert [node.id for node in graph.nodes] == [0, 1]
    assert footprint(graph.memory_problem(), (0, 1)) == (18, 8)


def test_a_tensor_that_nothing_reads_never_dies() -> None:
    data = copy.deepcopy(GOOD)
    data["nodes"][0]["outputs"].append({"name": "aside", "shape": [5], "bytes": 5})
    assert footprint(neutral_graph(data).memory_problem(), (0, 1)) == (23, 13)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("nodes",), 5, "'nodes' must be a list"),
        (("nodes", 0), [], "node 0: a JSON object is expected"),
        (("nodes", 1, "id"), 0, "node 0: two nodes have this id"),
        (("nodes", 1, "id"), None, "'id' must be a number or a name"),
        (("nodes", 1, "inputs"), ["h", "z"], "reads 'z', which nothing writes"),
        (("nodes", 1, "inputs"), [3], "3 is not the name of a tensor"),
        (("nodes", 0, "inputs"), ["y"], "lies on or behind a cycle"),
        (("nodes", 1, "inplace"), "x", "'inplace' names 'x', which it does not read"),
        (("nodes", 0, "outputs", 0, "bytes"), -1, "-1 is not a count"),
        (("nodes", 0, "outputs", 0, "bytes"), 1.5, "1.5 is not a count"),
        (("nodes", 0, "outputs", 0, "bytes"), 1 << 60, "is not a count"),
        (("nodes", 0, "outputs", 0, "bytes"), True, "True is not a count"),
        (("nodes", 1, "outputs", 0, "name"), "x", "already written by the graph's inputs"),
        (("nodes", 0, "outputs", 0, "name"), 7, "a tensor without a name"),
        (("nodes", 0, "outputs", 0, "shape"), "8", "'shape' must be a list"),
        (("outputs",), ["nope"], "'nope' is written by nothing"),
        (("inputs",), None, "'inputs' must be a list"),
    ],
)
def test_bad_graphs_are_named(path: tuple[Any, ...], value: object, reason: str) -> None:
    data = copy.deepcopy(GOOD)
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError, match=reason):
        neutral_graph(data)


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_bad_files_are_no_tracebacks(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(text)
    with pytest.raises(InputError):
        read_neutral(path)


def test_a_truncated_file_is_an_input_error_at_every_length(tmp_path: Path) -> None:
    text = json.dumps(GOOD)
    path = tmp_path / "cut.json"
    for length in range(0, len(text), 7):
        path.write_text(text[:length])
        with pytest.raises(InputError):
            read_neutral(path)


def test_an_error_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "graph.json"
    file.write_text('{"nodes": [], "inputs": [], "outputs": ["y"]}')
    with pytest.raises(InputError, match=rf"^{re.escape(str(file))}: .*'y' is written by nothing"):
        read_neutral(file)
