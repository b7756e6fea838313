"""Channels whose filters are nearly zero beside the others of their layer are left out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from toolchain.advise.change import Change, Proposal
from toolchain.advise.groups import channel_groups
from toolchain.advise.surgery import CannotChangeError, Draft
from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.weighted import WEIGHTS

_SHARE = 0.05
"""The largest weight of such a channel, as a share of the median over the layer's channels."""
_TOGETHER = 4
"""Channels that kernels compute at once: as many stay."""


def _proposals(graph: Graph, _: Core) -> Iterator[Proposal]:
    for group in channel_groups(graph):
        largest = np.max([_largest(op, graph) for op in group.makers], axis=0)
        alive = int((largest > _SHARE * float(np.median(largest))).sum())
        kept = max(-(-alive // _TOGETHER) * _TOGETHER, _TOGETHER)
        if kept >= group.channels:
            continue
        with contextlib.suppress(CannotChangeError):
            dead = group.channels - alive
            wanted = {op.name: kept for op in group.makers}
            yield Proposal(
                group.makers[0].name,
                f"{dead} of {group.channels} channels of {group.name} are nearly zero: "
                f"{group.channels} -> {kept}",
                Draft.of(graph).settled(wanted),
                f"Conv2D({kept}, ...) or Dense({kept}) in place of {group.channels}",
                f"out_channels={kept} in place of {group.channels}, or "
                "torch.nn.utils.prune.ln_structured(layer, 'weight', amount="
                f"{group.channels - kept}, n=1, dim=0) before the channels are cut",
            )


def _largest(op: Op, graph: Graph) -> NDArray[np.float64]:
    """The largest absolute weight of each output channel, as a real number relative to the layer's
    outputs."""
    weights = graph.input(op, WEIGHTS)
    assert weights.constant is not None
    flat = weights.constant.reshape(weights.shape[0], -1).astype(np.float64)
    scales = np.ones(1) if weights.quantisation is None else np.array(weights.q.scales)
    real: NDArray[np.float64] = np.abs(flat).max(axis=1) * scales
    return real


CHANGE = Change("channels that are nearly dead are left out", _proposals)
