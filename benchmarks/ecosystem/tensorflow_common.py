"""What the networks of this folder share: seeded weights, inputs to calibrate with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

SAMPLES = 8


def randomised(network: Any, seed: int = 0) -> Any:
    """Weights that leave nothing idle: batch normalisations with offsets, biases not zero."""
    rng = np.random.default_rng(seed)
    for weight in network.weights:
        value = np.array(weight)
        if value.dtype != np.float32:
            continue
        if "variance" in weight.name:
            value = rng.uniform(0.4, 1.6, value.shape)
        elif value.ndim == 1:
            value = value + 0.2 * rng.standard_normal(value.shape)
        weight.assign(value.astype(np.float32))
    return network


def samples(specs: Sequence[Any], seed: int = 1) -> Iterator[list[Any]]:
    """Inputs to calibrate with: normal reals, indices for integers; an open batch is of one."""
    rng = np.random.default_rng(seed)
    for _ in range(SAMPLES):
        yield [
            rng.integers(0, INDICES, shape).astype(np.int32)
            if spec.dtype.is_integer
            else rng.standard_normal(shape).astype(np.float32)
            for spec, shape in ((spec, [size or 1 for size in spec.shape]) for spec in specs)
        ]


INDICES = 24
"""Words of the vocabularies here."""


def net(
    body: Callable[..., Any], *shapes: tuple[int, ...], batch: int | None = 1, seed: int = 0
) -> Any:
    """The Keras model that `body` makes of inputs of these shapes (without the batch, which None
    leaves open).
    """
    keras.utils.set_random_seed(seed)
    inputs = [keras.Input(shape, batch_size=batch) for shape in shapes]
    return randomised(keras.Model(inputs, body(*inputs)), seed)
