"""Every claimed overlap against recorded reads and writes: safe, and the closest that is.

Grids for the kernels that slide windows, samples for all others.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.support import grids
from tests.support.merge import merged
from tests.support.overlaps import allowed_overlaps, overlapping_samples
from tests.support.traces import record
from toolchain.boards import HOST
from toolchain.ir import Graph
from toolchain.ops import specs
from toolchain.ops.spec import SafeOverlap

SAMPLES = 40
GRIDS = {
    "conv2d": grids.convolutions,
    "depthwise_conv2d": grids.depthwise_convolutions,
    "fully_connected": grids.fully_connected,
    "max_pool2d": lambda: grids.pools("max_pool2d"),
    "average_pool2d": lambda: grids.pools("average_pool2d"),
}


def check(graph: Graph, overlaps: Sequence[SafeOverlap], folder: Path) -> None:
    """Raise where a claim is unsafe, or is more than the kernel needs."""
    read = 0
    for op, overlap, trace in zip(
        graph.ops, overlaps, record(graph, overlaps, folder), strict=True
    ):
        assert trace.first_write.all(), f"{op}: not all is written"
        read += bool(trace.last_read.any())
        if overlap.exact:
            assert trace.bears(overlap.lead_bytes), f"{op}: {overlap}"
        else:
            assert overlap.lead_bytes == trace.lead_bytes(), f"{op}: {overlap}"
    assert read > len(overlaps) // 2  # a dilated window may step over a small image


@pytest.mark.parametrize("kind", sorted(GRIDS))
def test_claims_hold_on_the_grid(kind: str, tmp_path: Path) -> None:
    cases = [(g, o) for g in GRIDS[kind]() for o in allowed_overlaps(g.ops[0], g, HOST)]
    check(merged([g for g, _ in cases]), [o for _, o in cases], tmp_path)


@pytest.mark.parametrize("kind", sorted(specs()))
def test_claims_hold_on_samples(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    graph, overlaps = overlapping_samples(kind, HOST, SAMPLES, rng)
    if not overlaps:
        pytest.skip("allows no overlap")
    check(graph, overlaps, tmp_path)
