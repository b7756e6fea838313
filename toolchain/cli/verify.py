"""`thimble verify`: compare the board's outputs with the reference's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from toolchain.boards import is_core
from toolchain.cli._console import (
    note_replaced,
    note_stand_in,
    output_console,
    progress,
    warn_of_plan,
)
from toolchain.cli._groups import grouped, option, without
from toolchain.cli._options import (
    BoardOptions,
    CodeOptions,
    LineOptions,
    ModelArgument,
)
from toolchain.cli._output import Output, write_json
from toolchain.cli._page import compiled_findings, write_findings
from toolchain.cli._samples import FORMATS, SampleOptions
from toolchain.cost.basis import INSTRUCTIONS
from toolchain.deployment.decoded import Decoding
from toolchain.deployment.folder import last_board
from toolchain.deployment.verification import (
    OutputDifference,
    Verification,
    counted_latency,
    verification_json,
    verify_model,
)
from toolchain.errors import NotJudgedError, ResultError
from toolchain.planning.options import PlanOptions
from toolchain.preprocess.samples import files_of, read_samples
from toolchain.reference import OperatorDifferences
from toolchain.report.gates import check, gates
from toolchain.report.plan import copied_lines, kernel_lines, spent_lines, split_lines
from toolchain.report.text import size
from toolchain.report.time import time_text
from toolchain.report.verification import difference_table

_SHOWN = 20


@dataclass(frozen=True)
class RunOptions:
    """Options of the runs."""

    runs: int = option(20, "Number of random inputs.", least=0)
    seed: int = option(0, "Seed of the random inputs.")
    inputs: list[Path] | None = option(
        None,
        f"Inputs to run first: {FORMATS}; for several inputs .npz. A file may hold "
        "several in sequence. May be repeated; the state is reset before each file.",
        "--input",
        "-i",
        unit="FILE",
    )


@grouped
def command(
    model: ModelArgument,
    *,
    on: BoardOptions,
    asked: RunOptions,
    samples: SampleOptions,
    out: Path | None = option(None, "Keep the build here.", "-o", unit="DIR"),
    line: LineOptions,
    options: Annotated[PlanOptions, without("labels", "choice", "preprocess")],
    code: CodeOptions,
    output: Output,
) -> None:
    """Compile, run on the board, and compare every output byte with the reference.

    TFLite files are compared with LiteRT's reference kernels, and no element may differ. Operators
    that these compute wrongly or not at all are compared with another runtime. The verdict names
    the runtimes.

    ONNX files are compared with ONNX Runtime, and each element may differ by 1. Such differences
    may grow in later operators. If an output differs by more, the run is compared operator by
    operator: each gets the inputs that ONNX Runtime gives it, and may differ by 1. The text and the
    JSON say which comparison was made, with the largest difference, and whether ONNX Runtime's own
    outputs move by more where one last bit of the input moves.

    Operators in float32: integers may differ by 1, and floats by 2^-16 of their tensor's largest
    element, because the last bits of exp, tanh and similar functions differ from those of this
    machine's C library.

    A model that keeps state is compared frame by frame, in sequences with a reset between. With
    --decode, the runtime judges the raw heads; the boxes must equal those that Thimble's NumPy
    reference makes from the board's heads.

    Exits 1 if the outputs do not match, and lists differing elements (all of them in the JSON).
    Exits 2 if no independent runtime takes the model: it is then compared with Thimble's own
    arithmetic, which proves little.

    A real board that is not here is replaced by an emulated one with its core, clock and memories,
    which runs the same C: a line says so, and `ran_on` of the JSON. Firmware for a board at a port
    must be on it: keep the build with -o, flash it, and verify again.

    The printed latency is that of the longest run by the board's counter: cycles on silicon,
    instructions in QEMU (`thimble profile` models cycles from a trace).

    Example: `thimble verify model.tflite --board mps2-an500 --runs 100`
    """
    conditions = gates(output.fail_on)
    before = "" if out is None else last_board(out)
    board = on.named(options, out)
    scaling, files = samples.scaling(), files_of(asked.inputs or ())
    if out is not None:
        output.check_apart(out)
    with progress() as step:
        result = verify_model(
            model,
            board,
            runs=asked.runs,
            seed=asked.seed,
            given=lambda ends: [read_samples([file], ends, scaling) for file in files],
            port=line.port,
            options=options,
            out=out,
            cmsis_nn_folder=code.cmsis_nn,
            force=code.force,
            external=code.external(),
            report=step,
            limit_seconds=line.timeout,
        )
    if out is not None:
        note_replaced(out, before, result.compiled.plan.board)
    named = result.board if is_core(result.board) else result.compiled.plan.board
    note_stand_in(named, result.ran_on)
    warn_of_plan(result.compiled.plan)
    if output.json:
        write_json(output.json, verification_json(result))
    if output.html:
        verified = verification_json(result)
        write_findings(output.html, compiled_findings(result.compiled, model, verified=verified))
    if output.has_tables:
        _print(result)
    if not result.passed:
        raise ResultError(_mismatch(result))
    if result.not_independent:
        raise NotJudgedError(
            f"{result.model} was not judged by an independent runtime, only by Thimble's own "
            f"arithmetic: {result.not_independent}"
        )
    check(conditions, verification_json(result))


def _largest(result: Verification) -> str:
    """The largest difference, which has four decimals."""
    return f"{result.max_difference:g}" if result.max_difference else "0.00005"


def _mismatch(result: Verification) -> str:
    text = (
        f"{result.model} on {result.board} does not match {result.reference}: "
        f"{result.differing:,} of {result.elements:,} elements differ, "
        f"by up to {result.max_difference:g}"
    )
    if result.ill_conditioned:
        text += f". {_conditioning(result)}"
    alone = result.by_operators
    if alone is None:
        return text
    who = f"The operator {alone.worst!r} alone"
    if alone.together > 1:
        who = f"{alone.together} operators up to {alone.worst!r}, between which no value is known"
    return (
        f"{text}. {who}, fed what ONNX Runtime feeds {'it' if alone.together == 1 else 'them'}, is "
        f"{alone.max_difference:g} off; {alone.differing:,} of {alone.elements:,} elements differ "
        "so"
    ).replace("feeds them, is", "feeds them, are")


def _conditioning(result: Verification) -> str:
    return (
        f"The model cannot be judged end to end: the reference moves by {result.reference_moves:g} "
        f"where one last bit of its input moves, and {result.tolerance} is allowed"
    )


def _comparison_lines(result: Verification) -> Iterator[str]:
    """Lines on outputs compared whole and operator by operator, with the largest difference of
    each.

    A model that equals its reference needs no more than the line above.
    """
    if not result.differing:
        return
    for output in result.outputs:
        if not output.differing:
            continue
        largest = f"{output.max_difference:g}" if output.max_difference else "less than 0.00005"
        unit = "steps of 2^-16 of the largest element"
        if output.unit is not None:
            unit = "units" if output.unit == 1 else f"steps of {output.unit:g}"
        yield (
            f"Compared whole, {output.output}: {output.differing:,} of {output.elements:,} "
            f"elements differ, by at most {largest} {unit}; {result.tolerance} is allowed."
            f"{_agreement(output)}"
        )
    if result.ill_conditioned:
        yield f"{_conditioning(result)}."
    alone = result.by_operators
    if alone is None:
        return
    yield (
        f"Compared operator by operator, each fed what ONNX Runtime feeds it, in "
        f"{_runs(alone.runs)}, where a whole output is further off: {alone.tensors:,} tensors "
        f"({_compared(alone)}), {alone.differing:,} of "
        f"{alone.elements:,} elements differ, by at most {alone.max_difference:g} steps"
        f"{' of 2^-16 of the largest element' if alone.in_float else ''}; "
        f"{result.tolerance} is allowed. The board's bytes are these operators'."
    )
    if result.operators_agree:
        grown = "last bits" if alone.in_float else "1"
        yield (
            f"It passes by its operators, not whole: differences of {grown} grow on their way "
            "through the model."
        )


def _compared(alone: OperatorDifferences) -> str:
    if alone.in_float:
        return "the results of the file's operators"
    return "all that the file quantises, and its float outputs"


def _agreement(output: OutputDifference) -> str:
    """The meaning of an output's differences to its user."""
    snr, top = output.agreement.snr_db, output.agreement.top_class
    said = [] if snr is None else [f" Signal to difference: {snr:g} dB."]
    if top is not None:
        said.append(f" The top class agrees in {top[0]} of {top[1]} runs.")
    return "".join(said)


