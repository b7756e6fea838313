"""Measured sizes of code: of the C that stands, of every kernel, on every core."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.graphs import dense_chain
from toolchain.boards import Core, board, boards
from toolchain.kernels import c_sources, cmsis_nn, runtime_c
from toolchain.kernels.code_sizes import (
    CodeSizes,
    Function,
    code_bytes,
    code_digest,
    code_sizes,
    measured_core,
    sizes_of,
    stale_functions,
    standing,
    write_code_sizes,
)
from toolchain.memory.firmware_size import code_of, estimated_need
from toolchain.planner import plan_graph
from toolchain.report.code import code_json

CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33", "cortex-m7", "cortex-m55")


@pytest.mark.parametrize("name", CORES)
def test_every_kernel_was_measured_of_the_c_that_stands(name: str) -> None:
    sizes = code_sizes(name)
    assert not stale_functions(sizes), "run: python -m benchmarks.code --write"
    assert standing(sizes) == sizes.functions
    arm = cmsis_nn.tree(cmsis_nn.find())
    known = {f for f in c_sources.declared(arm) if c_sources.defines(arm, f)}
    assert len(known & set(sizes.functions)) > 60
    called = {f for row in sizes.functions.values() for f in row.calls}
    assert called <= set(sizes.functions)
    assert all(0 < row.size_bytes < 12_000 for row in sizes.functions.values())


def test_changed_c_is_found() -> None:
    sizes = code_sizes("cortex-m4")
    first, second = (path.stem for path in runtime_c.tree().files()[:2])
    rows = {n: r for n, r in sizes.functions.items() if n != first}
    rows[second] = Function(10, (), "of old C")
    assert stale_functions(CodeSizes(rows, {})) == {first, second}


def test_rows_of_c_that_is_gone_or_has_changed_are_dropped_with_their_parts() -> None:
    first, second = (path.stem for path in runtime_c.tree().files()[:2])
    kept = {
        first: Function(10, (), code_digest(first)),
        f"{first} part 0": Function(10, (), code_digest(first)),
        "memcpy": Function(10, (), ""),
    }
    old = {
        second: Function(10, (), "of old C"),
        f"{second} part 0": Function(10, (), "of old C"),
        "thimble_that_was": Function(10, (), "01234567"),
    }
    assert standing(CodeSizes({**kept, **old}, {})) == kept


def test_the_firmware_of_every_board_was_measured() -> None:
    every = {name: b for name, b in boards().items() if not b.is_host}
    assert all(2_500 < sizes_of(b.core).firmware[name] < 7_000 for name, b in every.items())


def test_cores_take_the_sizes_of_one_with_their_instructions() -> None:
    assert measured_core(Core("cortex-m85", dsp=True, mve=True)) == "cortex-m55"
    assert measured_core(Core("cortex-m33")) == "cortex-m3"
    assert measured_core(Core("cortex-m0")) == "cortex-m0plus"
    assert measured_core(Core("cortex-m33", dsp=True)) == "cortex-m33"
    middle = sorted(code_sizes("cortex-m4").firmware.values())
    assert sizes_of(Core("cortex-m4", dsp=True)).around("my board") in middle


def test_each_function_that_is_reached_counts_once() -> None:
    rows = {
        "a": Function(100, ("c", "memcpy"), "1"),
        "b": Function(50, ("c",), "2"),
        "c": Function(7, (), "3"),
        "memcpy": Function(300, (), ""),
        "memset": Function(160, (), ""),
    }
    sizes = CodeSizes(rows, {"x": 10, "y": 30, "z": 20})
    linked = sizes.linked(["b", "a"])
    assert list(linked.items()) == [
        ("memcpy", 300),
        ("memset", 160),
        ("a", 100),
        ("b", 50),
        ("c", 7),
    ]
    assert (sizes.around("x"), sizes.around("w"), sizes.least_around) == (10, 20, 10)
    assert sizes.is_of_kernels("c") and not sizes.is_of_kernels("memcpy")
    m4 = Core("cortex-m4", dsp=True)
    two = frozenset({"thimble_convolve_s8", "thimble_convolve_1x1_s8"})
    alone = [code_bytes(m4, frozenset({name})) for name in two]
    assert max(alone) < code_bytes(m4, two) < sum(alone)


def test_what_was_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolchain.kernels.code_sizes._FOLDER", tmp_path)
    sizes = CodeSizes({"a": Function(8, ("b",), "1"), "b": Function(4, (), "")}, {"x": 3})
    write_code_sizes("mine", sizes)
    assert code_sizes("mine") == sizes
    code_sizes.cache_clear()


def test_plans_tell_code_by_function() -> None:
    plan = plan_graph(dense_chain("dense", (24, 16)), board("nucleo-l4r5zi"))
    told, code = code_json(plan), code_of(plan)
    assert "thimble_fully_connected_joined_s8" in told["functions"]
    parts = sum(told["functions"].values()) + told["calls_bytes"] + told["firmware_bytes"]
    assert parts == code.size_bytes == estimated_need(plan).code_bytes
