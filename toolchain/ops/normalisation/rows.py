"""The bytes that kernels over rows of elements touch: as many elements in as out, and tables."""

from __future__ import annotations

from collections.abc import Callable

from toolchain.ops import kit


def row_extents(
    rows: str, columns: str, tables: Callable[[kit.Touched], dict[str, int]] | None = None
) -> Callable[[kit.Touched], kit.Extents]:
    """The bytes that a call touches. Its arguments at the paths `rows` and `columns` give the
    sizes.

    `tables` gives the bytes that it reads of each constant.
    """

    def rule(touched: kit.Touched) -> kit.Extents:
        size = touched.call[rows] * touched.call[columns]
        x, y = touched.inputs[0], touched.outputs[0]
        assert x is not None
        return kit.Extents(
            {0: kit.whole(size, x.element_bytes)},
            {0: kit.whole(size, y.element_bytes)},
            tables(touched) if tables else {},
        )

    return rule
