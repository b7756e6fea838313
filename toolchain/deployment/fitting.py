"""On which boards a model fits, and how fast it would be there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolchain.boards import Board
from toolchain.deployment.measurements import cost_model
from toolchain.errors import DoesNotFitError, UnsupportedError
from toolchain.memory.firmware_size import MemoryNeed, check_fit, estimated_need
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report, silent
from toolchain.report.latency import predict_latency

CORES = (
    *("cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33"),
    *("cortex-m7", "cortex-m55", "cortex-m85"),
)
"""From the cheapest chips' to the dearest's."""


@dataclass(frozen=True)
class Fit:
    """The fit of a model on a board; `why_not` is empty where it fits.

    `split`: it fits because operators were split into blocks. `cycles`, `milliseconds`: predicted
    or measured, 0 where it does not fit.
    """

    board: Board
    need: MemoryNeed | None = None
    cycles: float = 0.0
    milliseconds: float = 0.0
    split: bool = False
    why_not: str = ""


def fits(
    model: str | Path, boards: Sequence[Board], options: PlanOptions, report: Report = silent
) -> tuple[Fit, ...]:
    """One for each board: those that it fits first, by core, then by RAM and flash of the board.

    Where it does not fit whole, operators are split for the RAM that the board has. Raises
    InputError if the file is not a model that can be read.
    """
    results = []
    for number, board in enumerate(boards):
        report(f"planning for {board.name}", number, len(boards))
        results.append(_fit(model, board, options))
    return tuple(sorted(results, key=_rank))


def _rank(fit: Fit) -> tuple[bool, int, int, int, str]:
    board = fit.board
    core = CORES.index(board.core.name) if board.core.name in CORES else len(CORES)
    return bool(fit.why_not), core, board.ram_bytes, board.flash_bytes, board.name


def _fit(model: str | Path, board: Board, options: PlanOptions) -> Fit:
    why_not = ""
    for asked in _ways(board, options):
        try:
            plan = plan_model(model, board.name, asked, costs=cost_model(board.name))
            check_fit(plan)
        except (DoesNotFitError, UnsupportedError) as error:
            why_not = str(error).splitlines()[0]
            continue
        latency = predict_latency(plan, cost_model(board.name))
        return Fit(
            board,
            estimated_need(plan),
            latency.total,
            1e3 * latency.total / board.clock_hz if board.clock_hz else 0.0,
            split=plan.unsplit_bytes > 0,
        )
    return Fit(board, why_not=why_not)


def _ways(board: Board, options: PlanOptions) -> Iterator[PlanOptions]:
    yield options
    if options.ram_bytes is None and options.max_slowdown is None:
        yield replace(options, ram_bytes=board.ram_bytes)
