"""`make demo`: the bundled model compiled for an STM32F405 and run there on real samples.

python examples/digits/demo.py [--board NAME] [--port PORT] [--images N]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from evaluate import HERE, held_out, litert_classes
from rich.console import Console
from rich.progress import track
from rich.table import Table

from toolchain import compile_model, deployed, profile_folder
from toolchain.boards import board as find_board
from toolchain.deployment.compile import compiled_need
from toolchain.errors import ThimbleError
from toolchain.report.plan import memory_table, proof_line
from toolchain.report.text import share
from toolchain.report.time import time_text

SHADES = " .:-=+*#%@"
SHOWN = 4
PER_LINE = 15


def picture(image: np.ndarray) -> list[str]:
    """An image [8, 8, 1] of grey in 0..1 as lines of characters."""
    levels = (image[..., 0] * (len(SHADES) - 1)).round().astype(int)
    return ["".join(SHADES[level] * 2 for level in row) for row in levels]


def run(board: str, port: str | None, count: int, console: Console) -> bool:
    """Compile, run, report. True if the board agrees with LiteRT on every image."""
    model = HERE / "digits_int8.tflite"
    out = Path("build") / "demo"
    with console.status("compiling"):
        compiled = compile_model(model, board, out)
    target = find_board(board)
    need = compiled_need(compiled.plan, compiled.sizes)
    console.rule(f"{model.name} on {target.title}")
    console.print(memory_table(compiled.plan, need, target.ram_bytes, target.flash_bytes))
    console.print(proof_line(compiled.plan))

    images, labels = held_out()
    images, labels = images[:count], labels[:count]
    (source,) = compiled.plan.inputs
    quantised = np.clip(
        np.round(images / source.tensor.q.scale) + source.tensor.q.zero_point, -128, 127
    ).astype(np.int8)
    classes = []
    with deployed(out, port) as deployment:
        for image in track(quantised, "running on the board", console=console, transient=True):
            done = deployment.run({source.name: image[None]})
            (scores,) = done.outputs.values()
            classes.append(int(scores.argmax()))
        used = deployment.memory_use()
    with console.status("timing the operators"):
        profile = profile_folder(out, port)

    console.rule("samples")
    rows = [picture(image) for image in images[:SHOWN]]
    for lines in zip(*rows, strict=True):
        console.print("   ".join(lines), markup=False, highlight=False)
    pairs = list(zip(labels, classes, strict=True))
    console.print("   ".join(f"is {t}, says {c}".ljust(16) for t, c in pairs[:SHOWN]))
    console.print("\nall samples, digit>class:")
    for start in range(0, count, PER_LINE):
        cells = (
            f"{t}>{c}" if t == c else f"[bold red]{t}>{c}[/]"
            for t, c in pairs[start : start + PER_LINE]
        )
        console.print("  ".join(cells), highlight=False)
    results = Table(header_style="bold", title=f"{count} held-out images")
    for heading in ("digit", "images", "board right", "wrong as"):
        results.add_column(heading, justify="left" if heading == "wrong as" else "right")
    for digit in range(10):
        own = [c for c, t in zip(classes, labels, strict=True) if t == digit]
        wrong = ", ".join(str(c) for c in own if c != digit)
        results.add_row(str(digit), str(len(own)), str(own.count(digit)), wrong)
    console.print(results)

    console.rule("operators")
    table = Table(header_style="bold")
    table.add_column("operator")
    table.add_column(profile.unit, justify="right")
    table.add_column("share", justify="right")
    for part in profile.operators:
        table.add_row(part.name, f"{part.count:,}", share(part.count, profile.total))
    console.print(table)

    reference = litert_classes(images)
    right, agree = int((labels == classes).sum()), int((reference == classes).sum())
    console.rule("result")
    console.print(f"Accuracy on the board: {right} of {count}, {share(right, count)}")
    console.print(f"LiteRT on the same images gives the same class on {agree} of {count}")
    time = time_text(profile.total, profile.unit, profile.basis, profile.clock_hz)
    console.print(f"An inference takes {time}")
    reserved = f" of the {compiled.sizes.stack_bytes:,} B reserved" if compiled.sizes else ""
    console.print(f"Most stack used: {used.stack_bytes:,} B{reserved}")
    return agree == count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--board", default="netduinoplus2")
    parser.add_argument("--port", help="serial port of a real board")
    parser.add_argument("--images", type=int, default=450, help="how many of the 450")
    arguments = parser.parse_args()
    console = Console()
    try:
        count = max(1, min(arguments.images, len(held_out()[1])))
        return 0 if run(arguments.board, arguments.port, count, console) else 1
    except ThimbleError as error:
        console.print(f"error: {error}", markup=False)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
