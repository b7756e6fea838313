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
from toolchain.report.latency import Latency, predict_latency

CORES = (
    *("cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33"),
    *("cortex-m7", "cortex-m55", "cortex-m85"),
)
"""From the cheapest chips' to the dearest's."""


FEW = ("nucleo-g071rb", "nucleo-f446re", "nucleo-u575zi-q", "nucleo-h743zi", "nucleo-n657x0-q")
"""The boards that `thimble plan` shows side by side where none is named: a usual one of each core
that is sold most (M0+, M4, M33, M7, M55)."""


@dataclass(frozen=True)
class Fit:
    """The fit of a model on a board: a plan with its latency, or the error where it does not fit.

    `split`: it fits because operators were split into blocks.
    """

    board: Board
    plan: Plan | None = None
    latency: Latency | None = None
    error: DoesNotFitError | UnsupportedError | None = None

    @property
    def need(self) -> MemoryNeed | None:
        return None if self.plan is None else estimated_need(self.plan)

    @property
    def split(self) -> bool:
        return self.plan is not None and self.plan.unsplit_bytes > 0

    @property
    def cycles(self) -> float:
        """Predicted or measured; 0 where it does not fit."""
        return 0.0 if self.latency is None else self.latency.total

    @property
    def milliseconds(self) -> float:
        """At the board's clock; 0 where it does not fit."""
        return 1e3 * self.cycles / self.board.clock_hz if self.board.clock_hz else 0.0

    @property
    def why_not(self) -> str:
        """The first line of the error; '' where it fits."""
        return "" if self.error is None else str(self.error).splitlines()[0]


def fits(
    model: str | Path, boards: Sequence[Board], options: PlanOptions, report: Report = silent
) -> tuple[Fit, ...]:
    """One for each board: those that it fits first, by core, then by RAM and flash of the board.

    Where it does not fit whole, operators are split for the RAM that the board has. Boards that are
    alike (`planned_alike`) are planned once; those whose RAM or flash holds no plan by a lower
    bound, not at all. Without CP-SAT arenas are in one piece. Raises InputError if the file is not
    a model that can be read.
    """
    try:
        network = read_network(model, options, report)
    except UnsupportedError as error:
        return tuple(sorted((Fit(board, error=error) for board in boards), key=_rank))
    results, possible = [], []
    cores = len({board.core for board in boards})
    planner = Planner(network.graph, options, network.boundaries, cores=cores)
    weight_bytes = least_weight_bytes(planner.graph)
    for board in boards:
        try:
            _check_possible(planner.graph, board, options, weight_bytes)
        except DoesNotFitError as error:
            results.append(Fit(board, error=error))
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
    return fit.error is not None, core, board.ram_bytes, board.flash_bytes, board.name


def _fit(
    planner: Planner,
    network: Network,
    board: Board,
    costs: CostModel,
    options: PlanOptions,
    plans: dict[int | None, Plan],
) -> Fit:
    """`plans`: those that were made for boards like this one, by the limit of RAM."""
    refused = None
    for asked in _ways(board, options):
        try:
            if asked.ram_bytes not in plans:
                found = planner.candidates(board, asked, costs=costs)
                plans[asked.ram_bytes] = Choices(found, network.removed, network.about).asked
            plan = replace(plans[asked.ram_bytes], board=board.name)
            check_fit(plan)
        except (DoesNotFitError, UnsupportedError) as error:
            refused = error
            continue
        return Fit(board, plan, predict_latency(plan, costs))
    return Fit(board, error=refused)


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
