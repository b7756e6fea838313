"""Parts of cost formulas that kernels of several families share: how often their loops turn."""

from __future__ import annotations

from toolchain.ops.kernel import Terms


def runs_of_four(size: int, times: int = 1, path: str = "") -> Terms:
    """Of a loop over four elements at a time and one over the rest."""
    return {f"four{path}": times * (size // 4), f"rest{path}": times * (size % 4)}
