"""Samples whose weights are constant, with zero point 0."""

from __future__ import annotations

import numpy as np

from toolchain.ir import Graph
from toolchain.ops import forms


def sample_with_constant_weights(kind: str, rng: np.random.Generator) -> Graph:
    """A random single operator of a kind whose weights may otherwise be computed at run time, or
    have another zero point.
    """
    while True:
        graph = forms()[kind].sample(rng)
        weights = graph.tensors.get("weights")
        if weights is None or (weights.is_constant and not any(weights.q.zero_points)):
            return graph
