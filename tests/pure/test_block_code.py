"""C of split operators: one function and a table for all blocks of one, few bytes a block."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support import grids
from tests.support.host import plan_of
from tests.support.split_graphs import random_network, random_scheme
from toolchain.boards import HOST
from toolchain.codegen import generate
from toolchain.codegen.arrays import c_float
from toolchain.codegen.calls import (
    OFFSET,
    POINTER,
    SIZE,
    Address,
    Leaf,
    Node,
    PrintedCall,
    Printer,
    Word,
    share,
)
from toolchain.codegen.environment import environment
from toolchain.ir import Graph, Sources
from toolchain.kernels import cmsis_nn
from toolchain.ops.check import check
from toolchain.ops.convolution.common import Padding
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Items,
    Output,
    Packed,
    Scratch,
    Struct,
)
from toolchain.partition import CannotSplitError, Mode, Scheme, split

GOLDEN = Path(__file__).resolve().parents[1] / "goldens" / "split_blocks.c"


def printed(**arguments: Argument) -> PrintedCall:
    """A call of `f`; constants are `sym_<key>`, an operand lies at 32 times its index."""

    def operand(reference: Input | Output, name: str) -> Node:
        offset = Leaf(name, OFFSET, str(32 * reference.index))
        return Address("int8_t", isinstance(reference, Input), base="arena", offset=offset)

    def packed(reference: Packed, name: str) -> Node:
        symbol = Leaf(reference.key[:1], POINTER, f"sym_{reference.key}", "int8_t")
        return Address("int8_t", False, symbol=symbol)

    def scratch(reference: Scratch, name: str) -> Node:
        return Word("NULL")

    return Printer(operand, packed, scratch, c_float).printed(Call("f", arguments))


def shared(*calls: PrintedCall) -> tuple[dict[str, tuple[str, tuple[str, ...]]], str]:
    """The columns of calls that share a function, and its text on one line."""
    ((places, columns, body),) = share([(call,) for call in calls])
    assert places == tuple(range(len(calls)))
    text = environment().get_template("ops/body.c.j2").render(calls=body)
    table = {column.name: (column.c_type, column.values) for column in columns}
    return table, " ".join(text.split())


def test_numbers_that_differ_become_columns_of_the_smallest_type() -> None:
    table, text = shared(
        *(
            printed(s=Struct("s_t", {"h": h, "w": Struct("w_t", {"x": x}), "y": y}), n=5)
            for h, x, y in ((3, -7, 70000), (9, 6, 3))
        )
    )
    assert table == {
        "y": ("int32_t", ("70000", "3")),
        "h": ("uint8_t", ("3", "9")),
        "w_x": ("int8_t", ("-7", "6")),
    }
    assert ".h = block->h, .w = {.x = block->w_x}, .y = block->y" in text
    assert text.endswith("f(&s, 5); return 0;")


def test_members_of_cmsis_nns_structs_are_named_with_their_object() -> None:
    table, _ = shared(*(printed(input_dims=Struct("cmsis_nn_dims", {"h": h})) for h in (1, 2)))
    assert table == {"input_dims_h": ("uint8_t", ("1", "2"))}


def test_offsets_count_in_the_largest_unit() -> None:
    table, text = shared(*(printed(input=Input(index)) for index in (3, 4096)))
    assert table == {"input": ("uint16_t", ("3", "4096"))}
    assert "f((const int8_t *)(arena + 32 * block->input));" in text


def test_sizes_are_unsigned_and_constants_pointers() -> None:
    calls = [printed(weights=Packed(key)) for key in ("wa", "wb")]
    sizes = [70_000, 1]
    given = [
        replace(call, arguments=(*call.arguments, ("n", Leaf("n", SIZE, str(size)))))
        for call, size in zip(calls, sizes, strict=True)
    ]
    table, _ = shared(*given)
    assert table == {
        "w": ("const int8_t *", ("sym_wa", "sym_wb")),
        "n": ("uint32_t", ("70000", "1")),
    }


def test_equal_columns_are_one_and_what_depends_on_them_is_not_static() -> None:
    table, text = shared(
        *(
            printed(
                b=Struct("p_t", {"a": Items("t_t", (Struct("t_t", {"n": n}),)), "m": n}),
                c=Struct("q_t", {"k": 2}),
            )
            for n in (1, 5)
        )
    )
    assert list(table) == ["n"]
    assert "static const t_t" not in text and "static const p_t" not in text
    assert "const t_t a[] = {" in text and "const p_t b = {" in text
    assert "static const q_t c = {" in text


def test_calls_of_other_forms_do_not_share_a_function() -> None:
    one, other = printed(size=3), printed(size=3, extra=1)
    assert [places for places, _, _ in share([(one,), (other,), (one,)])] == [(0, 2), (1,)]


def sources_of(graph: Graph) -> Sources:
    return generate(plan_of(graph), HOST, cmsis_nn.find(), name="net")


def small_network() -> tuple[Graph, Graph]:
    """A chain of convolutions, whole and in eight blocks."""
    rng = np.random.default_rng(11)
    while True:
        graph = check(random_network(rng))
        names = tuple(op.name for op in graph.ops)
        kinds = {op.kind for op in graph.ops}
        try:
            fine = split(graph, Scheme(names, (graph.ops[-1].outputs[0], 1), 6, Mode.SLIDING))
        except CannotSplitError:
            continue
        if len(names) > 2 and {"conv2d", "depthwise_conv2d"} <= kinds:
            return graph, check(fine)


def test_a_split_model_is_as_its_golden_text(request: pytest.FixtureRequest) -> None:
    text = sources_of(small_network()[1]).files["net.c"]
    if request.config.getoption("--update-goldens"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8"), "run pytest with --update-goldens and look"


def test_blocks_whose_code_differs_all_run() -> None:
    """Two blocks of one convolution, only one of which reads lines that lie apart."""
    walk = Conv2D(dilation=(2, 3), padding=Padding(2, 1, 0, 3))
    graph = next(
        g
        for g in grids.convolutions()
        if g.ops[0].attributes == walk and g.input(g.ops[0], 0).shape == (1, 7, 6, 1)
    )
    fine = check(split(graph, Scheme((graph.ops[0].name,), (graph.outputs[0], 2), 2)))
    sources = sources_of(fine)
    assert len(sources.operators) == 1
    assert len(sources.calls) == 2
    assert "net_op0_conv2d_2, 0}," in sources.files["net.c"]


def test_every_block_runs_once_in_the_order_of_the_plan() -> None:
    rng = np.random.default_rng(3)
    seen = 0
    while seen < 20:
        graph = check(random_network(rng))
        try:
            fine = check(split(graph, random_scheme(graph, rng)))
        except CannotSplitError:
            continue
        seen += 1
        plan, sources = plan_of(fine), sources_of(fine)
        with_code = [n for n in plan.schedule.order if n in set(sources.calls)]
        assert list(sources.calls) == with_code
        assert sorted(n for op in sources.operators for n in op.numbers) == sorted(with_code)
        coarse = {op.name for op in graph.ops} | set(graph.inputs)
        assert {op.name for op in sources.operators} <= coarse
        for op in sources.operators:
            assert {fine.ops[n].counted_as for n in op.numbers} == {(op.name, op.kind)}
