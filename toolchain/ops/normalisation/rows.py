"""The bytes that kernels over rows of elements touch: as many elements in as out, and tables."""

from __future__ import annotations

from collections.abc import Callable

from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import Touched


def row_extents(
    rows: str, columns: str, tables: Callable[[Touched], dict[str, int]] | None = None
) -> Callable[[Touched], Extents]:
    """The bytes that a call touches. Its arguments at the paths `rows` and `columns` give the
    sizes.

    `tables` gives the bytes that it reads of each constant.
    """

    def rule(touched: Touched) -> Extents:
        size = touched.call[rows] * touched.call[columns]
        x, y = touched.inputs[0], touched.outputs[0]
        assert x is not None
        return Extents(
            {0: whole(size, x.element_bytes)},
            {0: whole(size, y.element_bytes)},
            tables(touched) if tables else {},
        )

    return rule
