"""Weights of four bits: packed where that is smaller, and the C equals the references."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import model_of, plan_of, random_inputs, reference_outputs
from tests.support.overlaps import allowed_overlaps, tight_plan
from tests.support.weights import sample_with_constant_weights
from toolchain.boards import HOST, Core
from toolchain.device.host import HostProgram, build
from toolchain.ir import Graph
from toolchain.ir.merged import merged
from toolchain.kernels import cmsis_nn
from toolchain.ops import kernel_of

PACKED = {
    "conv2d": ("thimble_convolve_s4", "thimble_convolve_1x1_s4", "thimble_convolve_inside_s4"),
    "fully_connected": ("thimble_fully_connected_s4", "thimble_fully_connected_lanes_s4"),
}
HELIUM = Core("cortex-m55", dsp=True, mve=True, fpu=True)
SAMPLES = 16


def with_weights(graph: Graph, data: np.ndarray) -> Graph:
    weights = replace(graph.tensors["weights"], constant=data)
    return replace(graph, tensors={**graph.tensors, "weights": weights})


def samples(kind: str, core: Core = HOST) -> list[Graph]:
    rng = np.random.default_rng(len(kind))
    graphs = []
    while len(graphs) < SAMPLES:
        graph = sample_with_constant_weights(kind, rng)
        shape = graph.tensors["weights"].shape
        few = with_weights(graph, rng.integers(-8, 8, shape).astype(np.int8))
        if kernel(few, core) in PACKED[kind]:
            graphs.append(few)
    return graphs


def kernel(graph: Graph, core: Core) -> str:
    (op,) = graph.ops
    return kernel_of(op, graph, core).functions[0]


@pytest.mark.parametrize(
    ("kind", "core"), (("conv2d", HOST), ("fully_connected", HOST), ("fully_connected", HELIUM))
)
def test_packed_weights_give_the_same_bytes(kind: str, core: Core) -> None:
    """Spread in the arena and not, and as close together as the overlaps allow; what is for Helium
    in its portable form."""
    graphs = samples(kind, core)
    cases = [(g, o) for g in graphs for o in allowed_overlaps(g.ops[0], g, core)]
    tight = merged([graph for graph, _ in cases])
    plans = [plan_of(g, core, spread=i % 2 == 1) for i, g in enumerate(graphs)]
    models = [model_of(plan, f"m{i}") for i, plan in enumerate(plans)]
    models.append(model_of(tight_plan(tight, [o for _, o in cases], core), "tight"))
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, graph in enumerate([*graphs, tight]):
                inputs = random_inputs(graph, rng)
                wanted = reference_outputs(graph, inputs)
                for want, have in zip(wanted, running.run(inputs, index), strict=True):
                    np.testing.assert_array_equal(have, want, err_msg=f"{index} {graph.ops}")


def test_packed_convolutions_take_less_flash() -> None:
    for graph in samples("conv2d"):
        (op,) = graph.ops
        data = graph.tensors["weights"].constant
        assert data is not None
        wide = data.copy()
        wide.reshape(-1)[0] = 100
        packed, unpacked = (
            sum(c.data.nbytes for c in kernel_of(op, g, HOST).constants)
            for g in (graph, with_weights(graph, wide))
        )
        assert packed <= unpacked


def test_helium_convolves_with_int8_weights() -> None:
    """But for groups, which CMSIS-NN has no kernel for there."""
    for graph in samples("conv2d"):
        whole = graph.tensors["weights"].shape[3] == graph.tensors["x"].shape[3]
        assert (kernel(graph, HELIUM) not in PACKED["conv2d"]) == whole
