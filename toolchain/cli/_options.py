"""Options that several subcommands share, spelt once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from toolchain import arena, schedule
from toolchain.errors import InputError
from toolchain.partition import DEFAULT_SECONDS, splitters
from toolchain.planning.options import PlanOptions

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
RamOption = Annotated[
    str | None,
    typer.Option(
        "--ram",
        metavar="BYTES",
        help="Split operators until all RAM (arena, data, stack) is at most this: 96K, 1M.",
    ),
]
SlowdownOption = Annotated[
    str | None,
    typer.Option(
        "--max-slowdown",
        metavar="PERCENT",
        help="Split operators for the smallest arena at most this much slower (predicted): 5%.",
    ),
]
SplitterOption = Annotated[
    str,
    typer.Option(
        "--splitter",
        help=f"Who searches for ways to split: {', '.join(splitters.names())}.",
    ),
]
SplitSecondsOption = Annotated[
    float,
    typer.Option(
        "--split-seconds",
        min=0.0,
        help="Most work of that search, in seconds that it takes on one core of a desktop "
        "computer. No clock is read: the plan is the same on every machine. Ctrl-C ends it sooner; "
        "the best found is kept.",
    ),
]
OneBankOption = Annotated[
    bool,
    typer.Option(
        "--one-bank",
        help="Keep the arena in one piece. Else it is spread over RAM banks where none holds "
        "all of it, or a faster one holds some.",
    ),
]
FloatOption = Annotated[
    bool,
    typer.Option(
        "--float",
        help="Run a model that computes in float32 as it is; a warning says what int8 would save. "
        "Islands of float in a quantised model need no leave.",
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace what an earlier run wrote to DIR even where it was changed since, and keep "
        "what was added. Else such a folder is refused.",
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


def plan_options(
    scheduler: str,
    allocator: str,
    ram: str | None = None,
    max_slowdown: str | None = None,
    one_bank: bool = False,
    splitter: str = splitters.DEFAULT,
    split_seconds: float = DEFAULT_SECONDS,
    allow_float: bool = False,
) -> PlanOptions:
    """Raises InputError for an unknown name or an odd number, before any work is done."""
    schedule.scheduler(scheduler)
    arena.allocator(allocator)
    splitters.splitter(splitter)
    return PlanOptions(
        scheduler=scheduler,
        allocator=allocator,
        ram_bytes=None if ram is None else _bytes(ram),
        max_slowdown=None if max_slowdown is None else _fraction(max_slowdown),
        one_bank=one_bank,
        allow_float=allow_float,
        splitter=splitter,
        split_seconds=split_seconds,
    )


def _bytes(text: str) -> int:
    """`98304`, `96K` or `96KB` or `96KiB`, `1M`: K is 1024 bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KM]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InputError(f"--ram {text!r} is no amount of memory; write it as 98304 or 96K")
    return int(float(match[1]) * {"": 1, "K": 1024, "M": 1024**2}[match[2].upper()])


def _fraction(text: str) -> float:
    """`5%` or `5`: five hundredths."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%?", text.strip())
    if match is None:
        raise InputError(f"--max-slowdown {text!r} is no percentage; write it as 5%")
    return float(match[1]) / 100
