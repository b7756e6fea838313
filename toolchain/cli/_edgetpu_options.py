"""Options of `thimble edgetpu`, and what they say together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from toolchain.cli import _completion as completion
from toolchain.edgetpu.model.cost import EdgeTpuCost, HostCost
from toolchain.edgetpu.model.figures import BALANCES
from toolchain.edgetpu.pipeline import Runner, open_runner
from toolchain.edgetpu.plan import demand as objectives
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.run.backends import BACKENDS
from toolchain.edgetpu.run.folder import PipelineFolder
from toolchain.edgetpu.run.profile import read_profile
from toolchain.edgetpu.run.simulate import Arrivals
from toolchain.errors import InputError
from toolchain.planning.option import per_cent

_CACHE_MIB = 7.7
_LEAST_GMACS, _MOST_GMACS = 0.001, 100_000
_MOST_SLACK = 10.0
_MOST_STICKS = 64
Models = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL",
        help="Int8 .tflite files (or, to plan only, neutral graph summaries). Several are planned "
        "together, on the same sticks.",
        autocompletion=completion.models,
    ),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of `thimble edgetpu split`.")]
ArrivalsOption = Annotated[
    Arrivals,
    typer.Option(
        "--arrivals",
        help="With rates, in a simulation or a run: requests at random (`poisson`), or one every "
        "period.",
    ),
]


class Emit(StrEnum):
    """The languages of `--emit`."""

    C = "c"


class Place(StrEnum):
    """The stages that a microcontroller may have."""

    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True)
class PipelineOptions:
    """Options by which `plan` and `split` plan a pipeline."""

    stages: Annotated[
        str, typer.Option("--stages", "--devices", "-n", help="Number of sticks, or `auto`.")
    ] = "auto"
    max_sticks: Annotated[
        int,
        typer.Option(
            "--max-sticks", min=1, max=_MOST_STICKS, help="Most sticks that `--stages auto` tries."
        ),
    ] = 8
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            help="`period` (predicted time between results; the default), or a list of `params`, "
            "`spill`, `comm` in order of priority; or a baseline: `greedy` (Edge TPU Compiler), "
            "`contiguous`. With --rate: `mean` latency (the default) or `worst`, the largest 99th "
            "percentile of a model.",
        ),
    ] = None
    balance_by: Annotated[
        str,
        typer.Option(
            "--balance-by",
            help=f"Parameter bytes as in the file, or compiled: {', '.join(BALANCES)}.",
        ),
    ] = "file"
    slack: Annotated[
        str,
        typer.Option(
            metavar="PERCENT",
            help="How much each objective may worsen for the next: 5% or 5; below 1 with its sign, "
            "0.5%.",
        ),
    ] = "0%"
    same_stage_children: Annotated[
        bool,
        typer.Option(
            "--same-stage-children",
            help="Keep the readers of a tensor in one stage; costs balance.",
        ),
    ] = False
    cache_mib: Annotated[
        float,
        typer.Option("--cache-mib", min=0.0, max=1024.0, help="Parameter cache of a stick, MiB."),
    ] = _CACHE_MIB
    seconds: Annotated[
        float,
        typer.Option(
            min=0.1,
            help="Work limit of the solver for each objective, in seconds that it takes on one "
            "core of a desktop computer. No clock is read: the plan is the same on every machine.",
        ),
    ] = 60.0
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile", metavar="FILE", help="Measured times, from `thimble edgetpu profile`."
        ),
    ] = None
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="GMACS|FILE",
            help="Let the processor beside the sticks run one stage, where that is faster: its "
            "speed, 10^9 products a second on one core, or a profile that `profile --backend cpu "
            "--fast` measured.",
        ),
    ] = None
    mcu: Annotated[
        str | None,
        typer.Option(
            "--mcu",
            metavar="BOARD",
            help="Let a microcontroller run the first or the last stage, where that shortens the "
            "period, with firmware of its own; -n is then a number of sticks, or 0.",
            autocompletion=completion.boards,
        ),
    ] = None
    link: Annotated[
        str | None,
        typer.Option(
            "--link",
            metavar="SPEED",
            help="Speed of the line to the microcontroller: 1MB/s, 90kB/s, 921600baud. "
            "Default: the baud rate of the board's UART, ten bits a byte.",
        ),
    ] = None
    mcu_stage: Annotated[
        Place | None,
        typer.Option(
            "--mcu-stage",
            help="The microcontroller has this stage, even where the period gets longer.",
        ),
    ] = None
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="LIST",
            help="Requests a second of each model, by name: a=15,b=30 (one number: of every "
            "model). The plan then minimises latency under a queueing model; --objective is "
            "`mean` (default) or `worst`.",
        ),
    ] = None
    deadline: Annotated[
        str | None,
        typer.Option(
            "--deadline",
            metavar="LIST",
            help="With --rate: the time in which 99% of a model's requests must be done: "
            "a=100ms,b=50ms.",
        ),
    ] = None

    @property
    def goal(self) -> str:
        """The objective that is asked for, or the one that is usual."""
        usual = objectives.DEFAULT if self.rate is None else objectives.RATE_OBJECTIVES[0]
        return self.objective or usual

    def sticks(self) -> int | None:
        """The number of sticks that `--stages` says; None where it says `auto`.

        Raises InputError for any other text, and with `--rate` for more than _MOST_STICKS.
        """
        if self.stages == "auto":
            return None
        count = int(self.stages) if self.stages.isdecimal() else 0
        if count < 1 or (self.rate is not None and count > _MOST_STICKS):
            raise InputError(f"--stages {self.stages}: a number of sticks, or auto")
        return count

    def check(self) -> None:
        """Check the options. Raises InputError for options that need another, or exclude each
        other."""
        if self.mcu is None and (self.link is not None or self.mcu_stage is not None):
            raise InputError(
                "--link and --mcu-stage are of a microcontroller: give --mcu BOARD, too"
            )
        if self.mcu is not None and self.rate is not None:
            raise InputError("--mcu and --rate: give one of them")
        if self.deadline is not None and self.rate is None:
            raise InputError("--deadline: give the rates of requests, too, as --rate 10")

    def options(self) -> Options:
        """How to plan. Raises InputError for an unknown name, or a profile that cannot be read."""
        if self.balance_by not in BALANCES:
            raise InputError(f"--balance-by {self.balance_by}: there are {', '.join(BALANCES)}")
        times = None
        cost = EdgeTpuCost()
        if self.profile is not None:
            measured = read_profile(self.profile)
            times, cost = measured.times_ms, measured.cost
        if self.profile is None or self.cache_mib != _CACHE_MIB:
            cost = replace(cost, cache_bytes=int(self.cache_mib * (1 << 20)))
        share = per_cent(self.slack, "--slack")
        if share > _MOST_SLACK:
            raise InputError(f"--slack {self.slack}: at most {_MOST_SLACK:.0%}")
        beside = None if self.host is None else _host(self.host)
        together = self.same_stage_children
        if beside is not None and together:
            raise InputError("--host and --same-stage-children: give one of them")
        return Options(
            self.goal, self.balance_by, cost, share, together, self.seconds, times, beside
        )


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


@dataclass(frozen=True)
class FrameOptions:
    """Frames that run through a pipeline."""

    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE",
            help=".npy with one frame, or one in each row; once per input. Default: random frames.",
        ),
    ] = None
    frames: Annotated[int, typer.Option(min=1, help="Number of random frames.")] = 32
    seed: Annotated[int, typer.Option(help="Seed of the random frames.")] = 0


@dataclass(frozen=True)
class RunnerOptions:
    """Options of the runner of the stages."""

    backend: Annotated[str, typer.Option(help=f"Runner of the stages: {', '.join(BACKENDS)}.")] = (
        "auto"
    )
    device: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="The stick of each stage: usb:0,usb:1,... or pci:0,..."),
    ] = None
    queue: Annotated[int, typer.Option(min=1, help="Frames that wait before a stage.")] = 1
    fast: Annotated[
        bool, typer.Option("--fast", help="On the CPU: optimised kernels instead of reference.")
    ] = False
    port: Annotated[
        str | None,
        typer.Option(help="Serial line of the microcontroller; an emulated board needs none."),
    ] = None

    def open(self, folder: PipelineFolder) -> Runner:
        """Open the runner. Raises InputError and MissingToolError as `open_runner` does."""
        return open_runner(folder, self.backend, self.device, self.queue, self.fast, self.port)


@dataclass(frozen=True)
class RequestOptions:
    """The requests that `simulate` makes of a plan for rates."""

    arrivals: Annotated[
        Arrivals, typer.Option(help="For FILE: requests at random, or one every period.")
    ] = Arrivals.POISSON
    requests: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="For FILE: requests to simulate.")
    ] = 100_000
    seed: Annotated[int, typer.Option(help="For FILE: seed of the arrivals.")] = 1
