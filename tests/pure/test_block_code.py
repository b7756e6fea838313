"""C of split operators: one function and a table for all blocks of one, few bytes a block."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support import grids
from tests.support.host import plan_of
from tests.support.split_graphs import random_network, random_scheme
from toolchain.boards import HOST
from toolchain.codegen import generate
from toolchain.ir import Graph, Sources
from toolchain.kernels import cmsis_nn
from toolchain.ops.check import check
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.window import Padding
from toolchain.partition import CannotSplitError, Mode, Scheme, split
from toolchain.version import __version__

GOLDEN = Path(__file__).resolve().parents[1] / "goldens" / "split_blocks.c"


def sources_of(graph: Graph) -> Sources:
    return generate(plan_of(graph), HOST, cmsis_nn.find(), name="net")


def small_network() -> tuple[Graph, Graph]:
    """A chain of convolutions, whole and in eight blocks."""
    rng = np.random.default_rng(11)
    while True:
        graph = check(random_network(rng))
        names = tuple(op.name for op in graph.ops)
        kinds = {op.kind for op in graph.ops}
        try:
            fine = split(graph, Scheme(names, (graph.ops[-1].outputs[0], 1), 6, Mode.SLIDING))
        except CannotSplitError:
            continue
        if len(names) > 2 and {"conv2d", "depthwise_conv2d"} <= kinds:
            return graph, check(fine)


def test_a_split_model_is_as_its_golden_text(request: pytest.FixtureRequest) -> None:
    text = sources_of(small_network()[1]).files["net.c"].replace(__version__, "VERSION")
    if request.config.getoption("--update-goldens"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8"), "run pytest with --update-goldens and look"


def test_blocks_whose_code_differs_all_run() -> None:
    """Two blocks of one convolution, only one of which reads lines that lie apart."""
    walk = Conv2D(dilation=(2, 3), padding=Padding(2, 1, 0, 3))
    graph = next(
        g
        for g in grids.convolutions()
        if g.ops[0].attributes == walk and g.input(g.ops[0], 0).shape == (1, 7, 6, 1)
    )
    fine = check(split(graph, Scheme((graph.ops[0].name,), (graph.outputs[0], 2), 2)))
    sources = sources_of(fine)
    assert len(sources.operators) == 1
    assert len(sources.calls) == 2
    assert "net_op0_conv2d_2, 0}," in sources.files["net.c"]


def test_every_block_runs_once_in_the_order_of_the_plan() -> None:
    rng = np.random.default_rng(3)
    seen = 0
    while seen < 20:
        graph = check(random_network(rng))
        try:
            fine = check(split(graph, random_scheme(graph, rng)))
        except CannotSplitError:
            continue
        seen += 1
        plan, sources = plan_of(fine), sources_of(fine)
        with_code = [n for n in plan.schedule.order if n in set(sources.calls)]
        assert list(sources.calls) == with_code
        assert sorted(n for op in sources.operators for n in op.numbers) == sorted(with_code)
        coarse = {op.name for op in graph.ops} | set(graph.inputs)
        assert {op.name for op in sources.operators} <= coarse
        for op in sources.operators:
            assert {fine.ops[n].counted_as for n in op.numbers} == {(op.name, op.kind)}
