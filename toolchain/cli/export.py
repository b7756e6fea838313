"""`thimble export`: models as a package for another build system."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.markup import escape
from rich.table import Table

from toolchain.boards import naming
from toolchain.cli import _completion as completion
from toolchain.cli._console import note, output_console, progress, warn_of_plan
from toolchain.cli._groups import argument, grouped, option, without
from toolchain.cli._options import BoardOptions, CodeOptions
from toolchain.cli._output import JsonOption, check_apart, tell_json
from toolchain.deployment.compile import known_latency
from toolchain.errors import InputError
from toolchain.export import exporters
from toolchain.export.exporting import export_models
from toolchain.planning.options import PlanOptions
from toolchain.report.plan import left_to_copy_lines
from toolchain.report.time import time_text


@dataclass(frozen=True)
class TargetOptions:
    """The build system."""

    target: str = option(
        "",
        "The build system; --list describes each.",
        "--for",
        unit="TARGET",
        complete=completion.export_targets,
    )
    list_targets: bool = option(False, "List the targets and stop.", "--list")


@dataclass(frozen=True)
class BesideOptions:
    """Models of one program."""

    share_arena: bool = option(False, "One arena for models that run one at a time.")
    kernels_from: Path | None = option(
        None,
        "Another export of the same program: the kernels that it holds are left out, so that both "
        "can be linked.",
        unit="DIR",
    )


@grouped
def command(
    models: list[Path] | None = argument(
        "MODEL",
        "Int8 .tflite files, or QDQ or QLinear .onnx.",
        default=None,
        complete=completion.models,
    ),
    *,
    build_system: TargetOptions,
    on: BoardOptions,
    out: Path = option(
        Path("build/export"), "Folder to write, completely or not at all.", "-o", unit="DIR"
    ),
    name: str = option(
        "",
        "Name of the package, and of the model in C where there is one. Default: made "
        "from the model file's name.",
        unit="NAME",
    ),
    beside: BesideOptions,
    options: Annotated[PlanOptions, without("choice")],
    code: Annotated[CodeOptions, without("weights", "weights_address")],
    json: JsonOption = None,
) -> None:
    """Write models as a package for another build system, with everything that it needs.

    DIR gets the C, every kernel once, a working example, a README and the licences. Its build
    fetches nothing. The board's core decides which kernels it holds, so name the board or part that
    you have; without --board a line says which cores the package serves. Put all models of a
    project into one export; for two exports in one program, make the second with --kernels-from.

    Example: `thimble export wake.tflite words.tflite --for cmake --chip STM32U575ZI -o models`.
    """
    if build_system.list_targets:
        _list(json)
        return
    target = build_system.target
    if not target:
        raise InputError(f"--for names the build system: one of {', '.join(exporters())}")
    if not models:
        raise InputError("name the models to export")
    if options.labels and len(models) > 1:
        raise InputError("--labels names the classes of one model: export that one alone")
    check_apart(json, out)
    board = on.sized(on.board, options)
    with progress() as step:
        made = export_models(
            models,
            target,
            out,
            board,
            options,
            code.cmsis_nn,
            step,
            name=name,
            share_arena=beside.share_arena,
            kernels_from=beside.kernels_from,
            force=code.force,
        )
    for model in made.models:
        warn_of_plan(model.plan)
    if not board:
        note(
            f"No --board: planned for {made.board.name}. The package serves "
            f"{made.board.core.served}; another core is refused by the first generated file."
        )
    fields = {
        "target": made.target,
        "folder": str(made.folder),
        "files": list(made.files),
        "models": [model.name for model in made.models],
        **naming(made.board.name),
        "cores": made.board.core.served,
    }
    if not tell_json(json, fields):
        return
    table = Table(header_style="bold")
    for heading in ("model", "arena", "constants", "one inference"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for model in made.models:
        known = known_latency(model.plan)
        table.add_row(
            escape(model.name),
            f"{model.plan.arena.size_bytes:,} B",
            f"{model.sources.weight_bytes:,} B",
            time_text(known.total, known.unit, known.basis, known.clock_hz),
        )
    output_console().print(table)
    for model in made.models:
        for line in left_to_copy_lines(model.plan):
            output_console().say(f"{model.name}: {line}")
    output_console().say(
        f"{len(made.files)} files for {made.target} written to {out}; its README.md says the rest."
    )


def _list(json: str | None) -> None:
    targets = [{"target": e.name, "summary": e.summary} for e in exporters().values()]
    if not tell_json(json, {"targets": targets}):
        return
    table = Table(header_style="bold")
    for heading in ("target", "what it makes"):
        table.add_column(heading)
    for made in exporters().values():
        table.add_row(made.name, made.summary)
    output_console().print(table)
