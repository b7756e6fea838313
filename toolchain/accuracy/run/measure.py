"""How right a model is on labelled data: float, reference and board side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from toolchain.accuracy.run.columns import Column, board_column, float_column, reference_column
from toolchain.accuracy.run.result import Accuracy, Measured
from toolchain.accuracy.run.running import Running
from toolchain.accuracy.run.subject import (
    Subject,
    subject_beside,
    subject_of_folder,
    subject_of_model,
)
from toolchain.accuracy.run.tasks import ClassesTally
from toolchain.accuracy.run.work import Asked, Data, work_of
from toolchain.accuracy.samples.inputs import InputReader
from toolchain.deployment.compile import Compiled, compile_model
from toolchain.deployment.run import deployed
from toolchain.deployment.stand_in import firmware_here
from toolchain.device.patience import RUN_SECONDS
from toolchain.errors import FloatModelError, InputError
from toolchain.files import scratch_folder
from toolchain.ir import End
from toolchain.planning.options import PlanOptions
from toolchain.preprocess.samples import AS_STORED, Scaling, files_of
from toolchain.progress import Report, silent
from toolchain.quantise.float_model import open_float
from toolchain.reference import RuntimeProcess, open_reference


def measure_accuracy(  # noqa: PLR0913 - the public interface: a keyword each
    model: str | Path,
    data: Data,
    labels: str | Path | NDArray[Any],
    board: str = "",
    *,
    float_model: str | Path | None = None,
    int8_model: str | Path | None = None,
    scaling: Scaling = AS_STORED,
    classes: Sequence[str] = (),
    output: str = "",
    regression: bool = False,
    windows: str = "",
    threshold: float = 0.5,
    negatives: Sequence[str | Path] = (),
    keywords: Sequence[str] = (),
    hold_off: float = 1.0,
    limit: int | None = None,
    options: PlanOptions | None = None,
    port: str | None = None,
    limit_seconds: float = RUN_SECONDS,
    report: Report = silent,
) -> Accuracy:
    """Run labelled samples and count how often the model is right, in each runtime.

    model        an int8 file: its reference runtime runs it, and with `board` the board (or the
                 emulated one that stands for it). Or a folder of `compile_model`: its board runs
                 it, and with `int8_model`, the file that was compiled, the reference.
    data         files and folders as `read_samples` takes them, `FILE.npz:NAME` for one array of
                 several; or an array of [samples, ...].
    labels       "folders": `data` holds a folder for each class. A .csv of files and labels. An
                 array, .npy, .npz or .csv with labels in the order of the samples. For a model with
                 boxes a .csv, or COCO's .json.
    float_model  the float .onnx or .tflite that `model` was quantised from, to run beside it.
    scaling      what stored numbers mean.
    classes      names of the classes, in the model's order; default: those in the model file.
    output       the output that is judged, where there are several.
    regression   labels are numbers to predict. Labels that are not whole are so without it.
    windows      of samples with several inferences (sounds), which outputs count: each, mean, max,
                 last. Default: each; last for a model that keeps state.
    threshold    the score from which on a single score means the second class, and a keyword is
                 accepted, in the unit of the output.
    negatives    sounds without keywords: false accepts are counted. `keywords`: the classes that
                 are keywords, by default all but silence, unknown, noise and the like; `hold_off`:
                 seconds after an accept in which none follows.
    limit        at most so many samples, taken evenly.
    options      how to plan, and how the input is made (`preprocess`) and boxes (`decode`).
    limit_seconds  of one inference.

    Raises InputError, naming file and line, for data and labels that cannot be read or do not fit,
    and what `compile_model` raises; LinkError where the board fails; MissingToolError.
    """
    asked = Asked(
        tuple(classes),
        output,
        regression,
        windows,
        threshold,
        tuple(keywords),
        hold_off,
        limit,
    )
    given = options or PlanOptions()
    path, process = Path(model), RuntimeProcess(limit_seconds)
    beside = None if float_model is None else Path(float_model)
    with ExitStack() as stack:
        stack.enter_context(_beside_int8(path))
        folder: Path | None = None
        compiled: Compiled | None = None
        file: Path | None = path
        if path.is_dir():
            folder, file = path, None if int8_model is None else Path(int8_model)
            subject = _of_folder(path, file, board, given)
        elif int8_model is not None:
            raise InputError(f"{path} is the int8 model itself: a compiled folder needs its file")
        elif board:
            folder = stack.enter_context(scratch_folder()) / "build"
            compiled = compile_model(path, board, folder, given, report=report)
            subject = subject_of_folder(folder, compiled.plan.graph)
        else:
            subject = subject_of_model(path, given)
        columns: list[Column] = []
        ran_on, wide = "", tuple[End, ...]()
        if beside is not None:
            opened = open_float(beside, limit_seconds)
            columns.append(float_column(opened, beside, subject, given))
            wide = opened.inputs
        reader = InputReader(subject.inputs, scaling, subject.source, wide)
        work = work_of(asked, subject, reader, data, labels)
        if file is not None:
            columns.append(reference_column(open_reference(file, process, given.reading), subject))
        if folder is not None:
            firmware = stack.enter_context(firmware_here(folder, port, report))
            deployment = stack.enter_context(
                deployed(folder, port, None, None, limit_seconds, firmware)
            )
            columns.append(board_column(deployment))
            ran_on = deployment.ran_on
            board = deployment.board.name
        run = Running(subject, columns, [work.tally(negatives) for _ in columns], report)
        for number, item in enumerate(work.items):
            report("running samples", number, len(work.items))
            run.sample(item)
        for sound in files_of(map(Path, negatives)):
            run.recording(sound, reader)
    measured = tuple(
        Measured(
            column.name,
            column.title,
            tally.result(),
            tally.keywords.result()
            if isinstance(tally, ClassesTally) and tally.keywords is not None
            else None,
        )
        for column, tally in zip(columns, run.tallies, strict=True)
    )
    return Accuracy(
        str(model),
        board,
        ran_on,
        work.task,
        len(work.items),
        run.inferences,
        measured,
        run.agreement(),
        compiled,
    )


@contextmanager
def _beside_int8(model: Path) -> Iterator[None]:
    """The refusal of a float model says how to measure one, too."""
    try:
        yield
    except FloatModelError as error:
        raise FloatModelError(
            f"{error.message}.\nTo have its accuracy beside that of the int8 model: `thimble "
            f"accuracy INT8 --float-model {model}`",
            operator=error.operator,
        ) from error


def _of_folder(folder: Path, file: Path | None, board: str, options: PlanOptions) -> Subject:
    if board:
        raise InputError(f"{folder} is a compiled folder, which has its board: leave out {board}")
    if file is None:
        return subject_of_folder(folder)
    return subject_beside(folder, file, options)
