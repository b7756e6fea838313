"""The path from a model file to a plan; the only module that joins the packages for planning.

file -> Graph -> rewritten -> one Kernel per operator -> order -> a place for every tensor
     -> quicker kernels, for which the flash has room
     -> split into smaller operators, where nearly free or requested -> spread over banks of RAM
     -> kernels with more scratch, where the arena has room
     -> constants and code in RAM, where that is read sooner than flash
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from toolchain import arena, passes, schedule
from toolchain.boards import Board, Core
from toolchain.boards import board as find_board
from toolchain.codegen import constant_bytes
from toolchain.cost import CostModel
from toolchain.cost.predicted import predicted_model
from toolchain.decode.append import with_boxes
from toolchain.frontends import load_model, model_labels, model_sha256
from toolchain.ir import About, Graph
from toolchain.ir.boundary import Boundary
from toolchain.ir.removed import RemovedChannels
from toolchain.memory.firmware_size import check_possible
from toolchain.memory.plan import Plan
from toolchain.memory.remembered import Remembered
from toolchain.ops.check import check
from toolchain.ops.lowering import Kernels, lower
from toolchain.ops.preference import Preference
from toolchain.passes.refuse_float import refuse_float
from toolchain.planning.choices import Choices
from toolchain.planning.front import Candidates
from toolchain.planning.known import Known
from toolchain.planning.labels import labels_of, labels_of_boxes
from toolchain.planning.nested import lay_out
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.ordering import choose_views, rewrite_identities
from toolchain.planning.placing import place
from toolchain.planning.rows import stream_input
from toolchain.planning.small import small_kernels
from toolchain.progress import Report, silent
from toolchain.search.collector import collecting_seldom


def plan_model(
    model: str | Path,
    board: str,
    options: PlanOptions | None = None,
    report: Report = silent,
    costs: CostModel | None = None,
) -> Plan:
    """Read a model file and plan it for a board. `costs` weigh the time that splitting takes.

    Without `costs`, estimates are used. Raises InputError (and UnsupportedError) for a model that
    cannot be read or compiled. Whether the plan fits the board is checked separately, by
    `check_fit`.
    """
    return plan_choices(model, board, options or PlanOptions(), report, costs).asked


def plan_choices(
    model: str | Path,
    board: str,
    options: PlanOptions,
    report: Report = silent,
    costs: CostModel | None = None,
) -> Choices:
    """The plans to choose from in RAM, flash and time. Raises as `plan_model`."""
    network = read_network(model, options, report)
    found = candidates(network.graph, find_board(board), options, network.boundaries, report, costs)
    return Choices(found, network.removed, network.about)


@dataclass(frozen=True)
class Network:
    """A model file that is ready to plan. `boundaries`, `removed`, `about`: as plans have them."""

    graph: Graph
    boundaries: tuple[Boundary, ...]
    removed: RemovedChannels
    about: About


def read_network(model: str | Path, options: PlanOptions, report: Report = silent) -> Network:
    """Read a model file. Raises InputError, and UnsupportedError, for one that cannot be read."""
    report(f"reading {model}")
    rewrites = passes.DEFAULT if options.dead_channels else passes.KEEPING_CHANNELS
    prepared = passes.prepare(load_model(model, options.reading), rewrites)
    refuse_float(prepared.graph, allowed=options.allow_float)
    outputs = [prepared.graph.tensors[name] for name in prepared.graph.outputs]
    graph, known = prepared.graph, model_labels(model)
    if options.decode is not None:
        graph = check(with_boxes(graph, prepared.boundaries, options.decode))
    labels = labels_of_boxes(graph, known, options.labels)
    labels = labels or labels_of(outputs, known, options.labels)
    about = About(model_sha256(model), labels, (Path(model).name, *options.words))
    return Network(graph, prepared.boundaries, prepared.removed, about)


def plan_graph(
    graph: Graph,
    target: Board,
    options: PlanOptions | None = None,
    boundaries: tuple[Boundary, ...] = (),
    report: Report = silent,
    costs: CostModel | None = None,
) -> Plan:
    """Order and place a graph that is ready to compile, splitting operators if `options` say so.

    All results pass their checkers. Raises DoesNotFitError, with the RAM that is needed, if no way
    to split that was found meets `options.ram_bytes`.
    """
    return candidates(graph, target, options, boundaries, report, costs).asked()


def candidates(
    graph: Graph,
    target: Board,
    options: PlanOptions | None = None,
    boundaries: tuple[Boundary, ...] = (),
    report: Report = silent,
    costs: CostModel | None = None,
) -> Candidates:
    """The plans of a graph that is ready to compile, from which options choose."""
    options = options or PlanOptions()
    return Planner(graph, options, boundaries).candidates(target, options, report, costs)


class Planner:
    """Plans of one graph for many boards; what those of one core have in common is computed once
    (`planning.known`).
    """

    def __init__(
        self,
        graph: Graph,
        options: PlanOptions,
        boundaries: tuple[Boundary, ...] = (),
        *,
        cores: int = 1,
    ) -> None:
        """`options`: but for RAM, slowdown, flash, choice and goal those of every request.

        `cores`: of the boards. Several often have the same blocks to place, which are then kept.
        """
        allocator = arena.allocator(options.allocator)
        self._allocator = Remembered(allocator) if cores > 1 else allocator
        self.graph = stream_input(graph, options.streamed_input) if options.stream_input else graph
        self._boundaries = boundaries
        self._known: dict[tuple[Core, bool], Known] = {}

    @collecting_seldom()
    def candidates(
        self,
        target: Board,
        options: PlanOptions,
        report: Report = silent,
        costs: CostModel | None = None,
    ) -> Candidates:
        """The plans for a board. Boards whose costs are alike should come one after the other."""
        if options.ram_bytes is not None:
            check_possible(self.graph, options.ram_bytes)
        key = target.core, options.optimise is Optimise.SIZE
        if key not in self._known:
            self._known[key] = self._unsplit(target, options, report)
        known, costs = self._known[key], costs or predicted_model(target)
        return Candidates(known, target, options, costs, report)

    def _unsplit(self, target: Board, options: PlanOptions, report: Report) -> Known:
        graph = lay_out(self.graph, target.core, options)
        if options.rewrite:
            graph = rewrite_identities(graph, target.core, options.scheduler, options.kernels)
        kernels = Kernels(target.core, options.kernels)
        if options.optimise is Optimise.SIZE and options.kernels is Preference.AUTO:
            kernels = small_kernels(graph, target.core)
        lowered = lower(graph, target.core, options.kernels, known=kernels)
        problem = choose_views(lowered)
        report("ordering operators")
        order = schedule.scheduler(options.scheduler).schedule(problem, options.time_limit_seconds)
        report("placing tensors")
        whole = replace(
            place(lowered, target, problem, order, options, self._allocator),
            boundaries=self._boundaries,
        )
        whole = replace(whole, weight_bytes=constant_bytes(whole))
        return Known(whole, kernels, allocator=self._allocator)
