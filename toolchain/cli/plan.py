"""`thimble plan`: memory and operators of a model, without generating any file."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from toolchain import arena, schedule
from toolchain.boards import board as find_board
from toolchain.cli._console import output_console, progress, warn_of_float, warn_of_host_side
from toolchain.cli._json import JsonOption, write_json, write_text
from toolchain.cli._options import (
    FULL,
    AllocatorOption,
    BoardOption,
    ChoiceOption,
    EffortOption,
    FlashOption,
    FloatOption,
    KeepChannelsOption,
    KernelsOption,
    ModelArgument,
    NoSplitOption,
    OneBankOption,
    OptimiseOption,
    RamOption,
    SchedulerOption,
    SlowdownOption,
    SplitSecondsOption,
    SplitterOption,
    plan_options,
)
from toolchain.deployment.measurements import cost_model
from toolchain.memory.firmware_size import check_fit, estimated_need
from toolchain.ops.preference import Preference
from toolchain.partition import splitters
from toolchain.planner import DEFAULT_BOARD, plan_choices, plan_model
from toolchain.planning.options import Optimise
from toolchain.planning.splitting import front_rows
from toolchain.quantise.float_use import float_json
from toolchain.report.front import front_json, front_table
from toolchain.report.fronts import format_of
from toolchain.report.fronts import names as format_names
from toolchain.report.latency import latency_line, predict_latency
from toolchain.report.operators import operator_table
from toolchain.report.plan import (
    copied_lines,
    kernel_lines,
    memory_table,
    plan_json,
    proof_line,
    removed_lines,
    spent_lines,
    split_lines,
)


def command(
    model: ModelArgument,
    board: BoardOption = DEFAULT_BOARD,
    scheduler: SchedulerOption = schedule.DEFAULT,
    allocator: AllocatorOption = arena.DEFAULT,
    ram: RamOption = None,
    flash: FlashOption = None,
    optimise: OptimiseOption = Optimise.BALANCED,
    max_slowdown: SlowdownOption = None,
    splitter: SplitterOption = splitters.DEFAULT,
    no_split: NoSplitOption = False,
    effort: EffortOption = FULL,
    choice: ChoiceOption = None,
    split_seconds: SplitSecondsOption = None,
    one_bank: OneBankOption = False,
    allow_float: FloatOption = False,
    kernels: KernelsOption = Preference.AUTO,
    keep_dead_channels: KeepChannelsOption = False,
    pareto: Annotated[
        bool,
        typer.Option(
            "--pareto", help="List ways to split operators: RAM against slowdown in cycles."
        ),
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            metavar="FILE|-",
            help="Write that to a file, too; its ending is the format: "
            f"{', '.join(format_names())} (svg for -).",
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Show whether a model fits, its memory, its peak, and an operator table. Generates no files.

    Code size is an estimate here. Latency is in cycles, and milliseconds at the board's clock:
    predicted by formula for operators of which `thimble cost` has neither a measurement nor one
    modelled from a trace. `--pareto` adds what there is to choose from by splitting operators
    and by spending flash; `compile --choice` takes a row of it. Exits 1 if the model does not fit
    the board.

    Example: `thimble plan model.tflite --board nucleo-l476rg`
    """
    options = plan_options(
        scheduler,
        allocator,
        ram,
        max_slowdown,
        one_bank,
        splitter,
        split_seconds,
        allow_float,
        kernels,
        keep_dead_channels,
        flash=flash,
        optimise=optimise,
        no_split=no_split,
        effort=effort,
        choice=choice,
    )
    target = find_board(board)
    written = format_of(plot) if plot else None
    begin = time.perf_counter()
    with progress() as step:
        costs = cost_model(board)
        plan = plan_model(model, board, options, step, costs)
        latency = predict_latency(plan, costs)
        found = None
        if pareto or written:
            found = plan_choices(model, board, options, step, costs)
            rows, first = found.rows(plan) if pareto else ((), latency)
        seconds = time.perf_counter() - begin
    need = estimated_need(plan)
    left = warn_of_host_side(model)
    if json:
        fields = plan_json(plan, need, latency)
        if found and pareto:
            fields = {
                **fields,
                "pareto": front_json(rows, first),
                "search_stopped": found.front.stopped,
            }
        write_json(json, {**fields, **float_json(plan), **left, "seconds": seconds})
    warn_of_float(plan)
    if found and plot and written:
        title = f"{plan.graph.name} on {board}: RAM against slowdown in {latency.unit}"
        write_text(plot, written(front_rows(found.front), title))
    if "-" not in (json, plot):
        console = output_console()
        console.print(operator_table(plan, latency))
        if found and pareto:
            title = (
                f"{plan.graph.name} on {board}: choices, {latency.unit} predicted; "
                "--choice takes a row; -: this plan"
            )
            console.print(front_table(rows, title, first))
            if stopped := found.front.stopped:
                console.print(f"The search was stopped {stopped}: these were found by then.")
        console.print(memory_table(plan, need, target.ram_bytes, target.flash_bytes))
        console.print(proof_line(plan))
        for line in (
            *split_lines(plan),
            *spent_lines(plan),
            *copied_lines(plan),
            *removed_lines(plan),
            *kernel_lines(plan),
        ):
            console.print(line, markup=False)
        console.print(latency_line(plan, latency), markup=False, highlight=False)
    check_fit(plan)
