"""`thimble plan`: memory and operators of a model, without generating any file."""

from __future__ import annotations

from typing import Annotated

from toolchain.cli._groups import grouped, option, without
from toolchain.cli._options import BoardOptions, ModelArgument
from toolchain.cli._output import Output
from toolchain.planning.options import PlanOptions
from toolchain.report.fronts import names as format_names


@grouped
def command(
    model: ModelArgument,
    *,
    on: BoardOptions,
    options: Annotated[PlanOptions, without("labels", "preprocess")],
    pareto: bool = option(False, "List the plans to choose from: RAM, flash and predicted time."),
    blocks: bool = option(
        False, "A row for each block of a split operator, in place of one for all of them."
    ),
    plot: str | None = option(
        None,
        "Write that list to a file, too; its ending is the format: "
        f"{', '.join(format_names())} (svg for -).",
        unit="FILE|-",
    ),
    output: Annotated[Output, without("html")],
) -> None:
    """Show whether a model fits, its memory, its peak, and an operator table. Generates no files.

    Code size is an estimate. Latency is in cycles, and in milliseconds at the board's clock. It is
    predicted by formula, except for operators whose time `thimble cost` has, measured or modelled
    from a trace. `--pareto` adds a list of choices of RAM, flash and time; `compile --choice` takes
    a row of it. Exits 1 if the model does not fit the board.

    Without --board, five usual boards are shown side by side, from Cortex-M0+ to Cortex-M55; the
    JSON is that of the first that holds the model, with a row for each under `boards`.

    Example: `thimble plan model.tflite --board nucleo-l476rg`
    """
    from toolchain.cli._planning import show_plan  # --help needs no planner
    from toolchain.cli._remedies import more_remedies

    with more_remedies(model, options):
        show_plan(model, on.sized(on.board, options), options, pareto, plot, output, blocks=blocks)
