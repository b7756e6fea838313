"""The output of `thimble plan`."""

from __future__ import annotations

import time
from pathlib import Path

from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.cli._console import output_console, progress, warn_of_plan
from toolchain.cli._output import Output, write_json, write_text
from toolchain.deployment.measurements import cost_model
from toolchain.memory.firmware_size import MemoryNeed, check_fit, estimated_need
from toolchain.memory.plan import Plan
from toolchain.planner import plan_choices
from toolchain.planning.options import PlanOptions
from toolchain.quantise.float_use import float_json
from toolchain.report.front import front_json, front_table
from toolchain.report.fronts import format_of
from toolchain.report.gates import check, gates
from toolchain.report.latency import Latency, latency_line, predict_latency, step_line
from toolchain.report.operators import operator_table
from toolchain.report.plan import (
    copied_lines,
    kernel_lines,
    memory_table,
    plan_json,
    proof_line,
    removed_lines,
    rows_lines,
    spent_lines,
    split_lines,
)


def print_memory(
    plan: Plan, need: MemoryNeed, board: Board, latency: Latency, held_bytes: int = 0
) -> None:
    """Print the memory that a plan takes of a board, what was chosen, and the latency.

    `held_bytes`: the copy of an input that arrives by rows which the linked firmware keeps.
    """
    console = output_console()
    console.print(memory_table(plan, need, board.ram_bytes, board.flash_bytes))
    console.print(proof_line(plan))
    for line in (
        *split_lines(plan),
        *rows_lines(plan, held_bytes),
        *spent_lines(plan),
        *copied_lines(plan),
        *removed_lines(plan),
        *kernel_lines(plan),
    ):
        console.print(line, markup=False)
    for line in (latency_line(plan, latency), step_line(plan, latency)):
        console.say(line)


def show_plan(
    model: Path,
    board: str,
    options: PlanOptions,
    pareto: bool,
    plot: str | None,
    output: Output,
) -> None:
    """Plan, and write what was asked for. Raises DoesNotFitError and GateError after that."""
    conditions, target = gates(output.fail_on), find_board(board)
    written = format_of(plot) if plot else None
    begin = time.perf_counter()
    with progress() as step:
        costs = cost_model(board)
        choices = plan_choices(model, board, options, step, costs)
        plan = choices.asked
        latency = predict_latency(plan, costs)
        rows = choices.rows() if pareto or written else ()
        seconds = time.perf_counter() - begin
    need = estimated_need(plan)
    fields = plan_json(plan, need, latency)
    if output.json:
        if pareto:
            fields = {
                **fields,
                "pareto": front_json(rows),
                "search_stopped": plan.search_stopped,
            }
        write_json(output.json, {**fields, **float_json(plan), "seconds": seconds})
    warn_of_plan(plan)
    if plot and written:
        title = f"{plan.graph.name} on {board}: RAM against slowdown in {latency.unit}"
        write_text(plot, written(rows, title))
    if output.has_tables and plot != "-":
        console = output_console()
        console.print(operator_table(plan, latency))
        if pareto:
            title = (
                f"{plan.graph.name} on {board}: choices, {latency.unit} predicted; "
                "--choice takes a row"
            )
            console.print(front_table(rows, title))
            if stopped := plan.search_stopped:
                console.print(f"The search was stopped {stopped}: these were found by then.")
        print_memory(plan, need, target, latency)
    check_fit(plan)
    check(conditions, fields)
