"""`thimble report`: one page that shows a build, or two side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from toolchain.cli._builds import Asked, growing_build, subject_pairs
from toolchain.cli._console import output_console, progress
from toolchain.cli._groups import argument, grouped, option, without
from toolchain.cli._output import JsonOption, write_json
from toolchain.cli._page import write_page
from toolchain.page.charts import version
from toolchain.page.document import Build
from toolchain.planning.options import PlanOptions


@dataclass(frozen=True)
class PageOptions:
    """Options of the parts of a page besides the plan."""

    pareto: bool = option(False, "Show the plans to choose from: RAM, flash and predicted time.")
    profile: bool = option(False, "Build the firmware, and time it where it is emulated.")
    read_as: str = option(
        "",
        "With --profile: read what the emulated board executes as this one would.",
        "--as",
        unit="BOARD|CHIP",
    )
    verify: int = option(0, "Compare so many runs with the reference.", unit="RUNS", least=0)
    quantised: Path | None = option(
        None,
        "The JSON of `thimble quantize --json FILE`: show the loss of each layer.",
        unit="FILE",
    )

    def asked(self, options: PlanOptions) -> Asked:
        """The parts that are asked for; --as asks for a profile."""
        profile = self.profile or bool(self.read_as)
        return Asked(options, self.pareto, profile, self.read_as, self.verify, self.quantised)


@grouped
def command(
    subjects: list[Path] = argument(
        "MODEL|DIR",
        "An int8 .tflite or a QDQ or QLinear .onnx, or a folder of `thimble compile`; two "
        "are shown side by side.",
    ),
    *,
    boards: list[str] | None = option(
        None,
        "Board name; twice for one model on two boards. A folder has its own.",
        "--board",
        "-b",
    ),
    out: str = option("report.html", "The page to write.", "-o", unit="FILE|-"),
    shown: PageOptions,
    options: Annotated[PlanOptions, without("labels", "scheduler", "allocator", "preprocess")],
    json: JsonOption = None,
) -> None:
    """Write a page that shows a build: one HTML file that opens in any browser, without a network.

    It has a verdict, the arena byte by byte and step by step, the network, a table and charts of
    the operators, and where they were asked for the choices of RAM, flash and time, the profile
    with its hot loops, and the comparison with the reference. Two subjects, or one model and two
    boards, are shown side by side, with what changed. A model that does not fit gets its page, too.

    The charts need the extra `[report]`: `pip install 'thimble-nn[report]'`.

    Example: `thimble report model.tflite --board nucleo-f446re --pareto -o report.html`
    """
    version()
    asked = shown.asked(options)
    with progress() as step:
        builds = [
            _last(growing_build(path, board, asked, step))
            for path, board in subject_pairs(subjects, boards or [])
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
