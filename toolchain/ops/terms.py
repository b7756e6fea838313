"""Terms of loops over runs of elements.

A term is a named count of how often a part of a kernel runs: loop iterations, calls, rows. The cost
model multiplies each term by cycles that were fitted to measurements.
"""

from __future__ import annotations

from toolchain.ops.kernel import Terms


def runs_of_four(size: int, times: int = 1, path: str = "") -> Terms:
    """Terms of a loop that takes four elements at a time, and of the loop over the rest.

    `size` elements are walked `times` times; `path` is appended to the names.
    """
    return {f"four{path}": times * (size // 4), f"rest{path}": times * (size % 4)}
