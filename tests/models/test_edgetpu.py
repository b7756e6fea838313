"""Edge TPU plans of the paper's networks, and real files cut into stages (needs ../shared)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.edgetpu import random_inputs, reference_interpreter, run_chain, run_whole
from tests.support.long import mostly_long
from toolchain.edgetpu.model.figures import EdgeTpuCost
from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.model.rules import rules_of
from toolchain.edgetpu.plan import program
from toolchain.edgetpu.plan.chains import best_chain
from toolchain.edgetpu.plan.cuts import Model, all_cuts
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import plan
from toolchain.edgetpu.run.split import split_file

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
GRAPHS = SHARED / "edgetpu_graphs"
MIB = 1 << 20

# Largest stage in MiB for 2..6 stages: as Google's compiler cuts, and the proved optimum.
ANCHORS = {
    "ResNet50": ((12.48, 9.47, 7.22, 9.47, 6.21), (12.48, 8.68, 6.27, 5.21, 4.52)),
    "Xception": ((11.03, 7.73, 6.49, 6.49, 4.96), (11.03, 7.43, 5.72, 4.96, 4.50)),
    "ResNet101": ((21.34, 15.74, 12.48, 9.47, 9.47), (21.34, 14.33, 10.86, 9.02, 7.22)),
    "ResNet152": ((28.82, 19.45, 15.74, 12.48, 12.48), (28.82, 19.23, 14.58, 11.64, 9.73)),
    "ResNet50V2": ((12.50, 9.48, 7.23, 9.48, 6.22), (12.50, 8.70, 6.27, 5.22, 4.53)),
    "ResNet101V2": ((21.36, 15.76, 12.50, 9.48, 9.48), (21.36, 14.36, 10.87, 9.03, 7.24)),
    "DenseNet121": ((3.86, 2.62, 2.00, 2.04, 1.59), (3.86, 2.56, 1.95, 1.56, 1.32)),
    "DenseNet169": ((6.79, 4.74, 3.59, 2.96, 2.52), (6.77, 4.56, 3.41, 2.74, 2.30)),
    "DenseNet201": ((10.04, 6.48, 5.29, 3.92, 3.68), (10.04, 6.48, 5.03, 3.88, 3.39)),
    "ResNet152V2": ((28.85, 19.47, 15.76, 12.50, 12.50), (28.85, 19.27, 14.60, 11.66, 9.74)),
    "InceptionResNetV2": ((26.81, 18.16, 14.26, 11.64, 10.36), (26.81, 17.89, 13.44, 10.81, 9.11)),
}

pytestmark = pytest.mark.skipif(not GRAPHS.is_dir(), reason="no ../shared beside the checkout")


@pytest.mark.parametrize("name", mostly_long(ANCHORS, ["ResNet50V2", "Xception", "DenseNet121"]))
def test_largest_stages_of_the_papers_networks(name: str) -> None:
    graph = read_graph(GRAPHS / f"{name}.json")
    cuts = all_cuts(Model(graph, rules_of(graph), EdgeTpuCost()))
    assert cuts is not None
    for stages, (greedy, exact) in enumerate(zip(*ANCHORS[name], strict=True), 2):
        cut = plan([graph], stages, Options("greedy"))
        assert round(cut.totals.max_stage_bytes / MIB, 2) == greedy
        found = plan([graph], stages, Options("params"))
        assert found.proved_optimal
        assert round(found.totals.max_stage_bytes / MIB, 2) == exact
        other = best_chain(cuts, stages, ("params",))
        assert other is not None
        held = [0] * stages
        for index, stage in enumerate(other):
            held[stage] += graph.op_param_bytes(index)
        assert max(held) >= found.totals.max_stage_bytes
    best = plan([graph], 6, Options())
    assert best.proved_optimal
    for baseline in ("greedy", "contiguous"):
        other_plan = plan([graph], 6, Options(baseline))
        assert best.totals.period_ms <= other_plan.totals.period_ms * (1 + 1e-9)


def test_spill_of_the_paper_at_eight_mebibytes() -> None:
    graph = read_graph(GRAPHS / "ResNet101.json")
    cost = EdgeTpuCost(cache_bytes=8 * MIB)
    greedy = plan([graph], 5, Options("greedy", cost=cost))
    first = plan([graph], 5, Options("params,spill", cost=cost))
    mended = plan([graph], 5, Options("spill,params", cost=cost))
    assert round(greedy.totals.spill_bytes / 1e6, 2) == 2.71
    assert round(first.totals.spill_bytes / 1e6, 2) == 3.53
    assert mended.totals.spill_bytes == greedy.totals.spill_bytes


def test_two_models_on_the_same_sticks() -> None:
    graphs = [read_graph(GRAPHS / f"{name}.json") for name in ("ResNet50", "DenseNet121")]
    models = [Model(graph, rules_of(graph), EdgeTpuCost()) for graph in graphs]
    found = program.solve(models, 3, ("params",), seconds=60)
    assert found is not None
    (proof,) = found.proofs
    assert proof.bound == proof.value
    total = sum(graph.param_bytes for graph in graphs)
    assert proof.value >= total / 3


FILES = sorted(
    [*(SHARED / "edgetpu_models").glob("*.tflite"), *(SHARED / "models").glob("*.tflite")]
)
CRASHES = "tflm_keyword_scrambled_8bit"  # LiteRT 2.3 corrupts its heap on the whole file
OBJECTIVES = ("period", "params,comm", "params,spill,comm", "spill,params,comm", "contiguous")


@pytest.mark.parametrize("path", mostly_long(FILES, FILES[::4]), ids=lambda path: path.stem)
def test_stages_of_real_files(path: Path) -> None:
    if path.stem == CRASHES:
        pytest.skip("LiteRT itself crashes on this file")
    graph = read_graph(path)
    try:
        whole = reference_interpreter(path.read_bytes())
    except (RuntimeError, ValueError):
        pytest.skip("LiteRT refuses this file")
    rng = np.random.default_rng(1)
    count = 20 if any(op.states for op in graph.ops) else 1  # what is kept must matter
    frames = [random_inputs(whole, rng) for _ in range(count)]
    whole.reset_all_variables()
    expected = [run_whole(whole, values) for values in frames]
    for number, objective in enumerate(OBJECTIVES):
        stages = 2 + number % 3
        if stages > len(graph.ops):
            continue
        found = plan([graph], stages, Options(objective))
        segments = split_file(path.read_bytes(), graph, found.stage_of[0], stages)
        chain = [reference_interpreter(segment.data) for segment in segments]
        for values, wanted in zip(frames, expected, strict=True):
            for ours, theirs in zip(run_chain(chain, segments, values), wanted, strict=True):
                assert np.array_equal(ours, theirs), (objective, stages)
