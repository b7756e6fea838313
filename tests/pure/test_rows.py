"""Inputs that arrive by rows: what is refused, what the checkers see, and what plans save."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.zoo_mobile import mobilenet_v2
from tests.support.graph_builder import Builder
from tests.support.graphs import dense_chain
from tests.support.states import GRAPHS
from toolchain.boards import HOST, board
from toolchain.errors import InputError
from toolchain.ir import Graph
from toolchain.ir.memory import check_order
from toolchain.ir.verify import InvalidGraphError
from toolchain.memory.firmware_size import pushed_bytes
from toolchain.memory.problem import memory_problem
from toolchain.ops.check import check
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.interpret import interpret
from toolchain.ops.lowering import lower
from toolchain.ops.movement.input_rows import rows_of
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.transpose import Transpose
from toolchain.ops.window import Padding
from toolchain.partition import CannotSplitError, Mode, Scheme, split
from toolchain.partition.columns import column_schemes
from toolchain.planner import plan_graph
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.rows import stream_input

SAME = Padding(1, 1, 1, 1)
BOARD = "nucleo-f446re"


def _network(inputs: int = 1) -> Graph:
    builder = Builder()
    images = [builder.input((1, 12, 8, 3)) for _ in range(inputs)]
    found = []
    for image in images:
        y = builder.conv(image, 3, 8, Conv2D(padding=SAME))
        found.append(builder.conv(y, 3, 4, Conv2D(stride=(2, 2), padding=SAME)))
    return check(builder.graph(found))


def _in_blocks(graph: Graph, count: int, mode: Mode = Mode.SLIDING) -> Graph:
    streamed = check(stream_input(graph))
    names = tuple(op.name for op in streamed.ops)
    return check(split(streamed, Scheme(names, (streamed.outputs[0], 1), count, mode)))


def test_the_input_is_in_no_buffer_and_the_progress_in_one_that_lasts() -> None:
    fine = _in_blocks(_network(), 4)
    problem = memory_problem(lower(fine, HOST), progressive=True)
    held = {member.tensor: buffer for buffer in problem.buffers for member in buffer.members}
    assert fine.pushed is not None
    assert fine.pushed.input not in held
    progress = held[fine.pushed.progress]
    assert (progress.size_bytes, progress.from_start, progress.to_end) == (4, True, True)
    takers = [op for op in fine.ops if op.kind == "input_rows"]
    assert [rows_of(op).rows for op in takers] == [3, 3, 3, 3]
    assert sum(held[op.outputs[0]].size_bytes for op in takers) > 0


def test_rows_come_in_order_whatever_the_order_of_the_rest() -> None:
    fine = _in_blocks(_network(), 4)
    problem = memory_problem(lower(fine, HOST))
    takers = [i for i, op in enumerate(fine.ops) if op.kind == "input_rows"]
    free = [i for i in range(len(fine.ops)) if i not in takers]
    with pytest.raises(ValueError, match="before its predecessor"):
        check_order(problem, [takers[1], takers[0], *takers[2:], *free])


def test_blocks_compute_what_the_whole_input_gives() -> None:
    graph = _network()
    values = (np.random.default_rng(3).integers(-128, 128, (1, 12, 8, 3)).astype(np.int8),)
    (wanted,) = interpret(graph, values)
    for count in (2, 3, 6):
        (found,) = interpret(_in_blocks(graph, count), values)
        np.testing.assert_array_equal(found, wanted)


def test_rows_cannot_be_taken_twice() -> None:
    with pytest.raises(CannotSplitError, match="computed once"):
        _in_blocks(_network(), 3, Mode.TILES)
    fine = _in_blocks(_network(), 4)
    lost = [op for op in fine.ops if op.kind == "input_rows"][1]
    again = replace(lost, attributes=replace(rows_of(lost), begin=2, end=5))
    ops = [again if op is lost else op for op in fine.ops]
    with pytest.raises(InvalidGraphError, match="not taken once"):
        check(fine.with_ops(ops))


def test_nothing_but_input_rows_reads_the_input() -> None:
    streamed = stream_input(_network())
    assert streamed.pushed is not None
    conv = streamed.ops[1]
    other = replace(conv, inputs=(streamed.pushed.input, *conv.inputs[1:]))
    with pytest.raises(InvalidGraphError, match="arrives by rows"):
        check(streamed.with_ops([streamed.ops[0], other, *streamed.ops[2:]]))


def test_a_flat_spectrogram_has_the_rows_that_its_reshape_gives_it() -> None:
    builder = Builder()
    flat = builder.input((1, 10 * 6 * 2))
    image = builder.op("reshape", [flat], Reshape((1, 10, 6, 2)))
    graph = check(builder.graph([builder.conv(image, 3, 4, Conv2D(padding=SAME))]))
    streamed = check(stream_input(graph))
    assert [op.kind for op in streamed.ops] == ["input_rows", "conv2d"]
    taken = rows_of(streamed.ops[0])
    assert (taken.shape, taken.axis, taken.row_elements) == ((1, 10, 6, 2), 1, 12)


def _transposed() -> Graph:
    builder = Builder()
    image = builder.input((1, 3, 8, 8))
    turned = builder.op("transpose", [image], Transpose((0, 2, 3, 1)))
    return check(builder.graph([builder.conv(turned, 3, 4, Conv2D(padding=SAME))]))


@pytest.mark.parametrize(
    ("graph", "name", "message"),
    [
        (dense_chain("dense", (8, 4, 2)), "", "has no rows"),
        (GRAPHS[min(GRAPHS)], "", "keeps state"),
        (_transposed(), "", "channels first"),
        (_network(2), "", "several inputs with rows"),
        (_network(), "nowhere", "no input 'nowhere'"),
    ],
)
def test_refusals(graph: Graph, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        stream_input(graph, name)


def test_one_of_several_inputs_is_named() -> None:
    streamed = check(stream_input(_network(2), "in1"))
    assert streamed.pushed is not None
    assert streamed.pushed.input == "in1"
    assert "in0" in streamed.sources


@pytest.mark.long
def test_the_plan_of_a_small_mobilenet_is_a_fraction_without_its_image() -> None:
    """Whose image alone takes 27,648 bytes."""
    graph = check(mobilenet_v2("small", 0.35, 96, 10))
    options = PlanOptions(stream_input=True, max_slowdown=0.07, optimise=Optimise.SIZE)
    streamed = plan_graph(graph, board(BOARD), options)
    assert streamed.arena.size_bytes < 16_500
    assert streamed.slowdown <= 0.07
    assert pushed_bytes(streamed) == 96 * 96 * 3 == 27_648


def test_wide_tensors_are_cut_into_columns_that_compute_the_same() -> None:
    graph = check(mobilenet_v2("small", 0.35, 32, 4))
    schemes = list(column_schemes(graph, 600))
    assert schemes
    fine = graph
    for scheme in schemes:
        fine = check(split(fine, scheme))
    values = (np.random.default_rng(4).integers(-128, 128, (1, 32, 32, 3)).astype(np.int8),)
    np.testing.assert_array_equal(interpret(fine, values)[0], interpret(graph, values)[0])


def test_narrow_windows_keep_what_an_expansion_is_made_from() -> None:
    graph = check(mobilenet_v2("small", 0.35, 32, 4))
    streamed = check(stream_input(graph))
    names = tuple(op.name for op in streamed.ops[:7])
    seed = (streamed.ops[6].outputs[0], 1)
    sliding, narrow = (
        check(split(streamed, Scheme(names, seed, 8, mode))) for mode in (Mode.SLIDING, Mode.NARROW)
    )
    wide = streamed.ops[4].outputs[0]

    def kept(fine: Graph) -> list[str]:
        return [op.name for op in fine.ops if op.kind == "block_concat" and wide in op.name]

    assert kept(sliding)
    assert not kept(narrow)
    values = (np.random.default_rng(5).integers(-128, 128, (1, 32, 32, 3)).astype(np.int8),)
    for fine in (sliding, narrow):
        np.testing.assert_array_equal(interpret(fine, values)[0], interpret(graph, values)[0])
