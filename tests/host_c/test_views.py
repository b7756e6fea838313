"""Views, concats laid in place and in-place kernels: what the arena shares stays right."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import (
    model_of,
    plan_of,
    random_inputs,
    reference_outputs,
    run_graphs_on_host,
)
from tests.support.random_graphs import random_movement_graph
from toolchain.boards import HOST, Core
from toolchain.device.host import HostProgram, build
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.kernels import cmsis_nn
from toolchain.memory.views import optional_views
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.pack import Pack
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.split import Split
from toolchain.ops.movement.unpack import Unpack
from toolchain.ops.window import Padding

GRAPHS = 60
Q = Quantisation((0.1,), (0,))


@pytest.mark.parametrize(("seed", "copied_share"), [(1, 0.0), (2, 0.3)])
def test_random_graphs_equal_their_references(seed: int, copied_share: float) -> None:
    rng = np.random.default_rng(seed)
    models = []
    for index in range(GRAPHS):
        graph = random_movement_graph(rng)
        views = optional_views(graph)
        copying = frozenset(view for view in views if rng.random() < copied_share)
        plan = plan_of(graph, copying=copying)
        models.append(model_of(plan, f"m{index}"))
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, model in enumerate(models):
                inputs = random_inputs(model.graph, rng)
                got = running.run(inputs, index)
                wanted = reference_outputs(model.graph, inputs)
                for name, want, have in zip(model.graph.outputs, wanted, got, strict=True):
                    message = f"{name} of {model.graph.ops}"
                    np.testing.assert_array_equal(have, want, err_msg=message)


def test_parts_that_lie_in_one_buffer_spare_the_input_together() -> None:
    """Each part alone could begin in the dying input; written first, the last would ruin it."""
    parts = [f"p{index}" for index in range(4)]
    tensors = [Tensor("x", (1, 6, 8, 4), DType.INT8, Q), Tensor("y", (1, 4, 6, 8), DType.INT8, Q)]
    tensors += [Tensor(name, (1, 6, 8), DType.INT8, Q) for name in parts]
    ops = [
        Op("unpack", "unpack", ("x",), tuple(parts), Unpack(3)),
        Op("pack", "pack", tuple(reversed(parts)), ("y",), Pack(1)),
    ]
    graph = Graph.build("reversed", tensors, ops, ["x"], ["y"])
    inputs = random_inputs(graph, np.random.default_rng(0))
    ((have,),) = run_graphs_on_host([(graph, inputs)])
    (want,) = reference_outputs(graph, inputs)
    np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("first", (3, 4))
def test_images_that_vectors_load_by_words_lie_at_words(first: int) -> None:
    """A depthwise convolution reads a part of the input and writes one of the output: views, unless
    these begin between two words."""
    rng = np.random.default_rng(first)
    image, row = (1, 3, 2, 4), (1, 24)
    weights = rng.integers(-127, 128, (1, 2, 2, 4)).astype(np.int8)
    scales = Quantisation((0.01,) * 4, (0,) * 4, 3)
    tensors = [
        Tensor("x", (1, first + 24), DType.INT8, Q),
        Tensor("few", (1, first), DType.INT8, Q),
        Tensor("rest", row, DType.INT8, Q),
        Tensor("image", image, DType.INT8, Q),
        Tensor("weights", weights.shape, DType.INT8, scales, weights),
        Tensor("made", image, DType.INT8, Q),
        Tensor("flat", row, DType.INT8, Q),
        Tensor("y", (1, first + 24), DType.INT8, Q),
    ]
    below = Padding(bottom=1, right=1)
    ops = [
        Op("split", "split", ("x",), ("few", "rest"), Split(1, (first, 24))),
        Op("reshape", "to image", ("rest",), ("image",), Reshape(image)),
        Op(
            "depthwise_conv2d",
            "op",
            ("image", "weights"),
            ("made",),
            DepthwiseConv2D(padding=below),
        ),
        Op("reshape", "to row", ("made",), ("flat",), Reshape(row)),
        Op("concat", "concat", ("few", "flat"), ("y",), Concat(1)),
    ]
    graph = Graph.build("words", tensors, ops, ["x"], ["y"])
    m55 = Core("cortex-m55", dsp=True, mve=True, fpu=True)
    for core, at_words in ((HOST, first % 4 == 0), (m55, True)):
        plan = plan_of(graph, core)
        for name, root in (("image", "x"), ("made", "y")):
            assert (plan.arena.offsets[name] % 4 == 0) == at_words
            laid = plan.arena.offsets[name] == plan.arena.offsets[root] + first
            assert laid == (core is HOST or first % 4 == 0)
        model = model_of(plan, "m")
        inputs = random_inputs(graph, rng)
        with tempfile.TemporaryDirectory() as folder:
            program = build([model], cmsis_nn.find(), Path(folder), sanitize=True)
            with HostProgram(program, [model]) as running:
                (have,) = running.run(inputs, 0)
        np.testing.assert_array_equal(have, reference_outputs(graph, inputs)[0])
