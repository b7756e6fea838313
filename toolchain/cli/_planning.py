"""The output of `thimble plan`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.cli._console import note_kept, output_console, progress, warn_of_plan
from toolchain.cli._fits import fits_json, print_fits
from toolchain.cli._output import Output, write_json, write_text
from toolchain.deployment.fitting import FEW, fits
from toolchain.deployment.measurements import cost_model
from toolchain.errors import DoesNotFitError, InputError, UnsupportedError
from toolchain.memory.firmware_size import MemoryNeed, check_fit, estimated_need
from toolchain.memory.plan import Plan
from toolchain.planner import plan_choices
from toolchain.planning.options import PlanOptions
from toolchain.quantise.float_use import float_json
from toolchain.report.code import code_table
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
    *,
    blocks: bool = False,
) -> None:
    """Plan, and write what was asked for. Raises DoesNotFitError and GateError after that."""
    if not board:
        wanted = {
            "--pareto": pareto,
            "--plot": plot,
            "--choice": options.choice,
            "--fail-on": output.fail_on,
        }
        for name, value in wanted.items():
            if value:
                raise InputError(f"{name} is of one board: name it with --board")
        _show_few(model, options, output.json)
        return
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
    note_kept(board)
    if plot and written:
        title = f"{plan.graph.name} on {board}: RAM against slowdown in {latency.unit}"
        write_text(plot, written(rows, title))
    if output.has_tables and plot != "-":
        console = output_console()
        console.print(operator_table(plan, latency, blocks=blocks))
        if pareto:
            title = (
                f"{plan.graph.name} on {board}: choices, {latency.unit} predicted; "
                "--choice takes a row"
            )
            console.print(front_table(rows, title))
            if stopped := plan.search_stopped:
                console.print(f"The search was stopped {stopped}: these were found by then.")
        print_memory(plan, need, target, latency)
        if not target.is_host:
            console.print(code_table(plan))
    check_fit(plan)
    check(conditions, fields)


def _show_few(model: Path, options: PlanOptions, json: str | None) -> None:
    """Plan for a few boards, side by side. Raises DoesNotFitError where none holds the model."""
    begin = time.perf_counter()
    with progress() as step:
        results = fits(model, [find_board(name) for name in FEW], options, step)
    first = results[0]
    if isinstance(first.error, UnsupportedError):
        raise first.error
    if first.plan is not None:
        warn_of_plan(first.plan)
    if json:
        fields: dict[str, Any] = {"model": model.stem}
        if first.plan is not None and first.need is not None and first.latency is not None:
            fields = plan_json(first.plan, first.need, first.latency) | float_json(first.plan)
        seconds = time.perf_counter() - begin
        write_json(json, {**fields, "boards": fits_json(results), "seconds": seconds})
    if json != "-":
        print_fits(results, model.name)
        output_console().say(
            "--board NAME plans for one in detail; `thimble boards --for MODEL` shows all."
        )
    if first.error is not None:
        names = ", ".join(fit.board.name for fit in results)
        raise DoesNotFitError(
            f"{model.name} fits none of {names}",
            remedies=[f"a larger board (`thimble boards --for {model}`)", "a smaller model"],
            overflows=first.error.overflows,
        )
