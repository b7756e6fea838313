"""The networks of the benchmarks: well formed, of the published size, and the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._partition_runs import convolution, in_blocks
from benchmarks.zoo import NETWORKS, network
from benchmarks.zoo_bert import bert_tiny
from benchmarks.zoo_cells import AMOEBANET_A, DARTS_V2, NASNET_A, imagenet
from benchmarks.zoo_mobile import fpnas
from tests.support.host import random_inputs, reference_outputs
from toolchain.ir import Graph
from toolchain.ops import spec_of
from toolchain.ops.check import check


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_well_formed(name: str) -> None:
    graph = check(network(name))
    assert len(graph.inputs) == 1
    unread = [t for t, users in graph.consumers.items() if not users and t not in graph.outputs]
    assert not unread


@pytest.mark.parametrize(
    ("name", "macs", "weights"),
    [
        ("nasnet_a_imagenet", 564e6, 5.3e6),
        ("darts_imagenet", 574e6, 4.7e6),
        ("mobilenet_v2_224", 300e6, 3.4e6),
        ("fpnas", 300e6, 3.41e6),
        ("randwire", 583e6, 5.6e6),
    ],
)
def test_networks_have_the_published_size(name: str, macs: float, weights: float) -> None:
    graph = network(name)
    assert sum(spec_of(op.kind).macs(op, graph) for op in graph.ops) == pytest.approx(macs, rel=0.1)
    sizes = (t.size_bytes for t in graph.tensors.values() if t.is_constant)
    assert sum(sizes) == pytest.approx(weights, rel=0.1)


@pytest.mark.parametrize(
    "graph",
    [
        *(imagenet("cells", cells, 1, 4, 32) for cells in (NASNET_A, AMOEBANET_A, DARTS_V2)),
        fpnas("fpnas", 32),
        bert_tiny("bert", 16, 16),
        network("swiftnet_cell_c"),
    ],
    ids=["nasnet", "amoebanet", "darts", "fpnas", "bert", "swiftnet"],
)
def test_small_forms_give_values_that_depend_on_the_input(graph: Graph) -> None:
    one, two = (random_inputs(graph, np.random.default_rng(seed)) for seed in (0, 1))
    (first,), (second,) = reference_outputs(graph, one), reference_outputs(graph, two)
    assert not np.array_equal(first, second)
    assert np.mean(np.abs(first.astype(np.int32)) >= 127) < 0.2
    if first.size > 10:
        assert len(np.unique(first)) > 10


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (16, 8), (32, 1)])
def test_table_3_blocks_compute_the_same(rows: int, columns: int) -> None:
    graph = convolution()
    finer = check(in_blocks(graph, rows, columns))
    assert sum(op.kind == "conv2d" for op in finer.ops) == rows * columns
    inputs = random_inputs(graph, np.random.default_rng(0))
    (want,), (have,) = reference_outputs(graph, inputs), reference_outputs(finer, inputs)
    np.testing.assert_array_equal(have, want)
