"""Generated C whose arena lies in several banks: right, and within the bytes that it owns."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.host_c.test_generated import compile_with
from tests.support import split_graphs
from tests.support.host import model_of, plan_of, random_inputs, reference_outputs
from tests.support.random_networks import random_network
from tests.support.states import GRAPHS
from toolchain import arena, schedule
from toolchain.arena.banks.spread import spread
from toolchain.boards import HOST
from toolchain.codegen import generate
from toolchain.device.host import HostModel, HostProgram, build
from toolchain.errors import LinkError
from toolchain.ir import Bank, Graph
from toolchain.ir.arena import arena_problem
from toolchain.ir.banks import check_spread, spread_plan
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.memory.problem import memory_problem
from toolchain.ops.check import check
from toolchain.ops.interpret import interpret
from toolchain.ops.lowering import lower
from toolchain.ops.spec import Array
from toolchain.partition import CannotSplitError, split


def banked(graph: Graph, share: float = 0.6) -> Plan | None:
    """A plan over a bank of `share` of what one piece needs and one that is small; None if none."""
    problem = memory_problem(lower(graph, HOST))
    order = schedule.scheduler("rpo").schedule(problem).order
    blocks = arena_problem(problem, order)
    whole = plan_of(graph)
    size = whole.arena.size_bytes
    banks = (Bank("CCM", int(size * 0.45), 1), Bank("SRAM", int(size * share), 2))
    heat = [block.size_bytes for block in blocks.blocks]
    found = spread(blocks, banks, heat, arena.allocator("exact"), 2.0)
    if found is None:
        return None
    check_spread(blocks, found)
    return replace(whole, arena=spread_plan(problem, order, found, blocks))


def test_random_networks_over_two_banks_equal_their_references() -> None:
    rng = np.random.default_rng(17)
    found = [banked(check(random_network(rng)), 0.9) for _ in range(25)]
    plans = [plan for plan in found if plan is not None and len(plan.arena.parts) == 2]
    assert len(plans) >= 12
    models = [model_of(plan, f"m{index}") for index, plan in enumerate(plans)]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, model in enumerate(models):
                inputs = random_inputs(model.graph, rng)
                got = running.run(inputs, index)
                wanted = reference_outputs(model.graph, inputs)
                for name, want, have in zip(model.graph.outputs, wanted, got, strict=True):
                    np.testing.assert_array_equal(have, want, f"{name} of {model.graph.ops}")


def test_split_networks_over_two_banks_equal_the_unsplit_ones() -> None:
    """Blocks of one operator that lie in different banks have functions of their own."""
    rng = np.random.default_rng(23)
    coarse: list[Graph] = []
    plans: list[Plan] = []
    while len(plans) < 8:
        graph = check(split_graphs.random_network(rng))
        try:
            plan = banked(check(split(graph, split_graphs.random_scheme(graph, rng))), 0.9)
        except CannotSplitError:
            continue
        if plan is not None and len(plan.arena.parts) == 2:
            coarse.append(graph)
            plans.append(plan)
    models = [model_of(plan, f"m{index}") for index, plan in enumerate(plans)]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, graph in enumerate(coarse):
                inputs = random_inputs(graph, rng)
                wanted = reference_outputs(graph, inputs)
                for want, have in zip(wanted, running.run(inputs, index), strict=True):
                    np.testing.assert_array_equal(have, want)


def two_banks() -> tuple[Plan, HostModel]:
    rng = np.random.default_rng(17)
    while True:
        plan = banked(check(random_network(rng)), 0.9)
        if plan is not None and len(plan.arena.parts) == 2:
            return plan, model_of(plan, "net")


def test_a_byte_beyond_what_an_operator_owns_in_its_bank_is_found(tmp_path: Path) -> None:
    _, model = two_banks()
    (offset, size), *others = model.reaches[0]
    short = replace(model, reaches=(((offset, size - 1), *others), *model.reaches[1:]))
    program = build([short], cmsis_nn.find(), tmp_path, sanitize=True)
    with HostProgram(program, [short]) as running, pytest.raises(LinkError, match="poison"):
        running.run(random_inputs(model.graph, np.random.default_rng(1)))


def test_a_state_in_a_bank_of_its_own_stays_from_run_to_run(tmp_path: Path) -> None:
    graph = check(GRAPHS["delay line"])
    plan = next(p for share in (0.6, 0.8, 1.0) if (p := banked(graph, share)) is not None)
    assert len(plan.arena.parts) == 2
    model = model_of(plan, "stream")
    program = build([model], cmsis_nn.find(), tmp_path, sanitize=True)
    rng, memory = np.random.default_rng(1), dict[str, Array]()
    shape = graph.tensors["x"].shape
    with HostProgram(program, [model]) as running:
        for number in range(4):
            inputs = (rng.integers(-128, 128, shape).astype(np.int8),)
            want = interpret(graph, inputs, memory)
            got = running.run(inputs, restart=number == 0)
            for one, other in zip(want, got, strict=True):
                np.testing.assert_array_equal(other, one)


def test_a_part_that_is_missing_or_misaligned_is_an_error(tmp_path: Path) -> None:
    plan, _ = two_banks()
    sources = generate(plan, HOST, cmsis_nn.find(), name="net")
    flags = ["-DNET_STATIC_ARENA"]
    program = compile_with("misplaced_banks.c", [sources], tmp_path, flags)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [*["-1"] * 5, "0"], done.stderr


def test_a_static_arena_has_a_section_for_each_bank(tmp_path: Path) -> None:
    plan, _ = two_banks()
    sources = generate(plan, HOST, cmsis_nn.find(), name="net")
    for name, text in sources.files.items():
        (tmp_path / name).write_text(text)
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-DNET_STATIC_ARENA"]
    tree = cmsis_nn.tree(cmsis_nn.find())
    folders = [f"-I{tmp_path}", "-Iruntime_c/include", "-isystem", str(tree.include)]
    output = tmp_path / "net.o"
    root = Path(__file__).resolve().parents[2]
    command = ["gcc", *flags, *folders, "-c", str(tmp_path / "net.c"), "-o", str(output)]
    subprocess.run(command, check=True, cwd=root)
    listed = subprocess.run(
        ["objdump", "-h", str(output)], capture_output=True, text=True, check=True
    ).stdout
    for part in plan.arena.parts:
        row = next(line for line in listed.splitlines() if f".bss.arena_{part.member}" in line)
        assert int(row.split()[2], 16) >= part.size_bytes
        assert f"NET_ARENA_{part.bank}_BYTES {part.size_bytes}" in sources.files["net.h"]
