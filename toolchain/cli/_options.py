"""Options that several subcommands share, defined once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from toolchain import arena, schedule
from toolchain.cli import _completion as completion
from toolchain.decode.option import Decode, decoding
from toolchain.errors import InputError
from toolchain.files.labels import read_labels
from toolchain.ir import External
from toolchain.ops.preference import Preference, preference
from toolchain.partition import splitters
from toolchain.planning.options import Optimise, PlanOptions, goal
from toolchain.preprocess.option import preprocess as read_preprocess

FULL, FAST = EFFORTS = "full", "fast"

ModelArgument = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="An int8 .tflite file, or a QDQ or QLinear .onnx.",
        autocompletion=completion.models,
    ),
]
BoardOption = Annotated[
    str,
    typer.Option(
        "--board",
        "-b",
        "--chip",
        help="A board (`thimble boards` lists them), the path of your board.toml, or a part number "
        "without a board (STM32U575ZI: to plan, and for C). EMULATED:TARGET is an emulated "
        "board with the memories and clock of another board or chip, as mps2-an500:nucleo-h743zi. "
        "BOARD@BANK puts the weights into that bank, as f746g-disco@QSPI.",
        autocompletion=completion.targets,
    ),
]
SchedulerOption = Annotated[
    str,
    typer.Option(
        "--scheduler",
        help=f"Method that orders the operators: {', '.join(schedule.names())}.",
        autocompletion=completion.one_of(*schedule.names()),
    ),
]
AllocatorOption = Annotated[
    str,
    typer.Option(
        "--allocator",
        help=f"Method that places the tensors: {', '.join(arena.names())}.",
        autocompletion=completion.one_of(*arena.names()),
    ),
]
CmsisNnOption = Annotated[
    Path | None,
    typer.Option(
        "--cmsis-nn",
        metavar="DIR",
        help="A CMSIS-NN checkout. Default: $CMSIS_NN_DIR, else the pinned copy.",
    ),
]
RamOption = Annotated[
    str | None,
    typer.Option(
        "--ram",
        metavar="BYTES",
        help="Split operators until all RAM (arena, data, stack) is at most this, e.g. 96K.",
    ),
]
FlashOption = Annotated[
    str | None,
    typer.Option(
        "--flash",
        metavar="BYTES",
        help="All flash (code and constants) is at most this, e.g. 256K, of which quicker kernels "
        "take what is left. Default: three quarters of the board's.",
    ),
]
OptimiseOption = Annotated[
    str,
    typer.Option(
        "--optimise",
        metavar="balanced|speed|size",
        autocompletion=completion.one_of(*Optimise),
        help="What flash and RAM are spent on. balanced: kernels that are quicker because their "
        "constants take more flash, in an arena no larger than the unsplit network has without "
        "them; constants copied to three quarters of tightly coupled RAM. speed: these even if the "
        "arena grows, up to the board's RAM and 15/16 of its flash, and copies of constants and "
        "code in all RAM that is quicker than flash. size: none of these.",
    ),
]
SlowdownOption = Annotated[
    str | None,
    typer.Option(
        "--max-slowdown",
        metavar="PERCENT",
        help="Split operators for the smallest arena, with at most this much more cycles "
        "(predicted, where not measured or modelled from a trace): 5% or 5; below 1 with its sign, "
        "0.5%.",
    ),
]
NoSplitOption = Annotated[
    bool,
    typer.Option(
        "--no-split",
        help="Keep every operator whole. Default: operators are split into blocks where that costs "
        "at most 1% of the cycles, as predicted, and saves at least 5% of the arena and 1 KiB; "
        "--max-slowdown sets another limit, or 0% for what costs nothing. Not done beside --ram, "
        "--optimise speed, or a --scheduler or --allocator other than the default.",
    ),
]
StreamOption = Annotated[
    bool,
    typer.Option(
        "--stream-input",
        help="The input arrives by rows (of an image, of a spectrogram) and is in RAM only as far "
        "as rows are still needed: the C has <name>_push_rows(arena, rows, n) in place of "
        "<name>_run, and computes what the rows allow as they come.",
    ),
]
StreamedOption = Annotated[
    str,
    typer.Option(
        "--streamed-input",
        metavar="NAME",
        help="The input that --stream-input means, where several have rows.",
    ),
]
EffortOption = Annotated[
    str,
    typer.Option(
        "--plan",
        metavar="full|fast",
        help="fast: limit each search (for an order, for places, for splits that are nearly free) "
        "to a fifth of a second's worth of work. The arena may be larger.",
    ),
]
ChoiceOption = Annotated[
    int | None,
    typer.Option(
        "--choice",
        metavar="NUMBER",
        min=1,
        help="Take this row of those that --pareto lists, exactly: the same search, then its plan. "
        "Needs the other options that the list was made with.",
    ),
]
SplitterOption = Annotated[
    str,
    typer.Option(
        "--splitter",
        help=f"Search for ways to split: {', '.join(splitters.names())}.",
    ),
]
SplitSecondsOption = Annotated[
    float | None,
    typer.Option(
        "--split-seconds",
        min=0.0,
        help="Work limit of that search, in seconds that it takes on one core of a desktop "
        "computer; by default 30, and 1 for splits that are nearly free. No clock is read: the "
        "plan is the same on every machine. Ctrl-C ends a search that --ram, --max-slowdown or "
        "--pareto asked for, and keeps the best result.",
    ),
]
PreprocessOption = Annotated[
    str | None,
    typer.Option(
        "--preprocess",
        metavar="KIND[:NAME=VALUE,...]",
        help="Also write C that makes the model's input. audio: samples of sound to the features "
        "of TensorFlow Lite Micro's micro front end (*_audio.h), as in audio:step_ms=20,stride=2. "
        "image: a camera's frame, cut, resized, converted and quantised (*_image.h), as in "
        "image:width=320,height=240,format=rgb565be.",
    ),
]
DecodeOption = Annotated[
    str | None,
    typer.Option(
        "--decode",
        metavar="ssd|yolo[:FILE.toml][,NAME=VALUE,...]",
        help="Also compute the boxes that a detector leaves to the host: four more outputs, for "
        "boxes, classes, scores and their number, behind the model's own, which must be the raw "
        "heads. As in ssd:anchors=anchors.npy,scores=sigmoid, or yolo (v8, v11), or "
        "yolo:anchors.toml (v3, v5, v7).",
    ),
]
ScoreThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--score-threshold",
        metavar="SCORE",
        help="With --decode: boxes of a lower score are dropped. Default: 0.25, of ssd 0.3.",
    ),
]
IouThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--iou-threshold",
        metavar="SHARE",
        help="With --decode: a box that shares more than this with a better one is dropped. "
        "Default: 0.45, of ssd 0.6.",
    ),
]
DetectionsOption = Annotated[
    int | None,
    typer.Option(
        "--max-detections",
        metavar="BOXES",
        help="With --decode: boxes to report at most. Default: 20.",
    ),
]
OneBankOption = Annotated[
    bool,
    typer.Option(
        "--one-bank",
        help="Keep the arena in one piece. Default: spread it over RAM banks if none holds all "
        "of it, or a faster one can hold a part.",
    ),
]
FloatOption = Annotated[
    bool,
    typer.Option(
        "--float",
        help="Accept a model that computes in float32; a warning says what int8 would save. "
        "Single float operators in a quantised model do not need this option.",
    ),
]
InputShapeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input-shape",
        metavar="NAME=1x3x192x192",
        help="The shape of an input whose dimensions the ONNX file leaves open; give it again for "
        "further inputs.",
    ),
]
KernelsOption = Annotated[
    str,
    typer.Option(
        "--kernels",
        metavar="auto|cmsis-nn|thimble",
        autocompletion=completion.one_of(*Preference),
        help="Whose kernels to use. auto: the quicker one for each operator. cmsis-nn: CMSIS-NN's "
        "function wherever it takes the operator, Thimble's for the rest. thimble: Thimble's "
        "wherever there is one. The report lists operators that got another than asked for, with "
        "the reason, and those whose bytes may differ from the reference's: CMSIS-NN rounds fully "
        "connected layers otherwise than LiteRT.",
    ),
]
KeepChannelsOption = Annotated[
    bool,
    typer.Option(
        "--keep-dead-channels",
        help="Compute channels that cannot change an output, too. Default: a channel whose weights "
        "are all zero is folded into the biases that read it, and removed; outputs stay the same.",
    ),
]
LabelsOption = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Names of the classes, one a line, for the outputs that have so many. Default: those "
        "in the model file (TFLite metadata, ONNX `names`), if there are any.",
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace the files of an earlier run in DIR even if they were changed, and keep "
        "added ones. Without it, such a folder is refused.",
    ),
]
WeightsOption = Annotated[
    str,
    typer.Option(
        "--weights",
        metavar="code|external|fetched",
        autocompletion=completion.one_of("code", "external", "fetched"),
        help="external: constants lie in a blob, DIR/<name>_weights.bin, which the code checks "
        "before the first run and which can be replaced without new code (`thimble weights`). "
        "fetched: the same, and a function of yours fetches the constants of each operator to the "
        "arena while the one before it runs. "
        "Default: they are arrays in the code.",
    ),
]
WeightsAddressOption = Annotated[
    str | None,
    typer.Option(
        "--weights-address",
        metavar="ADDRESS",
        help="With --weights external: where another tool puts the blob, as 0x90000000; DIR also "
        "gets it as Intel HEX. Default: the firmware holds the blob.",
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.01,
        max=1e7,
        help="Limit of one inference, wherever it runs: on the board, in QEMU, on this machine, in "
        "the reference runtime. What takes longer is stopped.",
    ),
]
PortOption = Annotated[
    str | None,
    typer.Option(
        "--port",
        "-p",
        help="Serial port of the board (/dev/ttyACM0, socket://host:port, rfc2217://host:port). "
        "Without it, emulated boards are started.",
    ),
]


def external_weights(weights: str, address: str | None) -> External | None:
    """Where the weights lie; None for in the code. Raises InputError for what is neither."""
    if weights not in ("code", "external", "fetched"):
        raise InputError(f"--weights {weights!r}: it is one of code, external, fetched")
    if weights == "code":
        if address is not None:
            raise InputError("--weights-address is for --weights external or fetched: add one")
        return None
    try:
        at = None if address is None else int(address, 0)
        return External(at, fetched=weights == "fetched")
    except ValueError:
        raise InputError(
            f"--weights-address {address!r} is no address; write it as 0x90000000"
        ) from None


def decode_option(
    text: str | None,
    score_threshold: float | None,
    iou_threshold: float | None,
    max_detections: int | None,
) -> Decode | None:
    """What --decode and its thresholds say. Raises InputError for thresholds without --decode."""
    given = {
        "--score-threshold": score_threshold,
        "--iou-threshold": iou_threshold,
        "--max-detections": max_detections,
    }
    if text is not None:
        return decoding(text, score_threshold, iou_threshold, max_detections)
    for option, value in given.items():
        if value is not None:
            raise InputError(f"{option} is for --decode, which is not given")
    return None


def plan_options(
    scheduler: str,
    allocator: str,
    ram: str | None = None,
    max_slowdown: str | None = None,
    one_bank: bool = False,
    splitter: str = splitters.DEFAULT,
    split_seconds: float | None = None,
    allow_float: bool = False,
    kernels: str = Preference.AUTO,
    keep_dead_channels: bool = False,
    flash: str | None = None,
    optimise: str = Optimise.BALANCED,
    no_split: bool = False,
    effort: str = FULL,
    choice: int | None = None,
    labels: Path | None = None,
    stream_input: bool = False,
    streamed_input: str = "",
    preprocess: str | None = None,
    input_shape: Sequence[str] | None = None,
    decode: Decode | None = None,
) -> PlanOptions:
    """The options as a value. Raises InputError for an unknown name or an invalid number."""
    schedule.scheduler(scheduler)
    arena.allocator(allocator)
    splitters.splitter(splitter)
    if no_split and (ram or max_slowdown):
        asked = "--ram" if ram else "--max-slowdown"
        raise InputError(f"--no-split keeps every operator whole, {asked} splits: leave out one")
    if choice is not None and (no_split or ram or max_slowdown):
        asked = "--no-split" if no_split else "--ram" if ram else "--max-slowdown"
        raise InputError(f"--choice says what is split, and so does {asked}: leave out one")
    if no_split and stream_input:
        raise InputError("--no-split keeps the input whole, --stream-input cuts it: leave out one")
    if streamed_input and not stream_input:
        raise InputError("--streamed-input names the input of --stream-input, which is not given")
    if effort not in EFFORTS:
        raise InputError(f"--plan {effort!r}: it is one of {', '.join(EFFORTS)}")
    slowdown = None if max_slowdown is None else per_cent(max_slowdown, "--max-slowdown")
    return PlanOptions(
        scheduler=scheduler,
        allocator=allocator,
        ram_bytes=None if ram is None else _bytes(ram, "--ram"),
        flash_bytes=None if flash is None else _bytes(flash, "--flash"),
        optimise=goal(optimise),
        max_slowdown=slowdown,
        one_bank=one_bank,
        allow_float=allow_float,
        splitter=splitter,
        split_seconds=split_seconds,
        kernels=preference(kernels),
        dead_channels=not keep_dead_channels,
        nearly_free=not no_split,
        fast=effort == FAST,
        choice=choice,
        labels=() if labels is None else read_labels(labels),
        stream_input=stream_input,
        streamed_input=streamed_input,
        input_shapes=tuple(map(_input_shape, input_shape or ())),
        preprocess=None if preprocess is None else read_preprocess(preprocess),
        decode=decode,
    )


def option_words(options: PlanOptions) -> list[str]:
    """The words of a command line that ask for this; `choice` alone says what is split."""
    plain, chosen = PlanOptions(), options.choice is not None
    options = replace(options.unsplit, choice=options.choice) if chosen else options
    slowdown = options.max_slowdown
    given = (
        ("--scheduler", options.scheduler, plain.scheduler),
        ("--allocator", options.allocator, plain.allocator),
        ("--choice", options.choice, None),
        ("--ram", options.ram_bytes, None),
        ("--max-slowdown", None if slowdown is None else f"{100 * slowdown:.10g}%", None),
        ("--flash", options.flash_bytes, plain.flash_bytes),
        ("--optimise", options.optimise, plain.optimise),
        ("--plan", FAST if options.fast else FULL, FULL),
        ("--splitter", options.splitter, plain.splitter),
        ("--split-seconds", options.split_seconds, plain.split_seconds),
        ("--kernels", options.kernels, plain.kernels),
        ("--decode", options.decode, plain.decode),
    )
    flags = (
        ("--no-split", not (options.nearly_free or chosen)),
        ("--one-bank", options.one_bank),
        ("--float", options.allow_float),
        ("--keep-dead-channels", not options.dead_channels),
    )
    shapes = [f"{name}={'x'.join(map(str, shape))}" for name, shape in options.input_shapes]
    words = [word for name, own, usual in given if own != usual for word in (name, str(own))]
    words += [word for shape in shapes for word in ("--input-shape", shape)]
    return words + [name for name, wanted in flags if wanted]


def _input_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """`image=1x3x192x192`. A name may hold `=`."""
    name, _, sizes = text.rpartition("=")
    if not name or not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", sizes):
        raise InputError(f"--input-shape {text!r}: write it as NAME=1x3x192x192")
    return name, tuple(map(int, sizes.split("x")))


def _bytes(text: str, option: str) -> int:
    """`98304`, `96K` or `96KB` or `96KiB`, `1M`: K is 1024 bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KM]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InputError(f"{option} {text!r} is no amount of memory; write it as 98304 or 96K")
    return int(float(match[1]) * {"": 1, "K": 1024, "M": 1024**2}[match[2].upper()])


def per_cent(text: str, option: str) -> float:
    """`5%` or `5`: five hundredths. The one reader of percentages, for every option.

    A number below 1 without its sign, as 0.05, is refused: some read it as 5%, some as 0.05%.
    """
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(%?)", text.strip())
    if match is None:
        raise InputError(f"{option} {text!r} is no percentage; write it as 5%")
    value = float(match[1])
    if 0 < value < 1 and not match[2]:
        raise InputError(
            f"{option} {text} could be read as {100 * value:g}% or as {value:g}%: "
            "write the percent sign",
            remedies=[f"{option} {100 * value:g}%", f"{option} {value:g}%"],
        )
    return value / 100
