"""Every model that fits: bit-exact, counted alike in every run, within the memory planned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from toolchain.bench.bench_file import BenchBoard
from toolchain.bench.pytest_plugin import RunModel
from toolchain.cost.basis import CYCLES, Basis
from toolchain.deployment.folder import PLAN_FILE
from toolchain.deployment.profiling import profile_deployment
from toolchain.deployment.run import Deployment
from toolchain.deployment.verification import compare, unit_of
from toolchain.device.session import Session
from toolchain.files.records import read_json
from toolchain.planning.options import PlanOptions
from toolchain.reference import open_reference
from toolchain.resources import EXAMPLES

RUNS = 3
REPEATS = 5
JITTER = 0.02
"""Cycles on silicon differ by such a share from run to run; instructions in QEMU are equal."""
WARM_JITTER = 0.001
"""Largest share for cycles modelled from a trace, once the caches are warm."""


def test_outputs_are_the_references(board: BenchBoard, firmware: RunModel, model: Path) -> None:
    """Models in float32 run, too: their outputs may differ as `thimble verify` allows."""
    deployment = firmware(model, allow_float=True)
    reference = open_reference(model, wanted=PlanOptions(allow_float=True).reading)
    allowed = max(reference.tolerance, int(_has_floats(deployment)))
    rng = np.random.default_rng(5)
    for _ in range(RUNS):
        inputs = deployment.random(rng)
        expected = reference.run([inputs[end.name] for end in deployment.inputs])
        outputs = deployment.run(inputs).outputs
        for end, want in zip(deployment.outputs, expected, strict=True):
            differing = compare(0, end.name, outputs[end.name].reshape(want.shape), want)
            assert differing.largest(unit_of(end, want)) <= allowed + 1e-6


def _has_floats(deployment: Deployment) -> bool:
    """Whether an operator computes in float32, as the plan says."""
    assert isinstance(deployment.session, Session)
    return "float" in read_json(deployment.session.firmware.folder / PLAN_FILE)


def test_profiles_repeat_and_add_up(board: BenchBoard, firmware: RunModel, model: Path) -> None:
    deployment = firmware(model, timed=True, allow_float=True)
    assert isinstance(deployment.session, Session)
    folder = deployment.session.firmware.folder
    profile = profile_deployment(deployment, folder, board.board, REPEATS)
    assert abs(profile.outside) <= 0.01 * profile.total
    warm = profile.totals[1:]
    allowed = JITTER if profile.basis is Basis.MEASURED else WARM_JITTER
    assert max(warm) - min(warm) <= (allowed * profile.total if profile.unit == CYCLES else 0)


def test_memory_stays_within_the_plan(board: BenchBoard, firmware: RunModel, model: Path) -> None:
    deployment = firmware(model, allow_float=True)
    assert isinstance(deployment.session, Session)
    sizes = deployment.session.firmware.sizes
    rng = np.random.default_rng(6)
    for _ in range(2):
        deployment.run(deployment.random(rng))
    use = deployment.memory_use()
    assert 0 < use.stack_bytes <= 0.9 * sizes.stack_bytes
    assert use.arena_bytes <= deployment.session.firmware.model.arena_bytes


def test_a_long_soak_changes_nothing(
    board: BenchBoard,
    firmware: RunModel,
    record_property: Callable[[str, object], None],
    request: pytest.FixtureRequest,
) -> None:
    deployment = firmware(EXAMPLES / "digits" / "digits_int8.tflite")
    rng = np.random.default_rng(7)
    cases = [{end.name: end.random(rng) for end in deployment.inputs} for _ in range(4)]
    first = [deployment.run(case) for case in cases]
    count = int(request.config.getoption("--soak"))
    for number in range(count):
        known = first[number % len(cases)]
        again = deployment.run(cases[number % len(cases)])
        for name, values in known.outputs.items():
            np.testing.assert_array_equal(again.outputs[name], values)
        if again.unit == "instructions":
            assert again.count == known.count
    record_property("inferences", count + len(cases))
