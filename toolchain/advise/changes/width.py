"""A narrower network: three quarters and half of every layer's channels (MobileNet's alpha)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from toolchain.advise.change import Change, Proposal
from toolchain.advise.groups import channel_groups
from toolchain.advise.surgery import CannotChangeError, Draft
from toolchain.boards import Core
from toolchain.ir import Graph

_SHARES = ((3, 4), (1, 2))
_TOGETHER = 4
"""Channels that kernels compute at once: each layer keeps a multiple of it."""


def _proposals(graph: Graph, _: Core) -> Iterator[Proposal]:
    groups = channel_groups(graph)
    for part, whole in _SHARES:
        wanted: dict[str, int] = {}
        for group in groups:
            count = -(-group.channels * part // (whole * _TOGETHER)) * _TOGETHER
            if count < group.channels:
                wanted |= {op.name: count for op in group.makers}
        if not wanted:
            continue
        with contextlib.suppress(CannotChangeError):
            yield Proposal(
                next(iter(wanted)),
                f"{part}/{whole} of the channels of {len(wanted)} layers, in multiples of "
                f"{_TOGETHER}",
                Draft.of(graph).settled(wanted),
                f"alpha={part / whole:g} in keras.applications, or {part}/{whole} of the filters",
                f"width_mult={part / whole:g} in torchvision.models, or {part}/{whole} of "
                "out_channels and in_channels",
            )


CHANGE = Change("a narrower network", _proposals)
