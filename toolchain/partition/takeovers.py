"""What the blocks of an operator save by lying over what they read for the last time.

Arrays hold one entry per block, in bytes from the beginning of a buffer (`ir.progress.Takeover`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolchain.partition.program import FAR, Ints


class Claim(NamedTuple):
    """How far the operand `operand` must begin behind the result; FAR where it may not at all.
    `exact`: no other distance will do."""

    operand: str
    lead: Ints
    exact: NDArray[np.bool_]


class Read(NamedTuple):
    """The run of a buffer that is live when a block reads from `begin` on, and what is after it."""

    begin: Ints
    bottom: Ints
    top: Ints
    bottom_after: Ints
    top_after: Ints


class Written(NamedTuple):
    """The tops of a buffer's live run before a block is written, from `begin` on, and then."""

    begin: Ints
    top_before: Ints
    top: Ints


def distances(read: Read, written: Written) -> Ints:
    """How far the one must begin behind the other so that they share only what dies."""
    stays = read.bottom_after < read.top_after
    return np.maximum(
        np.where(written.top_before > 0, written.top_before - read.bottom, -FAR),
        np.where(stays, written.top - read.bottom_after, -FAR),
    )


def lead_bytes(claim: Claim, read: Read, written: Written) -> Ints:
    """How far it must for the operator's sake."""
    return claim.lead + written.begin - read.begin


def shared_bytes(claim: Claim, read: Read, written: Written) -> Ints:
    """What the two share at most while the block is computed."""
    lead, apart = lead_bytes(claim, read, written), distances(read, written)
    closest = np.minimum(-read.bottom, written.top - read.top)
    at = np.where(claim.exact, lead, np.maximum(np.maximum(lead, apart), closest))
    shared = np.minimum(written.top, read.top + at) - np.maximum(0, read.bottom + at)
    return np.where(at >= apart, np.maximum(shared, 0), 0)
