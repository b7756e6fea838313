"""Which convolutions Winograd's algorithm computes: by cycles, within flash and the arena."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.support.winograd import chain
from toolchain.boards import board
from toolchain.boards.memory import MemoryKind
from toolchain.errors import DoesNotFitError, InputError
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.memory.firmware_size import estimated_need, ram_bytes
from toolchain.memory.plan import Plan
from toolchain.ops.unary.relu import Relu
from toolchain.planner import candidates, plan_graph
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.report.latency import predict_latency
from toolchain.report.plan import spent_lines

DSP = ("nucleo-l4r5zi", "nucleo-h743zi", "mps2-an505")


@cache
def _graph() -> Graph:
    return chain(16, (8, 48, 16, 16, 16), np.random.default_rng(2))


@cache
def _plan(name: str, **given: object) -> Plan:
    options = PlanOptions(copy_constants=False, **given)  # type: ignore[arg-type]
    return plan_graph(_graph(), board(name), options)


def _lean(name: str) -> Plan:
    return _plan(name, optimise=Optimise.SIZE, nearly_free=False)


def _cycles(plan: Plan) -> int:
    return predict_latency(plan).total


def _transformed(plan: Plan) -> int:
    return sum("winograd" in kernel.name for kernel in plan.lowered.kernels)


@pytest.mark.slow
@pytest.mark.parametrize("name", DSP)
def test_flash_is_spent_where_it_saves_time(name: str) -> None:
    lean, quick = _lean(name), _plan(name)
    assert _transformed(lean) == 0 and _transformed(quick) > 0
    assert _cycles(quick) < 0.9 * _cycles(lean)
    assert lean.weight_bytes < quick.weight_bytes
    same = _plan(name, ram_bytes=ram_bytes(lean))
    assert ram_bytes(same) <= ram_bytes(lean) and _cycles(same) < 0.9 * _cycles(lean)
    fastest = _plan(name, optimise=Optimise.SPEED)
    assert _cycles(fastest) < 0.7 * _cycles(lean)
    assert _cycles(fastest) <= _cycles(quick)
    spent = fastest.spent
    assert spent.operators == 4 and spent.weight_bytes == fastest.weight_bytes - lean.weight_bytes
    assert _cycles(fastest) < spent.before <= _cycles(lean)  # whose arena has less room
    assert spent.before - spent.saved == _cycles(fastest)
    assert "4 convolutions by Winograd's algorithm" in spent_lines(fastest)[0]
    assert spent_lines(lean) == ()


def test_more_flash_never_costs_time() -> None:
    """Of plans that one search gives."""
    lean = _lean("nucleo-l4r5zi")
    least = estimated_need(lean).flash_bytes
    before = _cycles(lean)
    options = PlanOptions(copy_constants=False, optimise=Optimise.SPEED)
    found = candidates(_graph(), board("nucleo-l4r5zi"), options)
    for more in (0, 8, 16, 32, 64, 128, 256):
        budget = least + 1024 * more
        plan = found.asking(replace(options, flash_bytes=budget)).asked()
        assert estimated_need(plan).flash_bytes <= budget
        assert _cycles(plan) <= before
        before = _cycles(plan)
    assert before == _cycles(_plan("nucleo-l4r5zi", optimise=Optimise.SPEED))


def test_too_little_flash_is_refused_with_what_is_needed() -> None:
    least = estimated_need(_lean("nucleo-l4r5zi")).flash_bytes
    with pytest.raises(DoesNotFitError, match=f"at least {least:,} bytes") as error:
        plan_graph(_graph(), board("nucleo-l4r5zi"), PlanOptions(flash_bytes=least - 1))
    assert f"--flash {-(-least // 1024)}K" in str(error.value)
    with pytest.raises(InputError, match="balanced, speed, size"):
        PlanOptions(optimise="tiny")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.9, 0.8])
def test_less_ram_keeps_what_fits(share: float) -> None:
    lean = _lean("nucleo-l4r5zi")
    limit = int(ram_bytes(lean) * share)
    plan = _plan("nucleo-l4r5zi", ram_bytes=limit, split_seconds=1.0)
    other = _plan("nucleo-l4r5zi", ram_bytes=limit, split_seconds=1.0, optimise=Optimise.SIZE)
    assert ram_bytes(plan) <= limit
    assert _cycles(plan) <= _cycles(other)
    assert _transformed(plan) > 0


def test_operators_without_scratch_have_a_plan() -> None:
    x = Tensor("x", (1, 4), DType.INT8, Quantisation((0.1,), (0,)))
    y = replace(x, name="y")
    graph = Graph.build("relu", [x, y], [Op("relu", "relu", ("x",), ("y",), Relu())], ["x"], ["y"])
    assert plan_graph(graph, board("nucleo-l4r5zi")).arena.scratch_offsets == {}


@pytest.mark.slow
def test_plans_repeat() -> None:
    again = plan_graph(_graph(), board("nucleo-l4r5zi"))
    plan = _plan("nucleo-l4r5zi")
    assert again.arena == plan.arena
    assert [k.title for k in again.lowered.kernels] == [k.title for k in plan.lowered.kernels]


@pytest.mark.parametrize("name", ["host", "mps3-an547"])
def test_other_cores_keep_their_kernels(name: str) -> None:
    assert _transformed(_plan(name)) == 0


def test_a_small_chip_keeps_room_for_its_firmware() -> None:
    target = board("nucleo-l4r5zi")
    need = estimated_need(_lean(target.name)).flash_bytes
    small = tuple(
        replace(m, size_bytes=need + 4096) if m.kind is MemoryKind.FLASH else m
        for m in target.memories
    )
    assert _transformed(plan_graph(_graph(), replace(target, memories=small))) == 0
