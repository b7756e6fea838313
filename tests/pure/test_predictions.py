"""Predicted costs of float32 follow what the core has: an FPU, or a library."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from toolchain.boards import Core
from toolchain.cost.predicted import PredictedCostModel
from toolchain.ir import DType
from toolchain.ops import forms
from toolchain.ops.lowering import lower

NAMES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33")
FLOATS = sorted(kind for kind, spec in forms().items() if spec.dtypes == {DType.FLOAT32})


@pytest.mark.parametrize("name", NAMES)
def test_every_float_kind_has_a_cost_without_an_fpu(name: str) -> None:
    model = PredictedCostModel(Core(name))
    for kind in FLOATS:
        graph = forms()[kind].sample(np.random.default_rng(zlib.crc32(kind.encode())))
        cost = model.cost(lower(graph, Core(name)), 0)
        assert cost.count >= 0, kind


@pytest.mark.parametrize("name", ["cortex-m4", "cortex-m7", "cortex-m33"])
def test_float_products_in_software_take_several_times_as_long(name: str) -> None:
    """Those of a library take some 60 cycles, those of an FPU some 5."""
    graph = forms()["conv2d.float32"].sample(np.random.default_rng(1))
    without, with_fpu = (
        PredictedCostModel(core).cost(lower(graph, core), 0).count
        for core in (Core(name), Core(name, fpu=True))
    )
    assert without > 3 * with_fpu
