"""Bytes that blocks of an operator save by writing over bytes that they read for the last time.

Arrays hold one entry per block, in bytes from the beginning of a buffer (`ir.progress.Takeover`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolchain.partition.program import FAR, Ints


class Claim(NamedTuple):
    """How far the operand `operand` must begin above the result; FAR if they may not overlap at
    all.

    `exact`: only that distance is allowed.
    """

    operand: str
    lead: Ints
    exact: NDArray[np.bool_]


class Read(NamedTuple):
    """The live run of a buffer when a block reads it from `begin` on, and its live run
    afterwards.
    """

    begin: Ints
    bottom: Ints
    top: Ints
    bottom_after: Ints
    top_after: Ints


class Written(NamedTuple):
    """The ends of a buffer's live run before a block is written, from `begin` on, and after."""

    begin: Ints
    top_before: Ints
    top: Ints


def distances(read: Read, written: Written) -> Ints:
    """How far the one must begin above the other so that they share only what dies."""
    stays = read.bottom_after < read.top_after
    return np.maximum(
        np.where(written.top_before > 0, written.top_before - read.bottom, -FAR),
        np.where(stays, written.top - read.bottom_after, -FAR),
    )


def lead_bytes(claim: Claim, read: Read, written: Written) -> Ints:
    """The distance that the operator's kernel requires."""
    return claim.lead + written.begin - read.begin


def shared_bytes(claim: Claim, read: Read, written: Written) -> Ints:
    """The most bytes that the two share while the block is computed."""
    lead, apart = lead_bytes(claim, read, written), distances(read, written)
    closest = np.minimum(-read.bottom, written.top - read.top)
    at = np.where(claim.exact, lead, np.maximum(np.maximum(lead, apart), closest))
    shared = np.minimum(written.top, read.top + at) - np.maximum(0, read.bottom + at)
    return np.where(at >= apart, np.maximum(shared, 0), 0)
