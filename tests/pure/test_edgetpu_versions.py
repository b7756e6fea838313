"""Operator versions that edgetpu_compiler 16.0 rejects, and stages without work for a TPU.

"Didn't find op for builtin opcode 'CONV_2D' version '6'" (google-coral/edgetpu#631), TRANSPOSE_CONV
4 (#845), QUANTIZE 3 (#879), EXP 2 (libedgetpu#71).
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest

from tests.pure.test_edgetpu_files import DIGITS, changed, segments_of
from tests.support.edgetpu import random_inputs, reference_interpreter, run_chain, run_whole
from tests.support.mutations import unpacked
from toolchain.cli import run
from toolchain.edgetpu.model.figures import CACHE_BYTES
from toolchain.edgetpu.model.graph import PipelineGraph, PipelineOp, PipelineTensor
from toolchain.edgetpu.model.supported import version_for
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import plan
from toolchain.edgetpu.show.reasons import device, kinds, parts, reasons
from toolchain.edgetpu.show.report import idle_lines

INT8, FLOAT32 = 9, 0
CONV_2D = schema.BuiltinOperator.CONV_2D


def tensor(*shape: int, kind: int = INT8, scales: int = 1) -> Any:
    quantization = SimpleNamespace(scale=np.ones(scales))
    return SimpleNamespace(shape=shape, type=kind, quantization=quantization)


def op(inputs: int, activation: int = 0) -> Any:
    options = SimpleNamespace(fusedActivationFunction=activation)
    return SimpleNamespace(inputs=range(inputs), outputs=[inputs], builtinOptions=options)


CONV = [tensor(1, 8, 8, 16), tensor(8, 3, 3, 16), tensor(8), tensor(1, 8, 8, 8)]
GROUPED = [tensor(1, 8, 8, 16), tensor(8, 3, 3, 4), tensor(8), tensor(1, 8, 8, 8)]
FIVE = [tensor(4)] * 5


@pytest.mark.parametrize(
    ("kind", "version", "made", "tensors", "written"),
    [
        ("CONV_2D", 6, op(3), CONV, 3),
        ("CONV_2D", 5, op(3), CONV, 5),
        ("TRANSPOSE_CONV", 4, op(3), FIVE, 2),
        ("TRANSPOSE_CONV", 4, op(4), FIVE, 3),
        ("QUANTIZE", 3, op(1), FIVE, 2),
        ("EXP", 2, op(1), [tensor(4, kind=FLOAT32)] * 2, 1),
        ("ADD", 9, op(2), FIVE, 9),
    ],
)
def test_the_version_that_says_as_much(
    kind: str, version: int, made: Any, tensors: list[Any], written: int
) -> None:
    assert version_for(kind, version, made, tensors) == (written, "")


@pytest.mark.parametrize(
    ("kind", "version", "made", "tensors", "why"),
    [
        ("CONV_2D", 6, op(3), GROUPED, "groups of channels"),
        ("TRANSPOSE_CONV", 4, op(4, activation=1), FIVE, "a fused activation"),
        ("QUANTIZE", 3, op(1), [tensor(4), tensor(4, scales=4)], "a scale for each channel"),
        ("EXP", 2, op(1), FIVE, "integers"),
    ],
)
def test_a_feature_that_is_used_keeps_its_version_and_is_told(
    kind: str, version: int, made: Any, tensors: list[Any], why: str
) -> None:
    kept, told = version_for(kind, version, made, tensors)
    assert kept == version and why in told and f"{kind} of version {version}" in told


def newer(model: Any, main: Any) -> None:
    for code in model.operatorCodes:
        if code.builtinCode == CONV_2D:
            code.version = 6


def test_split_lowers_the_version_and_stages_compute_the_same(tmp_path: Path) -> None:
    path = changed(tmp_path, newer)
    segments = segments_of(path, 2)
    versions = [
        code.version
        for segment in segments
        for code in unpacked(segment.data).operatorCodes
        if code.builtinCode == CONV_2D
    ]
    assert versions and set(versions) == {3}
    assert not any(segment.rejected for segment in segments)
    whole = reference_interpreter(DIGITS.read_bytes())
    values = random_inputs(whole, np.random.default_rng(1))
    chain = [reference_interpreter(segment.data) for segment in segments]
    for ours, theirs in zip(
        run_chain(chain, segments, values), run_whole(whole, values), strict=True
    ):
        assert np.array_equal(ours, theirs)


def chain_of(*kinds: tuple[str, int, int]) -> PipelineGraph:
    """Operators one after another: kind, parameters, MACs."""
    tensors = tuple(PipelineTensor(f"t{i}", 100) for i in range(len(kinds) + 1))
    ops = tuple(
        PipelineOp(kind, (i,), (i + 1,), (i,) if size else (), macs, size)
        for i, (kind, size, macs) in enumerate(kinds)
    )
    sizes = tuple(size for _, size, _ in kinds)
    return PipelineGraph("net", tensors, sizes, ops, (0,), (len(kinds),))


def test_a_stage_without_work_for_a_tpu_is_told_and_fewer_are_advised() -> None:
    """Stages of 8 and 12 bytes, as DeepLab's last ones: resizing and the largest class."""
    graph = chain_of(("CONV_2D", 5000, 10**8), ("RESIZE_BILINEAR", 8, 0), ("ARG_MAX", 12, 0))
    lines = idle_lines(plan([graph], 3, Options("params")))
    text = "\n".join(lines)
    assert "stage 1 has 8 B of parameters and nothing to multiply (RESIZE_BILINEAR)" in text
    assert "stage 2 has 12 B of parameters" in text
    assert "ARG_MAX stay on the processor" in text
    assert lines[-1] == "1 stage would do as much: --stages 1."


