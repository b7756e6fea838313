"""Attention in blocks of rows: no matrix of all tokens by all tokens lies in RAM."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.support.host import random_inputs, reference_outputs
from tests.support.onnx_models import model_of, prepared_of, quantised
from toolchain.boards import board
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions

TOKENS, WIDTH = 32, 4


def attention() -> bytes:
    """int8: queries, keys and values of one input, softmax over the products, a sum with it."""
    rng = np.random.default_rng(3)
    nodes = [helper.make_node("MatMul", ["x", name], [f"{name}x"]) for name in "qkv"]
    nodes += [
        helper.make_node("Transpose", ["kx"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["qx", "kt"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"]),
        helper.make_node("MatMul", ["shares", "vx"], ["seen"]),
        helper.make_node("Add", ["x", "seen"], ["y"]),
    ]
    weights = {n: rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) for n in "qkv"}
    return quantised(model_of(nodes, {"x": (1, TOKENS, WIDTH)}, ["y"], weights))


def test_no_matrix_of_all_pairs_of_tokens_is_kept() -> None:
    graph = prepared_of(attention()).graph
    whole = plan_graph(graph, board("netduinoplus2"), PlanOptions().unsplit)
    pairs = TOKENS * TOKENS
    assert whole.arena.size_bytes > pairs
    plan = plan_graph(graph, board("netduinoplus2"), PlanOptions(ram_bytes=pairs + 2500))
    assert max(tensor.size_bytes for tensor in plan.graph.activations()) <= pairs // 2
    kinds = [op.kind for op in plan.graph.ops]
    assert kinds.count("batch_matmul") == 2 * kinds.count("softmax_once") >= 4
    assert plan.arena.size_bytes <= pairs
    inputs = random_inputs(graph, np.random.default_rng(1))
    wanted, got = reference_outputs(graph, inputs), reference_outputs(plan.graph, inputs)
    for want, have in zip(wanted, got, strict=True):
        np.testing.assert_array_equal(have, want)
