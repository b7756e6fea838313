"""Functions of one float32 value: C and NumPy give the same bits, near the real function."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.floats import function_graph
from tests.support.host import reference_outputs, run_graph_on_host
from toolchain.ops.elementwise.functions import UNARY

erf = np.vectorize(math.erf)
TURNS = {"cos": math.cos, "sin": math.sin}
REAL: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "erf": erf,
    "exp": np.exp,
    "gelu": lambda x: x / 2 * (1 + erf(x / np.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "log": np.log,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "ceil": np.ceil,
    "floor": np.floor,
    "round": np.round,
    "tanh": np.tanh,
    **{
        name: np.vectorize(lambda x, f=f: f(x) if np.isfinite(x) else x - x)
        for name, f in TURNS.items()
    },
}
SPECIAL = np.array(
    [0, 1, -1, 1e-40, 1e30, -1e30, 88.7, -87.3, -90, 16.7, -9, 4, 2, 0.625, np.inf, -np.inf],
    np.float32,
)


def values() -> np.ndarray:
    rng = np.random.default_rng(9)
    spread = rng.normal(0, 4, 3000)
    magnitudes = np.exp2(rng.uniform(-120, 120, 1000)) * rng.choice([-1, 1], 1000)
    return np.concatenate([SPECIAL, spread.astype(np.float32), magnitudes.astype(np.float32)])


@pytest.mark.parametrize("function", [r.name for r in UNARY.values() if r.formula.own])
def test_kernel_equals_reference_and_is_near_the_function(function: str) -> None:
    x = values()
    graph = function_graph(function, x.shape)
    (wanted,) = reference_outputs(graph, [x])
    (got,) = run_graph_on_host(graph, [x])
    assert np.array_equal(got, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(wanted)) or np.isnan(got).any()
    if function not in REAL:
        return
    with np.errstate(all="ignore"):
        real = REAL[function](x.astype(np.float64))
        ordinary = np.isfinite(real) & (np.abs(real) > 1e-37) & (np.abs(real) < 3e38)
    floor = (
        1.0
        if function in ("elu", "erf", "gelu", "gelu_tanh", "log", "logistic", "cos", "sin")
        else 0.0
    )
    scale = np.maximum(np.abs(real[ordinary]), floor)
    units = 8 if function in ("erf", "gelu") else 2
    assert (np.abs(got[ordinary] - real[ordinary]) <= units * 2.0**-23 * scale).all()
