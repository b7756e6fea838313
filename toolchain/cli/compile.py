"""`thimble compile`: a model file to C, ELF, bin and hex."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from toolchain.boards import Board, naming
from toolchain.boards import board as find_board
from toolchain.cli import _completion as completion
from toolchain.cli._console import note_kept, note_replaced, output_console, progress, warn_of_plan
from toolchain.cli._groups import argument, grouped, option
from toolchain.cli._options import (
    BoardOptions,
    CodeOptions,
    PortOption,
)
from toolchain.cli._output import Output, tell_json, write_json
from toolchain.cli._page import compiled_findings, write_findings
from toolchain.cli._planning import print_memory
from toolchain.cli._remedies import more_remedies
from toolchain.deployment.compile import (
    Compiled,
    SharedCompiled,
    compile_library,
    compile_model,
    compile_shared,
    compiled_json,
    compiled_need,
    known_latency,
)
from toolchain.deployment.folder import last_board
from toolchain.errors import InputError
from toolchain.planning.options import PlanOptions
from toolchain.report.gates import check, gates
from toolchain.report.plan import left_to_copy_lines, split_lines
from toolchain.report.text import boundary_line
from toolchain.report.time import time_text
from toolchain.report.tuning import tuning_table
from toolchain.timing.tuning import Tuning
from toolchain.timing.tuning import tune as tune_model


@dataclass(frozen=True)
class FormOptions:
    """Options of the form of the result: C alone, several models, the name."""

    library: bool = option(
        False, "Write only sources, the list of CMSIS-NN files they need, and a CMakeLists.txt."
    )
    share_arena: bool = option(
        False,
        "Put models that run one at a time into one firmware with one arena. "
        "Each model gets a folder in DIR.",
    )
    name: str = option(
        "",
        "Name of the model in C: prefix of its functions, and of its files. "
        "Default: made from the model file's name.",
        unit="NAME",
    )


@grouped
def command(
    models: list[Path] = argument(
        "MODEL",
        "An int8 .tflite file, or a QDQ or QLinear .onnx; several with --share-arena.",
        complete=completion.models,
    ),
    *,
    on: BoardOptions,
    out: Path = option(
        Path("build/model"), "Folder to write, completely or not at all.", "-o", unit="DIR"
    ),
    form: FormOptions,
    tune: bool = option(
        False,
        "First get the missing latencies from the board, until the plan does not change: cycles, "
        "measured, or modelled from a trace if the board is emulated.",
    ),
    port: PortOption = None,
    options: PlanOptions,
    code: CodeOptions,
    output: Output,
) -> None:
    """Generate C for a model and build firmware for a board.

    Without --board, that of the last build in DIR is taken, and a line says so; another line says
    where a build for another board was replaced.

    DIR gets the sources, `plan.json`, and `firmware.elf`, `.bin`, `.hex`, `.map`. Exits 1 if the
    model does not fit the board. With --tune, kernels without a known latency are first timed: on
    the board at --port, or in QEMU, modelled from a trace. The plan is then made again with the
    results.

    DIR also gets `.thimble.json`, the list of its files. A later run replaces only listed files. It
    refuses a folder that it did not write, or in which files were added or changed; --force
    replaces the listed files and keeps the rest.

    Example: `thimble compile model.tflite --board nucleo-f446re -o out`; with
    `thimble compile wake.tflite words.tflite -b nucleo-f446re --share-arena -o out`,
    `thimble run out/words`.
    """
    if len(models) > 1 and not form.share_arena:
        raise InputError(f"{len(models)} models: --share-arena puts them into one firmware")
    external = code.external()
    if external is not None and form.share_arena:
        raise InputError("--weights external is for one model: leave out --share-arena")
    if options.preprocess and form.share_arena:
        raise InputError("--preprocess is for one model: leave out --share-arena")
    if form.name and form.share_arena:
        raise InputError("--name names one model: leave out --share-arena, or rename the files")
    if options.labels and form.share_arena:
        raise InputError("--labels names the classes of one model: leave out --share-arena")
    conditions = gates(output.fail_on)
    output.check_apart(out)
    before = last_board(out)
    board = on.named(options, out)
    target = find_board(board)
    begin = time.perf_counter()
    tuning = None
    if form.share_arena:
        if output.html:
            raise InputError("--html shows one model: leave out --share-arena")
        if tune:
            raise InputError("--tune works on one model at a time: leave out --share-arena")
        with progress() as step:
            shared = compile_shared(
                models,
                board,
                out,
                options,
                code.cmsis_nn,
                step,
                library=form.library,
                force=code.force,
            )
        for made in shared.models:
            warn_of_plan(made.plan)
        note_kept(board)
        note_replaced(out, before, target.name)
        check(conditions, _report_shared(shared, board, output.json, time.perf_counter() - begin))
        return
    (model,) = models
    with progress() as step, more_remedies(model, options):
        if tune:
            tuning = tune_model(model, board, options, port, code.cmsis_nn, report=step)
        make = compile_library if form.library else compile_model
        compiled = make(
            model,
            board,
            out,
            options,
            code.cmsis_nn,
            step,
            force=code.force,
            name=form.name,
            external=external,
        )
    warn_of_plan(compiled.plan)
    note_kept(board)
    note_replaced(out, before, target.name)
    fields = compiled_json(compiled.plan, compiled.sizes, compiled.sources.stack)
    if output.json:
        tuned = {"tuning": asdict(tuning)} if tuning else {}
        seconds = time.perf_counter() - begin
        write_json(output.json, {**fields, **tuned, "seconds": seconds, "folder": str(out)})
    if output.html:
        write_findings(output.html, compiled_findings(compiled, model))
    if output.has_tables:
        _report(compiled, out, target, tuning)
    check(conditions, fields)


def _report(compiled: Compiled, out: Path, target: Board, tuning: Tuning | None) -> None:
    console = output_console()
    if tuning is not None:
        console.print(tuning_table(tuning.rounds))
        if not tuning.settled:
            console.print("The plans did not settle: each needed kernels that the last had not.")
    plan, sizes = compiled.plan, compiled.sizes
    held_bytes = sizes.pushed_bytes if sizes else 0
    print_memory(plan, compiled_need(plan, sizes), target, known_latency(plan), held_bytes)
    if sizes is None:
        for line in left_to_copy_lines(plan):
            console.say(line)
    if compiled.sources.weights is not None:
        for line in weights_lines(compiled):
            console.say(line)
    for end in (*compiled.plan.inputs, *compiled.plan.outputs):
        if end.boundary is not None:
            console.print(boundary_line(end), markup=False)
    console.print(f"Written to {out}", markup=False)


def weights_lines(compiled: Compiled) -> Iterator[str]:
    """Lines on the place of the weights, and on the models that may take it."""
    weights = compiled.sources.weights
    assert weights is not None
    at = "" if weights.address is None else f", at {weights.address:#x}"
    size = f"{len(weights.data):,} B"
    yield f"Weights outside of the code: {compiled.sources.weights_file}, {size}{at}."
    if fetched := compiled.plan.arena.fetch_bytes:
        name = max(fetched, key=lambda name: fetched[name])
        yield (
            f"The arena has room for those of two operators at a time, at most {fetched[name]:,} B "
            f"each ({name})."
        )
    if compiled.plan.removed.channels:
        yield (
            "Channels that cannot change an output were removed: other weights must leave the "
            "same ones without effect, or compile with --keep-dead-channels."
        )


def _report_shared(
    shared: SharedCompiled, board: str, json: str | None, seconds: float
) -> dict[str, Any]:
    """Print several models that share an arena; return the fields of --json."""
    result: dict[str, Any] = {
        **naming(board),
        "folder": str(shared.folder),
        "arena_bytes": shared.arena_bytes,
        "models": [
            compiled_json(made.plan, made.sizes, made.sources.stack) for made in shared.models
        ],
        "seconds": seconds,
    }
    if shared.sizes is not None:
        result |= {
            "ram_bytes": shared.sizes.ram_bytes,
            "flash_bytes": shared.sizes.flash_bytes,
            "code_bytes": shared.sizes.code_bytes,
        }
    if not tell_json(json, result):
        return result
    console, target = output_console(), find_board(board)
    table = Table(title=f"{len(shared.models)} models on {board}, one at a time")
    table.add_column("model")
    table.add_column("arena", justify="right")
    table.add_column("one inference")
    table.add_column("run it")
    for made in shared.models:
        size, known = f"{made.plan.arena.size_bytes:,} B", known_latency(made.plan)
        time = time_text(known.total, known.unit, known.basis, known.clock_hz)
        to_run = escape(f"thimble run {made.folder}")
        table.add_row(escape(made.plan.graph.name), size, time, to_run)
    console.print(table)
    for made in shared.models:
        for line in split_lines(made.plan):
            console.print(f"{made.plan.graph.name}: {line}", markup=False)
    apart = sum(made.plan.arena.size_bytes for made in shared.models)
    console.print(f"One arena of {shared.arena_bytes:,} B; {apart:,} B if each had its own.")
    if shared.sizes is not None:
        console.print(
            f"RAM {shared.sizes.ram_bytes:,} B of {target.ram_bytes:,}, "
            f"flash {shared.sizes.flash_bytes:,} B of {target.flash_bytes:,}."
        )
    console.print(f"Written to {shared.folder}", markup=False)
    return result
