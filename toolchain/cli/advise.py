"""`thimble advise`: what to change in a network, by the plans of changed networks."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape
from rich.table import Table

from toolchain.cli import _completion as completion
from toolchain.cli._console import output_console, progress
from toolchain.cli._groups import grouped, option, without
from toolchain.cli._options import BoardOptions, ModelArgument
from toolchain.cli._output import JsonOption, tell_json
from toolchain.planning.options import PlanOptions
from toolchain.report.time import duration

if TYPE_CHECKING:
    from toolchain.advise import Advice, Advised

_MEASURES = {
    "time": "Layers with most of the time",
    "ram": "Layers that hold most of the arena's peak while they run",
    "flash": "Layers with most of the constants",
}
_BY = ("time", "ram", "flash")


@grouped
def command(
    model: ModelArgument,
    *,
    on: BoardOptions,
    top: int = option(10, "The most changes to show; all are in --json.", least=1),
    by: str = option(
        "",
        "Sort by what is saved of this. Default: whichever of the three is saved most.",
        unit="|".join(_BY),
        complete=completion.one_of(*_BY),
    ),
    plans: int = option(
        40,
        "The most changed networks to plan, those of the layers with the largest shares first.",
        least=1,
    ),
    time_limit: float | None = option(
        None,
        "Begin no more plans after so many seconds: what was planned by then is shown.",
        unit="SECONDS",
        least=0,
    ),
    options: Annotated[
        PlanOptions,
        without(
            *("labels", "choice", "preprocess", "max_slowdown", "splitter", "nearly_free", "fast"),
            *("stream_input", "streamed_input", "split_seconds", "allow_float"),
        ),
    ],
    json: JsonOption = None,
) -> None:
    """Say what to change in a network: each change with the finished plan of the changed network.

    First come the layers that decide the time, the RAM and the flash. Then the changes that save
    at least 2% of one of these, with how each is written in Keras and in PyTorch: channels to a
    multiple that the kernels compute at once, fewer channels, a stride one layer earlier, 5x5 as
    two 3x3, a separable convolution, a depthwise multiplier of 1, a smaller input, a ReLU for an
    activation that is an operator, weights and biases in the range of the quick rounding, channels
    that are nearly dead, float32 as int8.

    Every changed network is planned with its operators whole and the limits of `--plan fast`, and
    so is the network before. The weights are made up: the network must be trained anew, and nothing
    is known of its accuracy.

    Example: `thimble advise model.tflite --board nucleo-f446re --by ram`
    """
    from toolchain.advise import advise_model  # --help needs no planner

    begin = time.perf_counter()
    board = on.named(options)

    def go_on() -> bool:
        return time_limit is None or time.perf_counter() - begin < time_limit

    with progress(remaining=True) as step:
        advised = advise_model(model, board, options, by, plans, step, go_on)
    if tell_json(json, {**_as_json(advised), "seconds": time.perf_counter() - begin}):
        _print(advised, top)


def _as_json(advised: Advised) -> dict[str, Any]:
    from toolchain.boards import naming

    return {
        "model": advised.model,
        **naming(advised.board),
        "before": asdict(advised.before),
        "deciding": {
            measure: [asdict(layer) for layer in layers]
            for measure, layers in advised.deciding.items()
        },
        "proposed": advised.proposed,
        "planned": advised.planned,
        "advice": [
            {
                "change": one.change,
                "layer": one.proposal.layer,
                "what": one.proposal.what,
                "keras": one.proposal.keras,
                "pytorch": one.proposal.pytorch,
                "after": asdict(one.after),
                "saved": dict(one.saved),
                "train_anew": True,
            }
            for one in advised.advice
        ],
    }


def _print(advised: Advised, top: int) -> None:
    console, before = output_console(), advised.before
    console.say(
        f"{advised.model} on {advised.board}, operators whole: {_time(advised)}, RAM "
        f"{before.ram_bytes:,} B (arena {before.arena_bytes:,} B), flash {before.flash_bytes:,} B"
        f"{'' if before.fits else '; it does not fit'}."
    )
    for measure, words in _MEASURES.items():
        layers = ", ".join(f"{x.name} {x.share:.0%}" for x in advised.deciding[measure])
        console.say(f"{words}: {layers}.")
    if not advised.advice:
        console.say(f"None of {advised.planned} changes saves 2% of the time, RAM or flash.")
        return
    shown = advised.advice[:top]
    table = Table(header_style="bold")
    for heading in ("", "layer", "change", before.unit, "RAM", "flash"):
        numeric = heading in ("", before.unit, "RAM", "flash")
        table.add_column(
            heading, justify="right" if numeric else "left", overflow="fold", no_wrap=numeric
        )
    for number, one in enumerate(shown, 1):
        after = one.after
        table.add_row(
            str(number),
            escape(one.proposal.layer),
            escape(one.proposal.what) + (" [bold](fits)[/bold]" if _helps(one, advised) else ""),
            _cell(after.count, one.saved["time"]),
            _cell(after.ram_bytes, one.saved["ram"]),
            _cell(after.flash_bytes, one.saved["flash"]),
        )
    console.print(table)
    for number, one in enumerate(shown, 1):
        console.say(f"{number}. Keras: {one.proposal.keras}")
        console.say(f"   PyTorch: {one.proposal.pytorch}")
    if len(advised.advice) > top:
        console.say(f"{len(advised.advice) - top} more: --top {len(advised.advice)} shows all.")
    console.say(
        f"{advised.planned} of {advised.proposed} changed networks were planned, whole and with "
        "--plan fast, as the first line was. Weights are made up: train the network anew, and "
        "measure its accuracy."
    )


def _helps(advice: Advice, advised: Advised) -> bool:
    return advice.after.fits and not advised.before.fits


def _time(advised: Advised) -> str:
    before = advised.before
    at = "" if before.milliseconds is None else f" ({duration(before.milliseconds)})"
    return f"{before.count:,} {before.unit}{at}"


def _cell(after: int, saved: float) -> str:
    """A number, and how much less or more that is than before."""
    return f"{after:,} {-saved:+.0%}" if abs(saved) >= 0.005 else f"{after:,}"
