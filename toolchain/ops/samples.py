"""Random shapes and types of the tensors in samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.ir import DType, Quantisation


def sample_shape(rng: np.random.Generator, rank: int, elements: int = 2000) -> tuple[int, ...]:
    """A random shape of this rank with at most `elements` elements; dimensions of 1 occur."""
    high = max(2, round(elements ** (1 / max(rank, 1))) + 1)
    return tuple(int(d) for d in rng.integers(1, high, rank))


def sample_quantisation(rng: np.random.Generator) -> Quantisation:
    """A random int8 quantisation. Zero points at the ends of the range are common."""
    scale = float(np.float32(2.0 ** rng.uniform(-9, 1)))
    zero_point = int(rng.choice([-128, 127, 0, int(rng.integers(-128, 128))]))
    return Quantisation((scale,), (zero_point,))


def sample_type(
    rng: np.random.Generator,
    wide: Sequence[DType] = (DType.INT32, DType.FLOAT32, DType.INT64),
) -> tuple[DType, Quantisation | None]:
    """A random element type: mostly int8 with a quantisation, sometimes one of `wide`."""
    if rng.random() < 0.6:
        return DType.INT8, sample_quantisation(rng)
    return wide[int(rng.integers(len(wide)))], None
