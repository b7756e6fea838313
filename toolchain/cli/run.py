"""`thimble run`: a compiled model on one input, or on a sequence of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.markup import escape
from rich.table import Table

from toolchain.boards import naming
from toolchain.cli._boxes import box_table, boxes_in
from toolchain.cli._console import note_stand_in, output_console, progress
from toolchain.cli._groups import argument, grouped, option
from toolchain.cli._options import LineOptions
from toolchain.cli._output import JsonOption, tell_json
from toolchain.cli._samples import (
    FORMATS,
    Class,
    LabelsOption,
    SampleOptions,
    labels_for,
    top_classes,
)
from toolchain.deployment.folder import CompiledModel, compiled_model
from toolchain.deployment.modelled_time import NoReader, find_reader
from toolchain.deployment.run import deployed
from toolchain.deployment.stand_in import firmware_here
from toolchain.files.arrays import Array
from toolchain.preprocess.samples import read_samples, real_values
from toolchain.report.text import shape, share
from toolchain.report.time import time_text
from toolchain.report.width import Shown


@grouped
def command(
    folder: Path = argument("DIR", "Folder of `thimble compile`."),
    *,
    inputs: list[Path] | None = option(
        None,
        f"Input data: {FORMATS}. Once per input; for one input as often as you like. "
        "Data for several inferences run as a sequence. Default: random data.",
        "--input",
        "-i",
        unit="FILE",
    ),
    samples: SampleOptions,
    labels: LabelsOption = None,
    seed: int = option(0, "Seed of the random inputs."),
    line: LineOptions,
    operators: bool = option(False, "Also print the time of each operator."),
    weights: Path | None = option(
        None,
        "Start an emulated board with these weights (`thimble weights`) in place of those "
        "in DIR, which was compiled with --weights-address.",
        unit="FILE",
    ),
    json: JsonOption = None,
) -> None:
    """Run one inference on the board (or in QEMU, or on this machine) and print the outputs.

    Inputs and outputs have the types of the model file; a float model's data may be float. Data for
    several inferences run one after another, and the model keeps its state between them. The
    outputs then have one more dimension, first, and the time is that of the longest run. Cycles are
    measured on silicon; for QEMU they are modelled from a trace of the executed instructions. If
    the board of DIR is not here, its C runs in QEMU on an emulated board with its core, clock and
    memories, and a line says so.

    For an image, a sound or a table, `--range` says which values the stored numbers had in
    training; an int8 input is quantised from these. If an output is one row of classes, the five
    largest are printed, with their names where they are known. A sound or an image for a model
    that was compiled with `--preprocess` becomes its input by that, as on the board.

    Example: `thimble run out --input sample.npy --operators`; or
    `thimble run out --input cat.jpg --resize --range 0..1 --labels labels.txt`
    """
    asked, model = samples.scaling(), compiled_model(folder)
    with progress() as step:
        step("starting")
        with firmware_here(folder, line.port, step) as firmware:
            reader = NoReader() if firmware is None else find_reader(firmware, line.port)
            traced = None if isinstance(reader, NoReader) else reader
            with deployed(folder, line.port, traced, weights, line.timeout, firmware) as deployment:
                step("running")
                frames = (
                    read_samples(inputs, deployment.inputs, asked, model.source())
                    if inputs
                    else [deployment.random(np.random.default_rng(seed))]
                )
                done = deployment.run_sequence(frames, step)
                time = deployment.run_time(done)
                counts = deployment.operator_counts() if operators else ()
                ran_on = deployment.ran_on
    note_stand_in(model.board.name, ran_on)
    box_outputs = model.boxes or {}
    names = labels_for(
        labels, dict(model.labels), deployment.outputs, box_outputs.get("classes", "")
    )
    boxes = (
        boxes_in(done.outputs, box_outputs, names.get(box_outputs["classes"], ()))
        if box_outputs
        else []
    )
    top = {
        end.name: top_classes(done.outputs[end.name], end, names.get(end.name, ()))
        for end in deployment.outputs
        if end.name not in box_outputs.values()
    }
    fields = {
        **naming(model.board.name),
        "ran_on": ran_on,
        "random_seed": None if inputs else seed,
        "top": {name: [[asdict(c) for c in row] for row in rows] for name, rows in top.items()},
        "boxes": [asdict(box) for box in boxes] if box_outputs else None,
        "outputs": {
            name: {
                "shape": list(values.shape),
                "dtype": values.dtype.name,
                "data": values.tolist(),
            }
            for name, values in done.outputs.items()
        },
        "latency": {
            "total": time.total,
            "unit": time.unit,
            "milliseconds": time.milliseconds,
            "basis": time.basis.value if time.total else None,
            "instructions": time.instructions,
        },
        "operators": [
            {"name": c.name, "kind": c.kind, "count": count}
            for c, count in zip(counts, time.operators, strict=False)
        ],
    }
    if not tell_json(json, fields):
        return
    console = output_console()
    for told in _input_lines(model, frames, seed, given=bool(inputs)):
        console.say(told)
    for name, values in done.outputs.items():
        if name in box_outputs.values():
            continue
        if len(frames) > 1 and top[name]:
            console.print(_classes_table(name, top[name]))
            continue
        console.print(f"[bold]{escape(name)}[/] {values.dtype.name}[{shape(values.shape)}]")
        text = np.array2string(values, threshold=200, max_line_width=110, precision=6)
        console.say(text)
        if top[name]:
            console.say(f"Best of {values.shape[-1]:,} classes:")
        for row in top[name]:
            best = ", ".join(f"{c.label or c.index} {c.score:.4g}" for c in row)
            console.say(f"  {best}")
    if box_outputs:
        console.print(box_table(boxes) if boxes else "No box was found.")
    if counts:
        table = Table(header_style="bold")
        table.add_column("operator")
        table.add_column("kind")
        table.add_column(time.unit, justify="right")
        table.add_column("share", justify="right")
        for c, count in zip(counts, time.operators, strict=True):
            table.add_row(escape(c.name), c.kind, f"{count:,}", share(count, time.total))
        console.print(table)
    if time.total:
        text = time_text(time.total, time.unit, time.basis, time.clock_hz)
        traced_from = "" if traced is None else f" of {time.instructions:,} instructions in QEMU"
        longest = "The longest of the runs" if len(frames) > 1 else "The run"
        console.say(f"{longest} took {text}{traced_from}")
    if isinstance(reader, NoReader) and reader.reason:
        console.say(f"No cycles: {reader.reason}.")


def _classes_table(output: str, rows: Sequence[Sequence[Class]]) -> Shown:
    """A row for each sample: its best class, and the next one."""
    table = Shown(
        title=output, title_style="", header_style="bold", first_to_go=("its score", "next")
    )
    for heading in ("sample", "class", "score", "next", "its score"):
        words = heading in ("class", "next")
        table.add_column(heading, justify="left" if words else "right", no_wrap=True)
    for number, row in enumerate(rows):
        cells = [cell for c in row[:2] for cell in (str(c.label or c.index), f"{c.score:.4g}")]
        table.add_row(str(number), *map(escape, cells))
    return table


def _input_lines(
    model: CompiledModel, frames: Sequence[Mapping[str, Array]], seed: int, *, given: bool
) -> Iterator[str]:
    """A line on each input: what was in it, and the real numbers that this means."""
    if not given:
        yield f"No --input was given: random numbers, of --seed {seed}."
    several = f"; {len(frames):,} runs" if len(frames) > 1 else ""
    for end in model.inputs:
        values = np.stack([frame[end.name] for frame in frames])
        limits = np.array([values.min(), values.max()])
        real = None if values.dtype.kind == "f" else real_values(limits, end)
        means = "" if real is None else f", which means {real[0]:.4g} to {real[1]:.4g}"
        low, high = map(float, limits)
        type_text = f"{values.dtype.name}[{shape(end.model_shape)}]"
        yield f"Input {end.name}: {type_text}, {low:g} to {high:g}{means}{several}"
