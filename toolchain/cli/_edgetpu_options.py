"""Options of `thimble edgetpu`, and what they say together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from toolchain.cli import _completion as completion
from toolchain.cli._groups import option
from toolchain.cli._options import timeout_option
from toolchain.edgetpu.model.figures import BALANCES, EdgeTpuCost, HostCost
from toolchain.edgetpu.pipeline import Runner, open_runner
from toolchain.edgetpu.plan import demand as objectives
from toolchain.edgetpu.plan.beside import McuPlace
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
        help="With rates, in a simulation or a run: requests at random (`poisson`), or at equal "
        "intervals.",
    ),
]


class Emit(StrEnum):
    """The languages of `--emit`."""

    C = "c"


@dataclass(frozen=True)
class PipelineOptions:
    """Options by which `plan` and `split` plan a pipeline."""

    stages: str = option("auto", "Number of sticks, or `auto`.", "--stages", "--devices", "-n")
    max_sticks: int = option(
        8, "Most sticks that `--stages auto` tries.", least=1, most=_MOST_STICKS
    )
    objective: str | None = option(
        None,
        "`period` (predicted time between results; the default), or a list of `params`, "
        "`spill`, `comm` in order of priority; or a baseline: `greedy` (Edge TPU Compiler), "
        "`contiguous`. With --rate: `mean` latency (the default) or `worst`, the largest 99th "
        "percentile of a model.",
    )
    balance_by: str = option(
        "file", f"Parameter bytes as in the file, or compiled: {', '.join(BALANCES)}."
    )
    slack: str = option(
        "0%",
        "How much each objective may worsen for the next: 5% or 5; 0.5% needs its sign.",
        unit="PERCENT",
    )
    same_stage_children: bool = option(
        False, "Keep the readers of a tensor in one stage; stages are less even."
    )
    cache_mib: float = option(
        _CACHE_MIB, "Parameter cache of a stick, MiB.", least=0.0, most=1024.0
    )
    seconds: float = option(
        60.0,
        "Work limit of the solver for each objective, in seconds that it takes on one "
        "core of a desktop computer. No clock is read: the plan is the same on every machine.",
        least=0.1,
    )
    profile: Path | None = option(
        None, "Measured times, from `thimble edgetpu profile`.", unit="FILE"
    )
    host: str | None = option(
        None,
        "Let the host's processor run one stage, if that is faster. Give the speed of one core "
        "in 10^9 products per second, or a profile from `profile --backend cpu --fast`.",
        unit="GMACS|FILE",
    )
    mcu: str | None = option(
        None,
        "Let a microcontroller run the first or the last stage, if that shortens the "
        "period. `split` builds its firmware. -n is then the number of sticks, or 0.",
        unit="BOARD",
        complete=completion.boards,
    )
    link: str | None = option(
        None,
        "Speed of the line to the microcontroller: 1MB/s, 90kB/s, 921600baud. "
        "Default: the baud rate of the board's UART, ten bits a byte.",
        unit="SPEED",
    )
    mcu_stage: McuPlace | None = option(
        None, "Give the microcontroller this stage, even if the period gets longer."
    )
    rate: str | None = option(
        None,
        "Requests per second for each model, by name: a=15,b=30 (one number: for every "
        "model). The plan then minimises latency under a queueing model; --objective is "
        "`mean` (default) or `worst`.",
        unit="LIST",
    )
    deadline: str | None = option(
        None,
        "With --rate: the time in which 99% of a model's requests must be done: a=100ms,b=50ms.",
        unit="LIST",
    )

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

    inputs: list[Path] | None = option(
        None,
        ".npy with one frame, or one in each row; once per input. Default: random frames.",
        "--input",
        "-i",
        unit="FILE",
    )
    frames: int = option(32, "Number of random frames.", least=1)
    seed: int = option(0, "Seed of the random frames.")


@dataclass(frozen=True)
class RunnerOptions:
    """Options of the runner of the stages."""

    backend: str = option("auto", f"Runner of the stages: {', '.join(BACKENDS)}.")
    device: str | None = option(
        None, "The stick of each stage: usb:0,usb:1,... or pci:0,...", unit="LIST"
    )
    queue: int = option(1, "Frames that wait before a stage.", least=1)
    fast: bool = option(False, "On the CPU: optimised kernels instead of reference.")
    port: str | None = option(
        None, "Serial line of the microcontroller; an emulated board needs none."
    )
    timeout: float = timeout_option()

    def open(self, folder: PipelineFolder) -> Runner:
        """Open the runner. Raises InputError and MissingToolError as `open_runner` does."""
        return open_runner(
            folder, self.backend, self.device, self.queue, self.fast, self.port, self.timeout
        )


@dataclass(frozen=True)
class RequestOptions:
    """The requests that `simulate` makes of a plan for rates."""

    arrivals: Arrivals = option(
        Arrivals.POISSON, "For FILE: requests at random, or at equal intervals."
    )
    requests: int = option(100_000, "For FILE: requests to simulate.", least=100, most=1_000_000)
    seed: int = option(1, "For FILE: seed of the arrivals.")
