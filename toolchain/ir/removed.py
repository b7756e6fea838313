"""Channels that a rewrite left out of a graph."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RemovedChannels:
    """Channels of activations that no output depends on, with their products and the bytes of their
    constants.
    """

    channels: int = 0
    macs: int = 0
    weight_bytes: int = 0


NOTHING_REMOVED = RemovedChannels()
