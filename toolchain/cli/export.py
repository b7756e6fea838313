"""`thimble export`: models as a package for another build system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from toolchain import arena, schedule
from toolchain.cli import _completion as completion
from toolchain.cli._console import output_console, progress, warn_of_plan
from toolchain.cli._json import JsonOption, check_apart, write_json
from toolchain.cli._options import (
    FULL,
    AllocatorOption,
    BoardOption,
    CmsisNnOption,
    DecodeOption,
    DetectionsOption,
    EffortOption,
    FlashOption,
    FloatOption,
    ForceOption,
    InputShapeOption,
    IouThresholdOption,
    KeepChannelsOption,
    KernelsOption,
    LabelsOption,
    NoSplitOption,
    OneBankOption,
    OptimiseOption,
    PreprocessOption,
    RamOption,
    SchedulerOption,
    ScoreThresholdOption,
    SlowdownOption,
    SplitSecondsOption,
    SplitterOption,
    StreamedOption,
    StreamOption,
    decode_option,
    plan_options,
)
from toolchain.deployment.compile import known_latency
from toolchain.errors import InputError
from toolchain.export import exporters
from toolchain.export.exporting import export_models
from toolchain.ops.preference import Preference
from toolchain.partition import splitters
from toolchain.planning.options import Optimise
from toolchain.report.time import time_text


def command(
    models: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MODEL",
            help="Int8 .tflite files, or QDQ or QLinear .onnx.",
            autocompletion=completion.models,
        ),
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="TARGET",
            help="The build system; --list describes each.",
            autocompletion=completion.export_targets,
        ),
    ] = "",
    list_targets: Annotated[
        bool, typer.Option("--list", help="List the targets and stop.")
    ] = False,
    board: BoardOption = "",
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder to write, completely or not at all."
        ),
    ] = Path("build/export"),
    name: Annotated[
        str,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Name of the package, and of the model in C where there is one. Default: made "
            "from the model file's name.",
        ),
    ] = "",
    share_arena: Annotated[
        bool,
        typer.Option("--share-arena", help="One arena for models that run one at a time."),
    ] = False,
    labels: LabelsOption = None,
    scheduler: SchedulerOption = schedule.DEFAULT,
    allocator: AllocatorOption = arena.DEFAULT,
    ram: RamOption = None,
    flash: FlashOption = None,
    optimise: OptimiseOption = Optimise.BALANCED,
    max_slowdown: SlowdownOption = None,
    splitter: SplitterOption = splitters.DEFAULT,
    no_split: NoSplitOption = False,
    stream_input: StreamOption = False,
    streamed_input: StreamedOption = "",
    effort: EffortOption = FULL,
    split_seconds: SplitSecondsOption = None,
    one_bank: OneBankOption = False,
    allow_float: FloatOption = False,
    input_shape: InputShapeOption = None,
    decode: DecodeOption = None,
    score_threshold: ScoreThresholdOption = None,
    iou_threshold: IouThresholdOption = None,
    max_detections: DetectionsOption = None,
    kernels: KernelsOption = Preference.AUTO,
    keep_dead_channels: KeepChannelsOption = False,
    preprocess: PreprocessOption = None,
    cmsis_nn: CmsisNnOption = None,
    force: ForceOption = False,
    json: JsonOption = None,
) -> None:
    """Write models as a package for another build system, with everything that it needs.

    DIR gets the C, every kernel once, a working example, a README and the licences; nothing is
    fetched when it is built. The board's core decides which kernels are in it, so name the board
    or part that you have. One export takes all models of a project: two would both bring the
    kernels.

    Example: `thimble export wake.tflite words.tflite --for cmake --chip STM32U575ZI -o models`.
    """
    if list_targets:
        _list(json)
        return
    if not target:
        raise InputError(f"--for names the build system: one of {', '.join(exporters())}")
    if not models:
        raise InputError("name the models to export")
    if labels and len(models) > 1:
        raise InputError("--labels names the classes of one model: export that one alone")
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
        input_shape=input_shape,
        decode=decode_option(decode, score_threshold, iou_threshold, max_detections),
        flash=flash,
        optimise=optimise,
        no_split=no_split,
        stream_input=stream_input,
        streamed_input=streamed_input,
        effort=effort,
        labels=labels,
        preprocess=preprocess,
    )
    check_apart(json, out)
    with progress() as step:
        made = export_models(
            models,
            target,
            out,
            board,
            options,
            cmsis_nn,
            step,
            name=name,
            share_arena=share_arena,
            force=force,
        )
    for model in made.models:
        warn_of_plan(model.plan)
    if json:
        write_json(
            json,
            {
                "target": made.target,
                "folder": str(made.folder),
                "files": list(made.files),
                "models": [model.name for model in made.models],
            },
        )
    if json == "-":
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
    output_console().print(
        f"{len(made.files)} files for {made.target} written to {out}; its README.md says the rest.",
        markup=False,
        highlight=False,
    )


def _list(json: str | None) -> None:
    if json:
        found = [{"target": e.name, "summary": e.summary} for e in exporters().values()]
        write_json(json, {"targets": found})
    if json == "-":
        return
    table = Table(header_style="bold")
    for heading in ("target", "what it makes"):
        table.add_column(heading)
    for made in exporters().values():
        table.add_row(made.name, made.summary)
    output_console().print(table)
