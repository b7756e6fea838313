"""Every overlap that a kind allows, laid out as tightly as it claims: the kernel must bear it."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.support.groups import first_and_last, groups
from tests.support.host import model_of, random_inputs, reference_outputs
from tests.support.overlaps import overlapping_samples, tight_plan
from toolchain.boards import HOST, Core
from toolchain.device.host import HostProgram, build
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms

SAMPLES = 12
GROUP = 8
M3 = Core("cortex-m3")


M55 = Core("cortex-m55", dsp=True, mve=True, fpu=True)
LANES = ("transpose_conv2d", "partial_conv2d", "partial_fully_connected")
"""Whose kernels for Helium have portable forms."""


@pytest.mark.parametrize(
    ("kinds", "core"),
    [
        *((kinds, HOST) for kinds in groups(forms(), GROUP)),
        (["conv2d", "depthwise_conv2d"], M3),
        (LANES, M55),
    ],
    ids=lambda value: value.name if isinstance(value, Core) else first_and_last(value),
)
def test_kernels_bear_the_overlap(kinds: Sequence[str], core: Core) -> None:
    graph, overlaps = overlapping_samples(kinds, core, SAMPLES)
    if not graph.ops:
        pytest.skip("they allow no overlap")
    rng = np.random.default_rng(zlib.crc32(kinds[0].encode()))
    models = [model_of(tight_plan(graph, overlaps, core), "m")]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            inputs = random_inputs(graph, rng)
            wanted = reference_outputs(graph, inputs)
            for name, want, have in zip(graph.outputs, wanted, running.run(inputs), strict=True):
                op = graph.ops[graph.producers[name]]
                np.testing.assert_array_equal(have, want, err_msg=f"{name}: {op}")