def test_stages_with_work_are_not_blamed() -> None:
    graph = chain_of(("CONV_2D", 5000, 10**8), ("CONV_2D", 5000, 10**8))
    assert idle_lines(plan([graph], 2, Options("params"))) == []


def test_a_stage_tells_its_device_the_parts_of_its_time_and_why() -> None:
    """The slowest sets the period, or the bus does, if a cache has no room; one has no work."""
    graph = chain_of(("CONV_2D", 5000, 10**9), ("CONV_2D", 50, 10**6), ("RESHAPE", 8, 0))
    made = plan([graph], 3, Options("params"))
    told = [" ".join(reasons(made, 0, number)) for number in range(3)]
    assert [device(made, number) for number in range(3)] == [f"Edge TPU {i}" for i in range(3)]
    for number, stage in enumerate(made.figures[0]):
        spent = dict(parts(made, number, stage))
        assert sum(spent.values()) == pytest.approx(stage.time_ms)
        assert spent["arithmetic"] == pytest.approx(stage.macs / made.options.cost.macs_per_ms)
    assert "The slowest stage" in told[0]
    assert "Waits" in told[1] and "Its 50 B of parameters stay in the cache" in told[1]
    assert "none of the stage's tensors is smaller" in told[1]
    assert "a TPU gains nothing" in told[2]
    assert kinds(graph, made.figures[0][2]) == (("RESHAPE", 1),)
    large = CACHE_BYTES + (1 << 20)
    streaming = plan([chain_of(("CONV_2D", large, 10**6))], 1, Options("params"))
    (why,) = [" ".join(reasons(streaming, 0, 0))]
    assert f"The hub takes {large / 445e3:,.2f} ms" in why
    assert f"{large:,} of {large:,} B of parameters have no room in the cache" in why


def test_split_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "stages"
    command = ["edgetpu", "split", str(DIGITS), "-n", "9", "-o", str(out)]
    assert run([*command, "--objective", "params"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "and nothing to multiply (" in said and "stages would do as much: --stages" in said
