"""`thimble plan`: memory and operators of a model, without generating any file."""

from __future__ import annotations

from typing import Annotated

import typer

from toolchain import arena, schedule
from toolchain.cli._gate import FailOnOption
from toolchain.cli._json import JsonOption
from toolchain.cli._options import (
    FULL,
    AllocatorOption,
    BoardOption,
    ChoiceOption,
    DecodeOption,
    DetectionsOption,
    EffortOption,
    FlashOption,
    FloatOption,
    InputShapeOption,
    IouThresholdOption,
    KeepChannelsOption,
    KernelsOption,
    ModelArgument,
    NoSplitOption,
    OneBankOption,
    OptimiseOption,
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
from toolchain.ops.preference import Preference
from toolchain.partition import splitters
from toolchain.planning.options import DEFAULT_BOARD, Optimise
from toolchain.report.fronts import names as format_names
from toolchain.report.gates import gates


def command(
    model: ModelArgument,
    board: BoardOption = DEFAULT_BOARD,
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
    choice: ChoiceOption = None,
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
    pareto: Annotated[
        bool,
        typer.Option(
            "--pareto", help="List ways to split operators: RAM against slowdown in cycles."
        ),
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            metavar="FILE|-",
            help="Write that to a file, too; its ending is the format: "
            f"{', '.join(format_names())} (svg for -).",
        ),
    ] = None,
    fail_on: FailOnOption = None,
    json: JsonOption = None,
) -> None:
    """Show whether a model fits, its memory, its peak, and an operator table. Generates no files.

    Code size is an estimate here. Latency is in cycles, and milliseconds at the board's clock:
    predicted by formula for operators of which `thimble cost` has neither a measurement nor one
    modelled from a trace. `--pareto` adds what there is to choose from by splitting operators
    and by spending flash; `compile --choice` takes a row of it. Exits 1 if the model does not fit
    the board.

    Example: `thimble plan model.tflite --board nucleo-l476rg`
    """
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
        choice=choice,
    )
    from toolchain.cli._planning import show_plan  # --help needs no planner

    show_plan(model, board, options, pareto=pareto, plot=plot, json=json, conditions=gates(fail_on))
