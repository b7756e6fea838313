"""Latency in plans: cycles, milliseconds and their basis, as JSON, table and sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from rich.console import Console

from tests.support.graphs import skip_network
from toolchain.boards import board
from toolchain.cost import Cost
from toolchain.cost.basis import Basis
from toolchain.memory.firmware_size import estimated_need
from toolchain.memory.plan import Plan
from toolchain.ops.lowering import Lowered
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.report.latency import latency_line, predict_latency, step_line
from toolchain.report.operators import operator_table
from toolchain.report.plan import plan_json

BOARD = board("nucleo-f446re")
MEASURED, TRACE, PREDICTED = Basis.MEASURED, Basis.TRACE, Basis.PREDICTED


@dataclass(frozen=True)
class Known:
    """Operator i costs 18,000 * (i + 1), on the i-th basis."""

    bases: tuple[Basis, ...]
    unit: str = "cycles"

    def cost(self, lowered: Lowered, number: int) -> Cost:
        return Cost(18_000 * (number + 1), self.bases[number % len(self.bases)])

    def copies(self, sizes: Sequence[int]) -> Cost:
        raise AssertionError("this network copies nothing")


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_graph(skip_network(), BOARD, PlanOptions().unsplit)


@pytest.mark.parametrize(
    ("bases", "basis"),
    [
        ((MEASURED,), MEASURED),
        ((TRACE,), TRACE),
        ((PREDICTED,), PREDICTED),
        ((TRACE, PREDICTED), PREDICTED),
    ],
)
def test_json_and_sentence_say_the_basis(
    plan: Plan, bases: tuple[Basis, ...], basis: Basis
) -> None:
    latency = predict_latency(plan, Known(bases))
    total = sum(18_000 * (i + 1) for i in range(len(plan.graph.ops)))
    found = plan_json(plan, estimated_need(plan), latency)["latency"]
    known = sum(c.count for c in latency.costs if c.basis is not PREDICTED)
    assert found == {
        "total": total,
        "unit": "cycles",
        "measured_share": known / total,
        "milliseconds": total / 180_000,
        "estimated_microjoules": None,
        "basis": basis.value,
    }
    line = latency_line(plan, latency)
    time = f"{total:,} cycles ({total / 180_000:.3f} ms at 180 MHz), {basis.text}"
    assert time in line
    mixed = len(bases) > 1
    assert (f"({known / total:.1%} modelled from a trace)." in line) == mixed


def test_operators_carry_counts_in_running_order(plan: Plan) -> None:
    latency = predict_latency(plan, Known((TRACE, PREDICTED)))
    operators = plan_json(plan, estimated_need(plan), latency)["operators"]
    for entry, index in zip(operators, plan.schedule.order, strict=True):
        assert entry["count"] == 18_000 * (index + 1)
        assert entry["basis"] == ("predicted" if index % 2 else "trace")


def test_the_table_marks_the_basis(plan: Plan) -> None:
    console = Console(width=160)
    with console.capture() as capture:
        console.print(operator_table(plan, predict_latency(plan, Known((TRACE, PREDICTED)))))
    said = " ".join(capture.get().split())
    assert "cycles" in said and " ms " in said
    assert "*18,000 0.100" in said and "~36,000 0.200" in said
    assert "* modelled from a trace, ~ predicted" in said


def test_instructions_have_no_time(plan: Plan) -> None:
    latency = predict_latency(plan, Known((PREDICTED,), "instructions"))
    assert plan_json(plan, estimated_need(plan), latency)["latency"]["milliseconds"] is None
    console = Console(width=160)
    with console.capture() as capture:
        console.print(operator_table(plan, latency))
    assert "instructions" in capture.get() and " ms " not in capture.get()
    assert "ms at" not in latency_line(plan, latency)


def test_the_longest_call_is_named(plan: Plan) -> None:
    latency = predict_latency(plan, Known((TRACE,)))
    last = len(plan.graph.ops)
    found = plan_json(plan, estimated_need(plan), latency)["longest_step"]
    op = plan.graph.ops[-1]
    assert found == {"operator": op.name, "kind": op.kind, "count": 18_000 * last}
    line = step_line(plan, latency)
    assert f"'{op.name}', {18_000 * last:,} cycles ({last / 10:.3f} ms at 180 MHz)" in line
