"""`thimble report`: one page that shows a build, or two side by side."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from toolchain import arena, schedule
from toolchain.boards import board as find_board
from toolchain.cli._choices import search_choices
from toolchain.cli._console import output_console, progress, warn_of_float, warn_of_host_side
from toolchain.cli._json import JsonOption, write_json
from toolchain.cli._options import (
    FULL,
    EffortOption,
    FlashOption,
    FloatOption,
    KeepChannelsOption,
    KernelsOption,
    NoSplitOption,
    OneBankOption,
    OptimiseOption,
    RamOption,
    SlowdownOption,
    SplitSecondsOption,
    SplitterOption,
    plan_options,
)
from toolchain.cli._page import (
    MOST_BUILDS,
    compiled_findings,
    facts,
    folder_findings,
    with_profile,
    write_page,
)
from toolchain.cli.verify import verification_json
from toolchain.deployment.compile import compile_model
from toolchain.deployment.folder import PLAN_FILE
from toolchain.deployment.measurements import cost_model
from toolchain.deployment.profiling import DEFAULT_RUNS, profile_folder
from toolchain.deployment.verification import verify_model
from toolchain.errors import DoesNotFitError, InputError
from toolchain.files import scratch_folder
from toolchain.memory.firmware_size import check_fit, estimated_need
from toolchain.ops.preference import Preference
from toolchain.page.build import Findings, build
from toolchain.page.charts import version
from toolchain.page.document import Build
from toolchain.partition import splitters
from toolchain.planner import DEFAULT_BOARD, plan_model
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.progress import Report
from toolchain.report.front import front_json
from toolchain.report.latency import predict_latency
from toolchain.report.plan import plan_json


@dataclass(frozen=True)
class _Asked:
    """What the page shall hold besides the plan."""

    options: PlanOptions
    pareto: bool
    profile: bool
    read_as: str
    verify: int


def command(
    subjects: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL|DIR...",
            help="An int8 .tflite or a QDQ or QLinear .onnx, or a folder of `thimble compile`; two "
            "are shown side by side.",
        ),
    ],
    boards: Annotated[
        list[str] | None,
        typer.Option(
            "--board",
            "-b",
            help="Board name; twice for one model on two boards. A folder has its own.",
        ),
    ] = None,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE|-", help="The page to write.")
    ] = "report.html",
    pareto: Annotated[
        bool,
        typer.Option("--pareto", help="Search ways to split operators, and show RAM, flash, time."),
    ] = False,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Build the firmware, and time it where it is emulated."),
    ] = False,
    read_as: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="BOARD|CHIP",
            help="With --profile: read what the emulated board executes as this one would.",
        ),
    ] = "",
    verify: Annotated[
        int,
        typer.Option(
            "--verify", metavar="RUNS", min=0, help="Compare so many runs with the reference."
        ),
    ] = 0,
    ram: RamOption = None,
    flash: FlashOption = None,
    optimise: OptimiseOption = Optimise.BALANCED,
    max_slowdown: SlowdownOption = None,
    splitter: SplitterOption = splitters.DEFAULT,
    no_split: NoSplitOption = False,
    effort: EffortOption = FULL,
    split_seconds: SplitSecondsOption = None,
    one_bank: OneBankOption = False,
    allow_float: FloatOption = False,
    kernels: KernelsOption = Preference.AUTO,
    keep_dead_channels: KeepChannelsOption = False,
    json: JsonOption = None,
) -> None:
    """Write a page that shows a build: one HTML file that opens in any browser, without a network.

    It has a verdict, the arena byte by byte and step by step, the network, a table and charts of
    the operators, and where they were asked for the choices of RAM, flash and time, the profile
    with its hot loops, and the comparison with the reference. Two subjects, or one model and two
    boards, are shown side by side, with what changed. A model that does not fit gets its page, too.

    The charts need the extra `[report]`: `pip install 'thimble-nn[report]'`.

    Example: `thimble report model.tflite --board nucleo-f446re --pareto -o report.html`
    """
    version()
    options = plan_options(
        schedule.DEFAULT,
        arena.DEFAULT,
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
    )
    asked = _Asked(options, pareto, profile or bool(read_as), read_as, verify)
    with progress() as step:
        found = [_build(path, board, asked, step) for path, board in _pairs(subjects, boards or [])]
        step("writing the page")
        size_bytes = write_page(out, found)
    if json:
        write_json(json, {"file": out, "bytes": size_bytes})
    if "-" not in (json, out):
        console = output_console()
        for one in found:
            fits = "fits" if one.verdict.fits else "does not fit"
            console.print(f"{one.title}: {fits}.", markup=False, highlight=False)
        console.print(f"Written to {out}, {size_bytes:,} B", markup=False)


def _pairs(subjects: list[Path], boards: list[str]) -> list[tuple[Path, str]]:
    """Each subject with its board; '' for a folder, which has its own."""
    given = boards or [DEFAULT_BOARD]
    if len(subjects) == 1:
        subjects = subjects * len(given)
    elif len(given) == 1:
        given = given * len(subjects)
    if len(subjects) != len(given) or len(subjects) > MOST_BUILDS:
        raise InputError(
            f"{len(subjects)} subjects and {len(boards)} boards: a page shows one build, or two "
            "(two models or folders, or one model on two boards)"
        )
    if boards and any(path.is_dir() for path in subjects):
        raise InputError("a compiled folder has its board: leave out --board")
    return list(zip(subjects, given, strict=True))


def _build(path: Path, board: str, asked: _Asked, step: Report) -> Build:
    if not path.is_dir():
        return build(_of_model(path, board, asked, step))
    if asked.verify or asked.pareto:
        raise InputError(f"{path} is a compiled folder: --verify and --pareto take a model")
    found = folder_findings(path)
    if asked.profile:
        timed = profile_folder(path, runs=DEFAULT_RUNS, report=step, read_as=asked.read_as)
        found = with_profile(found, timed)
    return build(found, str(path / PLAN_FILE))


def _of_model(model: Path, board: str, asked: _Asked, step: Report) -> Findings:
    """Plan a model, and compile it where it shall run."""
    command = shlex.join(["thimble", "compile", str(model), "--board", board])
    if not (asked.profile or asked.verify):
        found = replace(_planned(model, board, asked, step), command=command)
    else:
        with scratch_folder() as scratch:
            folder, options = scratch / "build", asked.options
            if asked.verify:
                judged = verify_model(
                    model, board, asked.verify, options=options, out=folder, report=step
                )
                compiled, verified = judged.compiled, verification_json(judged)
            else:
                compiled = compile_model(model, board, folder, options, report=step)
                verified = None
            found = compiled_findings(compiled, model, verified=verified, command=command)
            if asked.profile:
                timed = profile_folder(folder, runs=2, report=step, read_as=asked.read_as)
                found = with_profile(found, timed)
    if not asked.pareto:
        return found
    costs = cost_model(board)
    choices = search_choices(model, find_board(board), asked.options, costs, step)
    rows = front_json(choices.rows, choices.unsplit)
    return replace(found, plan={**found.plan, "pareto": rows})


def _planned(model: Path, board: str, asked: _Asked, step: Report) -> Findings:
    costs = cost_model(board)
    plan = plan_model(model, board, asked.options, step, costs)
    warn_of_host_side(model)
    warn_of_float(plan)
    problem = ""
    try:
        check_fit(plan)
    except DoesNotFitError as error:
        problem = str(error)
    fields = plan_json(plan, estimated_need(plan), predict_latency(plan, costs))
    return Findings(plan=fields, problem=problem, facts=facts(model))
