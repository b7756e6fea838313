"""Layers that run backwards, in C, from run to run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.pure.test_bidirectional import INPUTS, UNITS, BothWays
from tests.support.host import host_model
from toolchain import passes
from toolchain.device.host import HostProgram, build
from toolchain.frontends.tflite import FRONT_END
from toolchain.kernels import cmsis_nn
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array


@pytest.mark.parametrize("operator", list(UNITS))
@pytest.mark.parametrize("time_major", [False, True])
def test_c_equals_reference(operator: str, time_major: bool, tmp_path: Path) -> None:
    file = BothWays(operator, time_major=time_major, merged=True)
    graph = passes.prepare(FRONT_END.read(file.bytes(), Path("both.tflite"))).graph
    model = host_model(graph)
    memory: dict[str, Array] = {}
    rng = np.random.default_rng(5)
    program = build([model], cmsis_nn.find(), tmp_path, sanitize=True)
    with HostProgram(program, [model]) as running:
        for turn in range(3):
            x = rng.normal(0, 1, (*file.rows, INPUTS)).astype(np.float32)
            (got,) = running.run([x], restart=turn == 0)
            (want,) = interpret(graph, [x], memory)
            np.testing.assert_array_equal(got, want)
