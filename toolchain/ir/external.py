"""Where a model's weights lie that are not in its code."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.errors import InputError

BLOB_ALIGNMENT_BYTES = 8
"""Alignment of a blob, and of each constant in it: a doubleword, the most that a compiler aligns an
array to."""


@dataclass(frozen=True)
class External:
    """Weights in a blob. `address`: where another tool puts it; None: the firmware holds it, or, of
    a library, the project decides. `fetched`: the code fetches them to its arena, those of one
    operator while the one before it runs.
    """

    address: int | None = None
    fetched: bool = False

    def __post_init__(self) -> None:
        """Check the address. Raises InputError for one where no blob can lie."""
        if self.address is not None and (
            self.address % BLOB_ALIGNMENT_BYTES or not 0 <= self.address < 1 << 32
        ):
            raise InputError(
                f"--weights-address {self.address:#x}: a blob lies at a multiple of "
                f"{BLOB_ALIGNMENT_BYTES} bytes, below 4 GiB"
            )
