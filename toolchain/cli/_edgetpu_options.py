"""Options of `thimble edgetpu`, and what they say together."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from toolchain.cli import _completion as completion
from toolchain.cli._options import per_cent
from toolchain.edgetpu.model.cost import EdgeTpuCost, HostCost
from toolchain.edgetpu.model.figures import BALANCES
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.run.backends import BACKENDS
from toolchain.edgetpu.run.profile import read_profile
from toolchain.errors import InputError

Models = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL",
        help="Int8 .tflite files (or, to plan only, neutral graph summaries). Several are planned "
        "together, on the same sticks.",
        autocompletion=completion.models,
    ),
]
Stages = Annotated[
    str, typer.Option("--stages", "--devices", "-n", help="Number of sticks, or `auto`.")
]
MaxSticks = Annotated[
    int, typer.Option("--max-sticks", min=1, max=64, help="Most sticks that `--stages auto` tries.")
]
Objective = Annotated[
    str,
    typer.Option(
        "--objective",
        help="`period` (predicted time between results), or a list of `params`, `spill`, `comm` in "
        "order of priority; or a baseline: `greedy` (Edge TPU Compiler), `contiguous`.",
    ),
]
RateObjective = Annotated[
    str | None,
    typer.Option(
        "--objective",
        help="`period` (predicted time between results; the default), or a list of `params`, "
        "`spill`, `comm` in order of priority; or a baseline: `greedy` (Edge TPU Compiler), "
        "`contiguous`. With --rate: `mean` latency (the default) or `worst`, the largest 99th "
        "percentile of a model.",
    ),
]
BalanceBy = Annotated[
    str,
    typer.Option(
        "--balance-by", help=f"Parameter bytes as in the file, or compiled: {', '.join(BALANCES)}."
    ),
]
Slack = Annotated[
    str,
    typer.Option(
        metavar="PERCENT",
        help="How much each objective may worsen for the next: 5% or 5; below 1 with its sign, "
        "0.5%.",
    ),
]
Together = Annotated[
    bool,
    typer.Option(
        "--same-stage-children", help="Keep the readers of a tensor in one stage; costs balance."
    ),
]
CacheMib = Annotated[
    float, typer.Option("--cache-mib", min=0.0, max=1024.0, help="Parameter cache of a stick, MiB.")
]
Seconds = Annotated[
    float,
    typer.Option(
        min=0.1,
        help="Work limit of the solver for each objective, in seconds that it takes on one core of "
        "a desktop computer. No clock is read: the plan is the same on every machine.",
    ),
]
HostSpeed = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="GMACS|FILE",
        help="Let the processor beside the sticks run one stage, where that is faster: its speed, "
        "10^9 products a second on one core, or a profile that `profile --backend cpu --fast` "
        "measured.",
    ),
]
ProfileFile = Annotated[
    Path | None,
    typer.Option(
        "--profile", metavar="FILE", help="Measured times, from `thimble edgetpu profile`."
    ),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of `thimble edgetpu split`.")]
Backend = Annotated[str, typer.Option(help=f"What runs the stages: {', '.join(BACKENDS)}.")]
Device = Annotated[
    str | None,
    typer.Option(metavar="LIST", help="The stick of each stage: usb:0,usb:1,... or pci:0,..."),
]
Inputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="FILE",
        help=".npy with one frame, or one in each row; once per input. Default: random frames.",
    ),
]
DEFAULT_CACHE_MIB = 7.7
_LEAST_GMACS, _MOST_GMACS = 0.001, 100_000


class Emit(StrEnum):
    """The languages of `--emit`."""

    C = "c"


_MOST_SLACK = 10.0


def options_of(
    objective: str,
    balance_by: str,
    slack: str,
    together: bool,
    cache_mib: float,
    seconds: float,
    profile: Path | None,
    host: str | None,
) -> Options:
    """Raises InputError for an unknown name."""
    if balance_by not in BALANCES:
        raise InputError(f"--balance-by {balance_by}: there are {', '.join(BALANCES)}")
    times = None
    cost = EdgeTpuCost()
    if profile is not None:
        measured = read_profile(profile)
        times, cost = measured.times_ms, measured.cost
    if profile is None or cache_mib != DEFAULT_CACHE_MIB:
        cost = replace(cost, cache_bytes=int(cache_mib * (1 << 20)))
    share = per_cent(slack, "--slack")
    if share > _MOST_SLACK:
        raise InputError(f"--slack {slack}: at most {_MOST_SLACK:.0%}")
    beside = None if host is None else _host(host)
    if beside is not None and together:
        raise InputError("--host and --same-stage-children: give one of them")
    return Options(objective, balance_by, cost, share, together, seconds, times, beside)


def _host(text: str) -> HostCost:
    """The host by its speed, or as measured. Raises InputError for what is neither."""
    try:
        speed = float(text)
    except ValueError:
        measured = read_profile(Path(text))
        if measured.backend != "cpu":
            raise InputError(
                f"--host {text}: measured on {measured.backend}; use `thimble edgetpu profile DIR "
                "--backend cpu --fast`"
            ) from None
        return HostCost(times_ms=measured.times_ms)
    if not _LEAST_GMACS <= speed <= _MOST_GMACS:
        raise InputError(
            f"--host {text}: a speed of {_LEAST_GMACS} to {_MOST_GMACS:,} (10^9 products a second)"
        )
    return HostCost(macs_per_ms=speed * 1e6)
