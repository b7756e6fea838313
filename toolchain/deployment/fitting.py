"""On which boards a model fits, and how fast it would be there."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolchain.boards import Board, Core
from toolchain.cost import CostModel
from toolchain.deployment.measurements import cost_model
from toolchain.errors import DoesNotFitError, UnsupportedError
from toolchain.ir import Graph
from toolchain.memory.firmware_size import (
    MemoryNeed,
    check_fit,
    check_flash_possible,
    check_possible,
    estimated_need,
    least_weight_bytes,
)
from toolchain.memory.plan import Plan
from toolchain.planner import Network, Planner, read_network
from toolchain.planning.choices import Choices
from toolchain.planning.known import planned_alike
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

    Where it does not fit whole, operators are split for the RAM that the board has. Boards that are
    alike (`planned_alike`) are planned once; those whose RAM or flash holds no plan by a lower
    bound, not at all. Raises InputError if the file is not a model that can be read.
    """
    try:
        network = read_network(model, options, report)
    except UnsupportedError as error:
        return tuple(sorted((Fit(board, why_not=_told(error)) for board in boards), key=_rank))
    results, possible = [], []
    planner = Planner(network.graph, options, network.boundaries)
    weight_bytes = least_weight_bytes(planner.graph)
    for board in boards:
        try:
            _check_possible(planner.graph, board, options, weight_bytes)
        except DoesNotFitError as error:
            results.append(Fit(board, why_not=_told(error)))
        else:
            possible.append(board)
    for group in _alike(possible):
        plans: dict[int | None, Plan] = {}
        for board, costs in group:
            report(f"planning for {board.name}", len(results), len(boards))
            results.append(_fit(planner, network, board, costs, options, plans))
    return tuple(sorted(results, key=_rank))


_Group = list[tuple[Board, CostModel]]


def _alike(boards: Sequence[Board]) -> Iterator[_Group]:
    """Boards that are planned alike, each with its costs. Boards of one core come behind each
    other, and among them boards of equal costs.
    """
    cores: dict[Core, dict[Hashable, dict[Hashable, _Group]]] = {}
    for board in boards:
        costs = cost_model(board.name)
        alike = cores.setdefault(board.core, {}).setdefault(costs.identity, {})
        alike.setdefault(planned_alike(board, costs.identity), []).append((board, costs))
    for of_core in cores.values():
        for of_costs in of_core.values():
            yield from of_costs.values()


def _rank(fit: Fit) -> tuple[bool, int, int, int, str]:
    board = fit.board
    core = CORES.index(board.core.name) if board.core.name in CORES else len(CORES)
    return bool(fit.why_not), core, board.ram_bytes, board.flash_bytes, board.name


def _fit(
    planner: Planner,
    network: Network,
    board: Board,
    costs: CostModel,
    options: PlanOptions,
    plans: dict[int | None, Plan],
) -> Fit:
    """`plans`: those that were made for boards like this one, by the limit of RAM."""
    why_not = ""
    for asked in _ways(board, options):
        try:
            if asked.ram_bytes not in plans:
                found = planner.candidates(board, asked, costs=costs)
                plans[asked.ram_bytes] = Choices(found, network.removed, network.about).asked
            plan = replace(plans[asked.ram_bytes], board=board.name)
            check_fit(plan)
        except (DoesNotFitError, UnsupportedError) as error:
            why_not = _told(error)
            continue
        latency = predict_latency(plan, costs)
        return Fit(
            board,
            estimated_need(plan),
            latency.total,
            1e3 * latency.total / board.clock_hz if board.clock_hz else 0.0,
            split=plan.unsplit_bytes > 0,
        )
    return Fit(board, why_not=why_not)


def _told(error: DoesNotFitError | UnsupportedError) -> str:
    return str(error).splitlines()[0]


def _check_possible(graph: Graph, board: Board, options: PlanOptions, weight_bytes: int) -> None:
    """Raise DoesNotFitError, before anything is planned, where no plan can fit the board."""
    for asked in _ways(board, options):
        if asked.ram_bytes is not None:
            check_possible(graph, asked.ram_bytes)
    check_flash_possible(graph, board, weight_bytes)


def _ways(board: Board, options: PlanOptions) -> Iterator[PlanOptions]:
    yield options
    if options.ram_bytes is None and options.max_slowdown is None:
        yield replace(options, ram_bytes=board.ram_bytes)
