"""`thimble plan`: memory and operators of a model, without generating anything."""

from __future__ import annotations

import time

from toolchain import arena, schedule
from toolchain.boards import board as find_board
from toolchain.cli._console import output_console, progress
from toolchain.cli._json import JsonOption, write_json
from toolchain.cli._options import (
    AllocatorOption,
    BoardOption,
    ModelArgument,
    SchedulerOption,
    plan_options,
)
from toolchain.cost.size import code_estimate_bytes, firmware_data_bytes, weight_bytes
from toolchain.planner import DEFAULT_BOARD, check_fit, plan_model, predict_latency
from toolchain.report.operators import operator_table
from toolchain.report.plan import memory_table, plan_json, proof_line


def command(
    model: ModelArgument,
    board: BoardOption = DEFAULT_BOARD,
    scheduler: SchedulerOption = schedule.DEFAULT,
    allocator: AllocatorOption = arena.DEFAULT,
    json: JsonOption = None,
) -> None:
    """Does it fit, and where is the peak? Memory and an operator table, nothing is generated.

    Code size and latency are estimates here; `thimble compile` and `thimble verify` measure
    them. Exits 1 if the model does not fit the board.

    Example: `thimble plan model.tflite --board nucleo-l476rg`
    """
    options = plan_options(scheduler, allocator)
    target = find_board(board)
    begin = time.perf_counter()
    with progress() as step:
        plan = plan_model(model, board, options, step)
        latency = predict_latency(plan)
    ram_bytes = plan.arena.size_bytes + firmware_data_bytes(plan)
    code_bytes = code_estimate_bytes(plan)
    flash_bytes = code_bytes + weight_bytes(plan)
    if json:
        write_json(
            json,
            plan_json(
                plan,
                ram_bytes=ram_bytes,
                flash_bytes=flash_bytes,
                code_bytes=code_bytes,
                latency_total=latency.total,
                latency_unit=latency.unit,
                measured_share=latency.measured_share,
                seconds=time.perf_counter() - begin,
            ),
        )
    if json != "-":
        console = output_console()
        console.print(operator_table(plan, latency.counts, f"~{latency.unit}"))
        console.print(
            memory_table(
                plan,
                {
                    "arena": (plan.arena.size_bytes, 0),
                    "RAM": (ram_bytes, target.ram_bytes),
                    "flash": (flash_bytes, target.flash_bytes),
                },
                {
                    "RAM": "arena + data + stack, estimated",
                    "flash": "weights + code, estimated",
                },
            )
        )
        console.print(proof_line(plan))
        console.print(
            f"{plan.macs:,} MACs, about {latency.total:,} {latency.unit} "
            f"({latency.measured_share:.0%} measured)."
        )
    check_fit(plan)
