"""`thimble view`: the page of `thimble report`, served to a browser of this machine as it grows."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from toolchain.cli._builds import Asked, growing_build, subject_pairs
from toolchain.cli._console import output_console, progress
from toolchain.cli._groups import grouped, only
from toolchain.cli._page import command_line
from toolchain.page.build import document
from toolchain.page.document import Build
from toolchain.page.live import LivePage
from toolchain.page.render import page, waiting_page
from toolchain.planning.options import PlanOptions
from toolchain.progress import Found


@grouped
def command(
    subjects: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL|DIR", help="One or two subjects, as of `thimble report`."),
    ],
    *,
    boards: Annotated[
        list[str] | None,
        typer.Option("--board", "-b", help="Board name; twice for one model on two boards."),
    ] = None,
    pareto: Annotated[
        bool, typer.Option("--pareto", help="Search ways to split operators, too.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Build the firmware and time it, too.")
    ] = False,
    read_as: Annotated[
        str,
        typer.Option(
            "--as", metavar="BOARD|CHIP", help="Read the profile as of this board or chip."
        ),
    ] = "",
    verify: Annotated[
        int, typer.Option("--verify", metavar="RUNS", min=0, help="Compare so many runs, too.")
    ] = 0,
    options: Annotated[
        PlanOptions,
        only(
            "ram_bytes",
            "flash_bytes",
            "max_slowdown",
            "nearly_free",
            "stream_input",
            "streamed_input",
            "split_seconds",
        ),
    ],
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0: a free one.")
    ] = 0,
    once: Annotated[
        bool, typer.Option("--once", help="End when all is known, and not at Ctrl-C.")
    ] = False,
) -> None:
    """Serve the page of `thimble report` on this machine, and follow the work live.

    The page shows the plan at once, then the profile, the comparison and the choices as each is
    done; at its top stand the work under way, and a chart of the ways to split found so far. Only
    browsers of this machine are answered. Needs the extra `[report]`.

    Example: `thimble view model.tflite --board nucleo-f446re --pareto`
    """
    asked = Asked(options, pareto, profile or bool(read_as), read_as, verify)
    pairs, line = subject_pairs(subjects, boards or []), command_line()
    title = " and ".join(str(path) for path in dict.fromkeys(subjects))
    with LivePage(partial(waiting_page, title, line), port) as live:
        console = output_console()
        console.print(f"The page is at {live.url}", markup=False, highlight=False)
        with progress() as step:

            def tell(
                text: str,
                done: int | None = None,
                total: int | None = None,
                found: Found = (),
            ) -> None:
                step(text, done, total)
                live.report(text, done, total, found)

            known: dict[int, Build] = {}
            for number, (path, board) in enumerate(pairs):
                for build in growing_build(path, board, asked, tell):
                    known[number] = build
                    shown = document(list(known.values()), line)
                    live.show(partial(page, shown))
        live.end("All is known.")
        if not once:
            console.print("Ctrl-C ends it.", markup=False, highlight=False)
            with suppress(KeyboardInterrupt):
                threading.Event().wait()
