"""The networks of `thimble contact` have the sizes of MLPerf Tiny's models."""

from __future__ import annotations

import pytest

from toolchain.contact.steps.networks import NETWORKS
from toolchain.ops import spec_of


@pytest.mark.parametrize(
    ("name", "macs", "constant_bytes"),
    [
        ("ad", 264_192, 270_880),
        ("kws", 2_656_768, 24_368),
        ("ic", 12_501_632, 78_744),
        ("vww", 7_489_664, 219_064),
    ],
)
def test_products_and_weights_are_those_of_the_published_files(
    name: str, macs: int, constant_bytes: int
) -> None:
    """mlcommons/tiny, training/*/trained_models, int8; of vww before dead channels are removed."""
    graph = NETWORKS[name]()
    assert sum(spec_of(op.kind).macs(op, graph) for op in graph.ops) == macs
    assert graph.constant_bytes == constant_bytes
