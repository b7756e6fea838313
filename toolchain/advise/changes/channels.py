"""Channels to a multiple that the kernels compute at once: 30 to 32, or to 28."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from toolchain.advise.change import Change, Proposal
from toolchain.advise.groups import ChannelGroup, channel_groups
from toolchain.advise.surgery import CannotChangeError, Draft
from toolchain.boards import Core
from toolchain.ir import Graph

_TOGETHER = 4
_WORDS, _VECTORS = (2, _TOGETHER), (_TOGETHER, 16)
"""Channels that kernels compute at once, by words of four bytes and by Helium's vectors."""


def _proposals(graph: Graph, core: Core) -> Iterator[Proposal]:
    """Each group of layers alone, then all that are off the kernels' multiple together."""
    multiples = _VECTORS if core.mve else _WORDS
    groups = channel_groups(graph)
    for group in groups:
        before = group.channels
        counts = {n for m in multiples for n in (before // m * m, -(-before // m) * m)}
        for count in sorted(counts - {0, before}):
            yield from _changed(graph, {group: count})
    off = {group: -(-group.channels // _TOGETHER) * _TOGETHER for group in groups}
    off = {group: count for group, count in off.items() if count != group.channels}
    if len(off) > 1:
        yield from _changed(graph, off)


def _changed(graph: Graph, counts: Mapping[ChannelGroup, int]) -> Iterator[Proposal]:
    """The network with other numbers of channels, unless something cannot follow."""
    first, *others = counts
    now = sorted(set(counts.values()))
    each = ", ".join(map(str, now)) if others else str(now[0])
    what = f"{first.channels} -> {counts[first]} channels of {first.name}"
    if others:
        what = f"channels of {len(counts)} layers up to a multiple of {_TOGETHER}: {each}"
    with contextlib.suppress(CannotChangeError):
        wanted = {op.name: count for group, count in counts.items() for op in group.makers}
        yield Proposal(
            first.makers[0].name,
            what,
            Draft.of(graph).settled(wanted),
            f"Conv2D({each}, ...), or Dense({each})",
            f"out_channels={each} (nn.Linear: out_features), and in_channels of the layers that "
            "read it",
        )


CHANGE = Change("channels to a multiple that the kernels compute at once", _proposals)
