"""The predicted cost of one inference of a plan, operator by operator."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.boards import board as find_board
from toolchain.cost import NOTHING, Cost, CostModel
from toolchain.cost.basis import Basis, basis_of_sum, milliseconds
from toolchain.cost.key import Key, copies_key, operator_key
from toolchain.cost.predicted import predicted_model
from toolchain.memory.plan import Plan
from toolchain.ops.moves import moves
from toolchain.report.text import share
from toolchain.report.time import energy_text, time_text


@dataclass(frozen=True)
class Latency:
    """The cost of one inference: `costs` of each graph operator, in `unit`.

    `clock_hz`: of the board; 0 where it has none.
    """

    costs: tuple[Cost, ...]
    unit: str
    clock_hz: int

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(cost.count for cost in self.costs)

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def basis(self) -> Basis:
        """The basis of the total."""
        return basis_of_sum(cost.basis for cost in self.costs if cost.count)

    @property
    def measured_share(self) -> float:
        """The part of the total that was measured or read from a trace, and not predicted."""
        known = sum(cost.count for cost in self.costs if cost.basis is not Basis.PREDICTED)
        return known / self.total if self.total else 0.0

    @property
    def milliseconds(self) -> float | None:
        """Time of the total at the board's clock; None for instructions."""
        return milliseconds(self.total, self.unit, self.clock_hz)


def predict_latency(plan: Plan, model: CostModel | None = None) -> Latency:
    """The cost of one inference on the plan's board, operator by operator."""
    board = find_board(plan.board)
    costs_from = model or predicted_model(board)
    costs = tuple(_cost(plan, number, costs_from) for number in range(len(plan.graph.ops)))
    return Latency(costs, costs_from.unit, board.clock_hz)


def latency_line(plan: Plan, latency: Latency) -> str:
    """MACs, cycles, milliseconds and their basis in one sentence; the shares where it is mixed."""
    text = time_text(latency.total, latency.unit, latency.basis, latency.clock_hz)
    counts = {
        basis: sum(cost.count for cost in latency.costs if cost.basis is basis) for basis in Basis
    }
    known = [
        f"{share(counts[basis], latency.total)} {basis.text}"
        for basis in (Basis.MEASURED, Basis.TRACE)
        if latency.basis is Basis.PREDICTED and counts[basis]
    ]
    shares = f" ({', '.join(known)})" if known else ""
    energy = energy_text(plan.board, latency.total, latency.unit)
    held = " Of a loop one turn is counted, of branches the longer one." if per_turn(plan) else ""
    return f"{plan.macs:,} MACs, {text}{shares}{energy}.{held}"


def per_turn(plan: Plan) -> tuple[str, ...]:
    """Operators whose time depends on data: of loops one turn is counted, of branches the longer
    one.
    """
    return tuple(op.name for op in plan.graph.ops if op.attributes.nested)


def longest_call(latency: Latency) -> int | None:
    """The graph's operator that takes longest, as one call: no step of a run made in steps is
    shorter than that. None where nothing has code.
    """
    counts = latency.counts
    return max(range(len(counts)), key=counts.__getitem__) if any(counts) else None


def step_line(plan: Plan, latency: Latency) -> str:
    """The longest call in one sentence."""
    number = longest_call(latency)
    if number is None:
        return "Nothing has code: a run takes one step."
    op = plan.graph.ops[number]
    time = time_text(
        latency.counts[number], latency.unit, latency.costs[number].basis, latency.clock_hz
    )
    operator = f"a block of {op.part_of!r}" if op.part_of else f"{op.name!r}"
    part = share(latency.counts[number], latency.total)
    return f"Longest step: {op.kind}, {operator}, {time}, {part} of a run."


def _cost(plan: Plan, number: int, costs_from: CostModel) -> Cost:
    """The cost of an operator: nothing if its outputs lie in place, that of copies if it only
    copies."""
    wanted = moves(plan.graph.ops[number], plan.graph, plan.arena)
    if wanted is None:
        return costs_from.cost(plan.lowered, number)
    return costs_from.copies([move.size_bytes for move in wanted]) if wanted else NOTHING


def kernel_keys(plan: Plan) -> tuple[Key | None, ...]:
    """The key under which each operator of the graph is measured; None if it has no code, is copied
    to RAM, or takes a time that depends on data.
    """
    keys: list[Key | None] = []
    for number, op in enumerate(plan.graph.ops):
        wanted = moves(op, plan.graph, plan.arena)
        if wanted is None:
            kernel = plan.lowered.kernels[number]
            known = not (kernel.copied or kernel.nested)
            keys.append(operator_key(plan.lowered, number) if known else None)
        else:
            keys.append(copies_key([move.size_bytes for move in wanted]) if wanted else None)
    return tuple(keys)
