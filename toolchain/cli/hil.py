"""`thimble hil`: hardware in the loop, the tests of every board of a bench."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer
from rich.table import Table

from toolchain.bench.run import BenchRun, run_bench
from toolchain.cli._console import output_console
from toolchain.cli._groups import argument, grouped, option
from toolchain.cli._output import JsonOption, tell_json
from toolchain.resources import EXAMPLES


@grouped
def command(
    bench: Path = argument("BENCH", "bench.toml: the boards, and how to reach them."),
    *,
    models: Path = option(
        EXAMPLES,
        "Folder of .tflite and .onnx files; each runs on every board that it fits. Default: the "
        "bundled digits network.",
    ),
    soak: int = option(50, "Inferences of the soak test.", least=1),
    select: str = option("", "Only tests whose names match, as pytest's -k.", "-k", unit="TEXT"),
    junit: Path | None = option(None, "Write the results as JUnit XML, too.", unit="FILE"),
    json: JsonOption = None,
) -> None:
    """Test every board of a bench: the line, the firmware, your models, byte for byte.

    Boards that QEMU emulates are started; the others are flashed where they have other firmware,
    and powered off and on where they hang and the file says how. pytest reports on standard error,
    a failed board does not stop the others. Exits 1 if a test fails or none ran.

    Example: `thimble hil bench.toml --models models --junit hil.xml`
    """
    done = run_bench(bench, models=models, soak=soak, select=select, junit=junit)
    if tell_json(json, _document(done)):
        output_console().print(_table(done))
    if not done.passed:
        raise typer.Exit(1)


def _document(done: BenchRun) -> dict[str, object]:
    return {
        "passed": done.count("passed"),
        "failed": done.count("failed"),
        "skipped": done.count("skipped"),
        "tests": [asdict(test) for test in done.tests],
    }


def _table(done: BenchRun) -> Table:
    table = Table(header_style="bold")
    for heading in ("board", "passed", "failed", "skipped"):
        table.add_column(heading, justify="left" if heading == "board" else "right")
    for board in done.boards:
        numbers = [done.count(outcome, board) for outcome in ("passed", "failed", "skipped")]
        table.add_row(board, *map(str, numbers))
    return table
