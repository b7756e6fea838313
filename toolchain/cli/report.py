"""`thimble report`: one page that shows a build, or two side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from toolchain.cli._builds import PageOptions, growing_build, subject_pairs
from toolchain.cli._console import output_console, progress
from toolchain.cli._groups import argument, grouped, option, without
from toolchain.cli._output import JsonOption, write_json
from toolchain.cli._page import write_page
from toolchain.page.charts import version
from toolchain.page.document import Build
from toolchain.planning.options import PlanOptions


@grouped
def command(
    subjects: list[Path] = argument(
        "MODEL|DIR",
        "An int8 .tflite or a QDQ or QLinear .onnx, or a folder of `thimble compile`; two "
        "are shown side by side.",
    ),
    *,
    out: str = option("report.html", "The page to write.", "-o", unit="FILE|-"),
    asked: PageOptions,
    options: Annotated[PlanOptions, without("labels", "scheduler", "allocator", "preprocess")],
    json: JsonOption = None,
) -> None:
    """Write a page that shows a build: one HTML file that opens in any browser, without a network.

    It has a verdict, the arena byte by byte and step by step, the network, a table and charts of
    the operators. On request it also has the choices of RAM, flash and time, the profile with its
    hot loops, and the comparison with the reference. Two subjects, or one model and two boards, are
    shown side by side, with their differences. A model that does not fit gets a page, too.

    The charts need the extra `[report]`: `pip install 'thimble-nn[report]'`.

    Example: `thimble report model.tflite --board nucleo-f446re --pareto -o report.html`
    """
    version()
    with progress() as step:
        builds = [
            _last(growing_build(path, board, asked, options, step))
            for path, board in subject_pairs(subjects, asked.boards or [])
        ]
        step("writing the page")
        size_bytes = write_page(out, builds)
    if json:
        write_json(json, {"file": out, "bytes": size_bytes})
    if "-" not in (json, out):
        console = output_console()
        for one in builds:
            fits = "fits" if one.verdict.fits else "does not fit"
            console.say(f"{one.title}: {fits}.")
        console.print(f"Written to {out}, {size_bytes:,} B", markup=False)


def _last(builds: Iterator[Build]) -> Build:
    """The build when everything is known."""
    *_, build = builds
    return build
