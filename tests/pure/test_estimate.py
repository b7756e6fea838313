"""Estimates of split graphs against the graphs themselves."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.split_graphs import random_grains, random_heights, random_network
from toolchain.boards import HOST, board
from toolchain.cost.predicted import predicted_model
from toolchain.ir.memory import peak_bytes
from toolchain.memory.problem import memory_problem
from toolchain.ops.check import check
from toolchain.ops.lowering import lower
from toolchain.partition import CannotSplitError, Mode, Scheme, split
from toolchain.partition.block_costs import BlockKernels
from toolchain.partition.estimate import Estimator
from toolchain.partition.region import region
from toolchain.partition.walk import Walks

MADE = 60
ALIGNMENT_BYTES = 64


@pytest.mark.slow
def test_no_split_graph_needs_more_than_its_estimate() -> None:
    """Rows of whole networks: windows, halos, branches, sums, and blocks over what they read.

    No views: where others read the same rows, their blocks are copied at the end.
    """
    rng = np.random.default_rng(7)
    made = close = lines = 0
    while made < MADE:
        graph = check(random_network(rng))
        if any(op.kind == "reshape" for op in graph.ops):
            continue
        seed = (graph.ops[int(rng.integers(len(graph.ops)))].outputs[0], 1)
        modes = (Mode.TILES, Mode.SLIDING, Mode.LINES, Mode.LEADING)
        mode = modes[rng.choice(4, p=(0.3, 0.3, 0.2, 0.2))]
        count, names = int(rng.integers(2, 9)), tuple(op.name for op in graph.ops)
        grains = random_grains(names, rng) if mode in (Mode.LINES, Mode.LEADING) else ()
        heights = random_heights(count, rng)
        scheme = Scheme(names, seed, count, mode, grains=grains, heights=heights)
        try:
            fine = check(split(graph, scheme))
        except CannotSplitError:
            continue
        made += 1
        lines += mode in (Mode.LINES, Mode.LEADING)
        whole = region(graph, range(len(graph.ops)), seed)
        problem = memory_problem(lower(fine, HOST), progressive=True)
        walks = Walks(BlockKernels(graph, HOST))
        estimator = Estimator(walks, predicted_model(board("host")), names=None)
        of = [grains[op] for op in whole.ops] if grains else ()
        dying, uneven = frozenset(whole.sliced), [heights] if heights else ()
        ((found,),) = estimator.estimates(whole, [count], mode, dying, of, uneven)
        predicted = found.bytes_inside + sum(graph.tensors[n].size_bytes for n in graph.inputs)
        peak = peak_bytes(problem, range(len(fine.ops)))
        assert peak <= predicted + ALIGNMENT_BYTES, (graph.ops, mode, count, heights)
        close += predicted <= 1.2 * peak
    assert close > MADE // 3
    assert lines > MADE // 6
