"""The comment over each operator's function says what is really emitted, and where."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.support.host import plan_of
from toolchain.boards import HOST
from toolchain.codegen import generate
from toolchain.ir import Graph, Sources
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms
from toolchain.timing.kernel_shapes import graph_of_shape

LINE = re.compile(r"^ \*    (in|out|const|scratch) +(.*?)  +(.*?)(?:  +(.*))?$", re.M)
WITH_CONSTANTS = 20
"""Of the kinds at least so many have samples with constants."""


def sources_of(graph: Graph) -> Sources:
    return generate(plan_of(graph), HOST, cmsis_nn.find(), name="net")


def listed(sources: Sources) -> list[tuple[str, ...]]:
    """Direction, type, place and name of each operand of the first operator."""
    text = sources.files["net.c"]
    comment = text[text.index("* Operator 0:") :].split("*/", 1)[0]
    return [match.groups(default="") for match in LINE.finditer(comment)]


def test_weights_that_were_packed_are_shown_as_what_is_emitted() -> None:
    shape = {"kind": "conv2d", "input": [1, 9, 9, 3], "channels": 5, "kernel": [3, 2]}
    sources = sources_of(graph_of_shape(shape))
    found = listed(sources)
    assert [row[:3] for row in found[1:3]] == [
        ("in", "int8 [5x3x2x3]", "packed"),
        ("in", "int32 [5]", "packed"),
    ]
    (packed,) = (row for row in found if row[0] == "const")
    declared = re.search(r"int32_t net_op0_parameters\[(\d+)\]", sources.files["net_weights.h"])
    assert declared is not None
    assert packed == ("const", f"int32 [{declared[1]}]", "flash", "net_op0_parameters")
    said = f"{4 * int(declared[1]):,} bytes: biases, filters [5x3x2x3] and requantisation"
    assert said in sources.files["net.c"]


@pytest.mark.parametrize("form", ["conv2d.float32", "lstm"])
def test_constants_that_are_emitted_as_they_are_lie_in_flash(form: str) -> None:
    graph = forms()[form].sample(np.random.default_rng(4))
    constants = [row for row in listed(sources_of(graph)) if row[0] == "in" and row[2] == "flash"]
    assert constants


@pytest.mark.slow
def test_what_lies_in_flash_is_all_that_the_weights_file_holds() -> None:
    """Of every kind: constants of the comment and arrays of the file are as many, all of them."""
    compared = 0
    for kind, spec in sorted(forms().items()):
        graph = spec.sample(np.random.default_rng(2))
        if len(graph.ops) != 1:
            continue
        sources = sources_of(graph)
        if not sources.calls:
            continue
        arrays = re.findall(
            r"^static const \w+ (net_op\w+)\[", sources.files.get("net_weights.h", ""), re.M
        )
        found = [row for row in listed(sources) if row[2] == "flash"]
        more = [row for row in found if row[1].endswith(" more")]
        hidden = sum(int(row[1].split()[0]) - 1 for row in more)
        same = {graph.tensors[row[3]].constant.tobytes() for row in found if row[0] == "in"}  # type: ignore[union-attr]
        assert len(same) + sum(row[0] == "const" for row in found) + hidden == len(arrays), kind
        compared += bool(arrays)
    assert compared > WITH_CONSTANTS
