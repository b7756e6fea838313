"""The builds that a page shows: planned, or compiled, timed, compared, and searched for choices."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolchain.cli._console import warn_of_plan
from toolchain.cli._groups import option
from toolchain.cli._options import named_board
from toolchain.cli._page import (
    MOST_BUILDS,
    compiled_findings,
    facts,
    folder_findings,
    with_profile,
)
from toolchain.deployment.compile import compile_model
from toolchain.deployment.folder import PLAN_FILE
from toolchain.deployment.measurements import cost_model
from toolchain.deployment.profiling import DEFAULT_RUNS, profile_folder
from toolchain.deployment.verification import verification_json, verify_model
from toolchain.errors import DoesNotFitError, InputError
from toolchain.files import scratch_folder
from toolchain.files.formats import JSON
from toolchain.files.records import field_of, read_json
from toolchain.memory.firmware_size import check_fit, estimated_need
from toolchain.page.build import Findings, build
from toolchain.page.document import Build
from toolchain.planner import plan_choices
from toolchain.planning.choices import Choices
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report
from toolchain.report.front import front_json
from toolchain.report.latency import predict_latency
from toolchain.report.plan import plan_json


@dataclass(frozen=True)
class PageOptions:
    """Options of a page besides those of the plan. `verify`: runs; 0: none."""

    boards: list[str] | None = option(
        None,
        "Board name; twice for one model on two boards. A folder has its own.",
        "--board",
        "-b",
    )
    pareto: bool = option(False, "Show the plans to choose from: RAM, flash and predicted time.")
    profile: bool = option(False, "Build the firmware, and time it where it is emulated.")
    read_as: str = option(
        "",
        "With --profile: read what the emulated board executes as this one would.",
        "--as",
        unit="BOARD|CHIP",
    )
    verify: int = option(0, "Number of runs to compare with the reference.", unit="RUNS", least=0)
    quantised: Path | None = option(
        None,
        "The JSON of `thimble quantize --json FILE`: show the loss of each layer.",
        unit="FILE",
    )
    accuracy: Path | None = option(
        None,
        "The JSON of `thimble accuracy --json FILE`: show its figures.",
        unit="FILE",
    )

    @property
    def timed(self) -> bool:
        """Whether a profile is asked for; --as asks for one."""
        return self.profile or bool(self.read_as)


def subject_pairs(subjects: list[Path], boards: list[str]) -> list[tuple[Path, str]]:
    """Each subject with its board; '' for a folder, which has its own."""
    given = boards or [""]
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
    if not boards and not all(path.is_dir() for path in subjects):
        named_board("")
    return list(zip(subjects, given, strict=True))


def growing_build(
    path: Path, board: str, asked: PageOptions, options: PlanOptions, step: Report
) -> Iterator[Build]:
    """A build as it becomes known: the plan, then with runs, then with the choices.

    Raises InputError for a folder where a model is needed, and what planning, compiling, profiling
    and verifying raise. A model that does not fit its board is a build, unless it shall run.
    """
    where = str(path / PLAN_FILE) if path.is_dir() else str(path)
    pages = (
        _of_folder(path, asked, step)
        if path.is_dir()
        else _of_model(path, board, asked, options, step)
    )
    quantised = None if asked.quantised is None else _document(asked.quantised)
    accuracy = None if asked.accuracy is None else _document(asked.accuracy)
    for findings in pages:
        yield build(replace(findings, quantised=quantised, accuracy=accuracy), where)


def _document(file: Path) -> Any:
    """A document that another command wrote with --json. Raises InputError for another version."""
    content = read_json(file)
    if isinstance(content, dict):
        JSON.check(field_of(content, "json_version", int, str(file), 1), str(file))
    return content


def _of_folder(path: Path, asked: PageOptions, step: Report) -> Iterator[Findings]:
    if asked.verify or asked.pareto:
        raise InputError(f"{path} is a compiled folder: --verify and --pareto take a model")
    compiled = folder_findings(path)
    yield compiled
    if asked.timed:
        timed = profile_folder(path, runs=DEFAULT_RUNS, report=step, read_as=asked.read_as)
        yield with_profile(compiled, timed)


def _of_model(
    model: Path, board: str, asked: PageOptions, options: PlanOptions, step: Report
) -> Iterator[Findings]:
    command = ["thimble", "compile", str(model), "--board", board]
    if not (asked.timed or asked.verify):
        choices, found = _planned(model, board, options, step)
        yield found
    else:
        choices = plan_choices(model, board, options, step, cost_model(board))
        for found in ran(model, board, asked, options, step):
            yield found
    if asked.pareto:
        rows = choices.rows()
        yield replace(
            found,
            plan={**found.plan, "pareto": front_json(rows)},
            commands=tuple(
                shlex.join([*command, *replace(options, choice=row.choice).words]) for row in rows
            ),
        )


def ran(
    model: Path, board: str, asked: PageOptions, options: PlanOptions, step: Report
) -> Iterator[Findings]:
    """Compiled, then timed, then compared."""
    with scratch_folder() as scratch:
        folder = scratch / "build"
        compiled = compile_model(model, board, folder, options, report=step)
        warn_of_plan(compiled.plan)
        found = compiled_findings(compiled, model)
        yield found
        if asked.timed:
            timed = profile_folder(folder, runs=DEFAULT_RUNS, report=step, read_as=asked.read_as)
            found = with_profile(found, timed)
            yield found
        if asked.verify:
            judged = verify_model(model, board, asked.verify, options=options, report=step)
            on = compiled.plan.board
            stood = () if judged.ran_on == on else (f"Compared on {judged.ran_on}, not {on}.",)
            verified = verification_json(judged)
            yield replace(found, verified=verified, notes=(*found.notes, *stood))


def _planned(
    model: Path, board: str, options: PlanOptions, step: Report
) -> tuple[Choices, Findings]:
    costs = cost_model(board)
    choices = plan_choices(model, board, options, step, costs)
    plan = choices.asked
    warn_of_plan(plan)
    problem = ""
    try:
        check_fit(plan)
    except DoesNotFitError as error:
        problem = str(error)
    fields = plan_json(plan, estimated_need(plan), predict_latency(plan, costs))
    return choices, Findings(plan=fields, problem=problem, facts=facts(model))
