"""Split graphs compute what the unsplit ones do; what the checker refuses is really invalid."""

from __future__ import annotations

import numpy as np

from tests.support.host import random_inputs, reference_outputs
from tests.support.split_graphs import random_network, random_scheme
from toolchain.ops.check import check
from toolchain.partition import CannotSplitError, split


def test_random_valid_schemes_compute_the_same() -> None:
    rng = np.random.default_rng(11)
    valid = 0
    for _ in range(400):
        graph = check(random_network(rng))
        scheme = random_scheme(graph, rng)
        try:
            finer = split(graph, scheme)
        except CannotSplitError:
            continue
        valid += 1
        check(finer)
        inputs = random_inputs(graph, rng)
        wanted, got = reference_outputs(graph, inputs), reference_outputs(finer, inputs)
        for want, have in zip(wanted, got, strict=True):
            np.testing.assert_array_equal(have, want, err_msg=f"{scheme} of {graph.ops}")
    assert valid > 100
