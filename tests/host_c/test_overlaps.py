"""Every overlap that a kind allows, laid out as tightly as it claims: the kernel must bear it."""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import model_of, random_inputs, reference_outputs
from tests.support.overlaps import overlapping_samples, tight_plan
from toolchain.boards import HOST, Core
from toolchain.device.host import HostProgram, build
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms

SAMPLES = 12
M3 = Core("cortex-m3")


M55 = Core("cortex-m55", dsp=True, mve=True, fpu=True)
LANES = ("transpose_conv2d", "partial_conv2d", "partial_fully_connected")
"""Whose kernels for Helium have portable forms."""


@pytest.mark.parametrize(
    ("kind", "core"),
    [
        *((kind, HOST) for kind in sorted(forms())),
        ("conv2d", M3),
        ("depthwise_conv2d", M3),
        *((kind, M55) for kind in LANES),
    ],
    ids=lambda value: value.name if isinstance(value, Core) else value,
)
def test_kernel_bears_the_overlap(kind: str, core: Core) -> None:
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    graph, overlaps = overlapping_samples(kind, core, SAMPLES, rng)
    if not graph.ops:
        pytest.skip("allows no overlap")
    models = [model_of(tight_plan(graph, overlaps, core), "m")]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            inputs = random_inputs(graph, rng)
            wanted = reference_outputs(graph, inputs)
            for name, want, have in zip(graph.outputs, wanted, running.run(inputs), strict=True):
                op = graph.ops[graph.producers[name]]
                np.testing.assert_array_equal(have, want, err_msg=f"{name}: {op}")
