"""Options that several subcommands share, spelt once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolchain import arena, schedule
from toolchain.planner import PlanOptions

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="An int8 .tflite file, or a QDQ or QLinear .onnx.")
]
BoardOption = Annotated[
    str, typer.Option("--board", "-b", help="Board name; `thimble boards` lists them.")
]
SchedulerOption = Annotated[
    str,
    typer.Option("--scheduler", help=f"Who orders the operators: {', '.join(schedule.names())}."),
]
AllocatorOption = Annotated[
    str, typer.Option("--allocator", help=f"Who places the tensors: {', '.join(arena.names())}.")
]
CmsisNnOption = Annotated[
    Path | None,
    typer.Option(
        "--cmsis-nn",
        metavar="DIR",
        help="A CMSIS-NN checkout to use; else $CMSIS_NN_DIR, else the pinned copy.",
    ),
]
PortOption = Annotated[
    str | None,
    typer.Option(
        "--port",
        "-p",
        help="Serial port of the board (/dev/ttyACM0, socket://host:port, rfc2217://host:port). "
        "Emulated boards are started when none is named.",
    ),
]


def plan_options(scheduler: str, allocator: str) -> PlanOptions:
    """Raises InputError for an unknown name, before any work is done."""
    schedule.scheduler(scheduler)
    arena.allocator(allocator)
    return PlanOptions(scheduler=scheduler, allocator=allocator)
