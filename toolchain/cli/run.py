"""`thimble run`: a compiled model on one input, or on a sequence of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from toolchain.cli._console import output_console, progress
from toolchain.cli._json import JsonOption, write_json
from toolchain.cli._options import PortOption
from toolchain.deployment.run import Deployment, deployed
from toolchain.files.arrays import Array, read_sequence
from toolchain.report.text import shape, share


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of `thimble compile`.")],
    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE",
            help="Input data: .npy, .npz (arrays by input name), or raw bytes; once per input. "
            "Data for several inferences run as a sequence. Default: random data.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="For random inputs.")] = 0,
    port: PortOption = None,
    operators: Annotated[
        bool, typer.Option("--operators", help="Also print the count of each operator.")
    ] = False,
    json: JsonOption = None,
) -> None:
    """Run one inference on the board (or in QEMU, or on this machine) and print the outputs.

    Inputs and outputs are in the model file's own types; a float model's data may be float. If the
    data are for several inferences, they run one after another and the model keeps its state
    between them. The outputs then have one more dimension, first, and the count is that of the
    longest run.

    Example: `thimble run out --input sample.npy --operators`
    """
    with progress() as step:
        step("starting")
        with deployed(folder, port) as deployment:
            step("running")
            given = read_sequence(inputs, deployment.inputs) if inputs else None
            frames = given or [_random(deployment, seed)]
            done = deployment.run_sequence(frames, step)
            counts = deployment.operator_counts() if operators else ()
    if json:
        write_json(
            json,
            {
                "outputs": {
                    name: {
                        "shape": list(values.shape),
                        "dtype": values.dtype.name,
                        "data": values.tolist(),
                    }
                    for name, values in done.outputs.items()
                },
                "latency": {"total": done.count, "unit": done.unit},
                "operators": [{"name": c.name, "kind": c.kind, "count": c.count} for c in counts],
            },
        )
    if json == "-":
        return
    console = output_console()
    for name, values in done.outputs.items():
        console.print(f"[bold]{escape(name)}[/] {values.dtype.name}[{shape(values.shape)}]")
        text = np.array2string(values, threshold=200, max_line_width=110, precision=6)
        console.print(text, markup=False, highlight=False)
    if counts:
        table = Table(header_style="bold")
        table.add_column("operator")
        table.add_column("kind")
        table.add_column(done.unit, justify="right")
        table.add_column("share", justify="right")
        for c in counts:
            table.add_row(escape(c.name), c.kind, f"{c.count:,}", share(c.count, done.count))
        console.print(table)
    if done.count:
        console.print(f"{done.count:,} {done.unit}")


def _random(deployment: Deployment, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {end.name: end.random(rng) for end in deployment.inputs}
