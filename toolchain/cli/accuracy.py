"""`thimble accuracy`: how often a model is right on labelled data, also on its board."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from toolchain.accuracy.run.measure import measure_accuracy
from toolchain.accuracy.run.result import Accuracy
from toolchain.accuracy.show.document import accuracy_json
from toolchain.accuracy.show.tables import accuracy_lines
from toolchain.cli import _completion as completion
from toolchain.cli._console import (
    note_stand_in,
    output_console,
    progress,
    warn_of_plan,
)
from toolchain.cli._groups import REQUIRED, argument, grouped, option, without
from toolchain.cli._options import BoardOption, LineOptions
from toolchain.cli._output import Output, write_json
from toolchain.cli._page import compiled_findings, folder_findings, with_accuracy, write_findings
from toolchain.cli._samples import FORMATS, SampleOptions
from toolchain.errors import InputError
from toolchain.files.labels import read_labels
from toolchain.planning.options import PlanOptions
from toolchain.preprocess.samples import expanded
from toolchain.report.gates import check, gates


@dataclass(frozen=True)
class DataOptions:
    """Options that say what is run, and what is true of it."""

    data: list[Path] = option(
        REQUIRED,
        f"The samples: {FORMATS}. May be repeated.",
        "-d",
        unit="DIR|FILE",
    )
    labels: str = option(
        REQUIRED,
        "folders: the name of the folder in DIR that a file lies in is its class. A .csv of "
        "file,label. Labels in the order of the samples: .npy, .npz, or a .csv of one column. For "
        "boxes: COCO's .json, or a .csv of file,label,ymin,xmin,ymax,xmax.",
        unit="folders|FILE",
        complete=completion.one_of("folders"),
    )
    classes: Path | None = option(
        None,
        "Names of the classes, one a line, in the model's order. Default: those in the model.",
        unit="FILE",
    )
    limit: int | None = option(
        None, "At most so many samples, taken evenly from all.", unit="SAMPLES", least=1
    )


@dataclass(frozen=True)
class BesideOptions:
    """Options that name what runs beside the board."""

    float_model: Path | None = option(
        None,
        "The float .onnx or .tflite that the model was quantised from: run it, too.",
        unit="FILE",
        complete=completion.models,
    )
    int8_model: Path | None = option(
        None,
        "With DIR: the model that was compiled into it, to run in LiteRT or ONNX Runtime, too.",
        unit="FILE",
        complete=completion.models,
    )


@dataclass(frozen=True)
class JudgeOptions:
    """Options that say how outputs are judged."""

    output: str = option("", "The output that the labels tell, of several.", unit="NAME")
    regression: bool = option(
        False, "Labels are numbers to predict. Labels that are not whole always are."
    )
    windows: str = option(
        "",
        "Of a file with several inferences (a sound), the outputs that count: each one, their "
        "mean, their max, the last. Default: each; last for a model that keeps state.",
        unit="each|mean|max|last",
        complete=completion.one_of("each", "mean", "max", "last"),
    )
    threshold: float = option(
        0.5,
        "The score from which on a model with one score says yes, and a keyword is accepted; in "
        "the unit of the output.",
        unit="SCORE",
    )
    negatives: list[Path] | None = option(
        None,
        "Long .wav files without keywords: count false accepts an hour. May be repeated.",
        unit="DIR|FILE",
    )
    keywords: str | None = option(
        None,
        "With --negatives: the classes that are keywords, with commas between. Default: all but "
        "silence, unknown, background, noise, other, negative.",
        unit="NAMES",
    )
    hold_off: float = option(
        1.0,
        "With --negatives: after an accept none follows for so long.",
        unit="SECONDS",
        least=0.0,
    )


@grouped
def command(
    subject: Path = argument(
        "MODEL|DIR",
        "An int8 .tflite, or a QDQ or QLinear .onnx; or a folder of `thimble compile`.",
        complete=completion.models,
    ),
    board: BoardOption = "",
    *,
    asked: DataOptions,
    samples: SampleOptions,
    beside: BesideOptions,
    judge: JudgeOptions,
    line: LineOptions,
    options: Annotated[PlanOptions, without("labels", "choice", "stream_input", "streamed_input")],
    output: Output,
) -> None:
    """Count how often a model is right on labelled data: float, int8 and the board side by side.

    MODEL runs in its reference runtime (LiteRT, ONNX Runtime), and with --board also on that board.
    DIR runs on its board, and with --int8-model also in the reference. --float-model adds the model
    before it was quantised. A real board that is not here is replaced by an emulated one with its
    core, clock and memories, which runs the same C: a line says so. Firmware for a board at a port
    must be on it: compile, flash, and give DIR.

    Classes: accuracy with its interval of 95%, top-5, precision, recall and F1 of each class, and
    what was taken for what. Numbers: MAE, RMSE and R2. Boxes (--decode): COCO's mAP. Keywords
    (--negatives): false accepts an hour. Board and reference are also compared byte by byte.

    The figures of the board, else those of the reference, are conditions of --fail-on by name:
    `accuracy < 90%`, `map_50 < 0.4`, `mae > 2`, `false_accepts_per_hour > 1`; those of other
    runtimes as `runtimes.float.accuracy`.

    Example: `thimble accuracy model.tflite --data test/ --labels folders --resize --range 0..1
    --float-model model.onnx --board nucleo-f446re --fail-on "accuracy < 90%"`
    """
    conditions = gates(output.fail_on)
    is_folder = subject.is_dir()
    if output.html and not (board or is_folder):
        raise InputError("--html shows a build: name its board, with --board, or a folder")
    _check_options(options, is_folder=is_folder)
    names = () if asked.classes is None else read_labels(asked.classes)
    words = [word.strip() for word in (judge.keywords or "").split(",")]
    if not judge.negatives and judge.keywords:
        raise InputError("--keywords is for --negatives, which are not given")
    negatives = [file for path in judge.negatives or () for file in expanded(path)]
    with progress(remaining=True) as step:
        result = measure_accuracy(
            subject,
            asked.data,
            asked.labels,
            board,
            float_model=beside.float_model,
            int8_model=beside.int8_model,
            scaling=samples.scaling(),
            classes=names,
            output=judge.output,
            regression=judge.regression,
            windows=judge.windows,
            threshold=judge.threshold,
            negatives=negatives,
            keywords=[word for word in words if word],
            hold_off=judge.hold_off,
            limit=asked.limit,
            options=options,
            port=line.port,
            limit_seconds=line.timeout,
            report=step,
        )
    if result.on_board is not None:
        note_stand_in(result.board, result.ran_on)
    if result.compiled is not None:
        warn_of_plan(result.compiled.plan)
    fields = accuracy_json(result)
    if output.json:
        write_json(output.json, fields)
    if output.html:
        _write_page(output.html, subject, result, fields)
    if output.has_tables:
        console = output_console()
        for part in accuracy_lines(result):
            console.say(part) if isinstance(part, str) else console.print(part)
    check(conditions, fields)


def _check_options(options: PlanOptions, *, is_folder: bool) -> None:
    """Raises InputError for options of planning beside a folder, which is planned already. Its
    --decode may be given for the other runtimes."""
    if is_folder and options != PlanOptions(decode=options.decode):
        raise InputError(
            "a compiled folder has its plan: leave out the options of planning but --decode"
        )


def _write_page(target: str, subject: Path, result: Accuracy, fields: dict[str, Any]) -> None:
    """The page of the build that was measured."""
    made = (
        folder_findings(subject)
        if result.compiled is None
        else compiled_findings(result.compiled, subject)
    )
    write_findings(target, with_accuracy(made, fields))