def _decoding_line(decoding: Decoding) -> str:
    return (
        f"Decoding among these (boxes found: {decoding.detections:,}): {decoding.elements:,} "
        f"elements, {decoding.differing:,} differ. Thimble's NumPy reference judges them, fed with "
        "the heads that the board computed; the runtime above judges the heads."
    )


def _runs(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return f"run {shown}" if len(numbers) == 1 else f"runs {shown}{more}"


def _print(result: Verification) -> None:
    console = output_console()
    if result.differences and not (result.computes_float and result.passed):
        console.print(difference_table(result.differences[:_SHOWN]))
        if result.differing > _SHOWN:
            console.print(f"... and {result.differing - _SHOWN:,} more; --json lists them all")
    caution = " (not judged by an independent runtime)" if result.not_independent else ""
    console.print(
        f"{result.model} on {result.board}: {result.runs} runs against {result.reference}{caution}"
        ", "
        f"{result.elements:,} output elements, {result.differing:,} differ"
        + (f" (by at most {_largest(result)})" if result.differing else "")
        + "."
    )
    if result.decoding is not None:
        console.say(_decoding_line(result.decoding))
    if result.computes_float:
        console.print(
            "Float operators: allowed are 1 in integers, and in float32 outputs 2^-16 of the "
            "largest element, which counts as a difference of 1 here."
        )
    plan = result.compiled.plan
    for line in (*split_lines(plan), *spent_lines(plan), *copied_lines(plan), *kernel_lines(plan)):
        console.print(line, markup=False)
    for line in _comparison_lines(result):
        console.say(line)
    if result.count and result.memory is not None:
        latency = counted_latency(result)
        text = time_text(latency.total, latency.unit, latency.basis, latency.clock_hz)
        hint = " (thimble profile models cycles)" if latency.unit == INSTRUCTIONS else ""
        console.print(
            f"An inference takes up to {text}{hint}; touched: stack "
            f"{size(result.memory.stack_bytes)}, arena {size(result.memory.arena_bytes)}."
        )
