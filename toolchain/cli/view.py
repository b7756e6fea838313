"""`thimble view`: the page of `thimble report`, served to a browser of this machine as it grows."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

from toolchain.cli._builds import PageOptions, growing_build, subject_pairs
from toolchain.cli._console import output_console, progress
from toolchain.cli._groups import argument, grouped, only, option, without
from toolchain.cli._page import command_line
from toolchain.page.build import document
from toolchain.page.document import Build
from toolchain.page.live import LivePage
from toolchain.page.render import page, waiting_page
from toolchain.planning.options import PlanOptions
from toolchain.progress import Found


@grouped
def command(
    subjects: list[Path] = argument("MODEL|DIR", "One or two subjects, as of `thimble report`."),
    *,
    asked: Annotated[PageOptions, without("quantised")],
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
    port: int = option(0, "Port to listen on; 0: a free one.", least=0, most=65535),
    once: bool = option(False, "End when the page is complete, not at Ctrl-C."),
) -> None:
    """Serve the page of `thimble report` on this machine, and follow the work live.

    The page shows the plan first, then the profile, the comparison and the choices, as each is
    done. Its top shows the work under way, and a chart of the splits found so far. Only browsers of
    this machine are answered. Needs the extra `[report]`.

    Example: `thimble view model.tflite --board nucleo-f446re --pareto`
    """
    pairs, line = subject_pairs(subjects, asked.boards or []), command_line()
    title = " and ".join(str(path) for path in dict.fromkeys(subjects))
    with LivePage(partial(waiting_page, title, line), port) as live:
        console = output_console()
        console.say(f"The page is at {live.url}")
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
                for build in growing_build(path, board, asked, options, tell):
                    known[number] = build
                    shown = document(list(known.values()), line)
                    live.show(partial(page, shown))
        live.end("All is known.")
        if not once:
            console.say("Ctrl-C ends it.")
            with suppress(KeyboardInterrupt):
                threading.Event().wait()
