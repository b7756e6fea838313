"""The closed loop: plan, measure what the plan lacks, plan again, until nothing changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toolchain.boards import board as find_board
from toolchain.cost.basis import Basis
from toolchain.cost.database import Database
from toolchain.deployment.measurements import basis_of, cost_model, current_build, known_rows
from toolchain.errors import InputError
from toolchain.memory.plan import Plan
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report, silent
from toolchain.report.latency import predict_latency
from toolchain.timing.kernel_firmware import Kernel
from toolchain.timing.kernel_timing import Wire, plan_kernels, time_kernels, timed_unit

_ROUNDS = 8


@dataclass(frozen=True)
class Round:
    """One plan of the loop: its cost, and how many kernels were timed after it.

    `measured_share`: of the cost, what is measured or modelled from a trace. `arena_bytes` and
    `operators` show whether the plan itself changed.
    """

    predicted: int
    unit: str
    milliseconds: float | None
    basis: Basis
    measured_share: float
    arena_bytes: int
    operators: int
    measured_now: int


@dataclass(frozen=True)
class Tuning:
    """The rounds; the last is the settled plan's. `settled`: the last round lacked no kernel."""

    rounds: tuple[Round, ...]
    settled: bool


def tune(
    model: str | Path,
    board: str,
    options: PlanOptions | None = None,
    port: str | None = None,
    cmsis_nn_folder: Path | None = None,
    database: Database | None = None,
    report: Report = silent,
) -> Tuning:
    """Time on `board` (at `port`, or in QEMU) what plans of `model` run, until one settles.

    The operators before they are split are timed, too: a slowdown is compared with these. A plan is
    settled when it equals the one before and all its kernels that can be have been
    timed. Raises InputError for the host, where nothing is counted.
    """
    target = find_board(board)
    if target.is_host:
        raise InputError("nothing is counted on this machine: name a board, or one in QEMU")
    unit, basis = timed_unit(target, port), basis_of(target)
    store = database or Database()
    rounds: list[Round] = []
    tried: set[Kernel] = set()
    before: object = None
    whole = plan_kernels(plan_model(model, board, (options or PlanOptions()).unsplit))
    while len(rounds) < _ROUNDS:
        costs = cost_model(board, cmsis_nn_folder, store)
        plan = plan_model(model, board, options, report, costs)
        latency = predict_latency(plan, costs)
        build = current_build(cmsis_nn_folder)
        rows = known_rows(store, board, build) if build else ()
        known = {row.key for row in rows if (row.unit, row.basis) == (unit, basis)}
        keys = {kernel.key for kernel in tried}
        kernels = {kernel.key: kernel for kernel in (*plan_kernels(plan), *whole)}
        lacking = [k for key, k in kernels.items() if key not in known and key not in keys]
        if lacking:
            time_kernels(
                lacking,
                board,
                wire=Wire(port),
                cmsis_nn_folder=cmsis_nn_folder,
                database=store,
                report=report,
            )
            tried.update(lacking)
        rounds.append(
            Round(
                predicted=latency.total,
                unit=latency.unit,
                milliseconds=latency.milliseconds,
                basis=latency.basis,
                measured_share=latency.measured_share,
                arena_bytes=plan.arena.size_bytes,
                operators=len(plan.graph.ops),
                measured_now=len(lacking),
            )
        )
        shape = _shape(plan)
        if not lacking and before in (None, shape):
            return Tuning(tuple(rounds), settled=True)
        before = shape
    return Tuning(tuple(rounds), settled=False)


def _shape(plan: Plan) -> object:
    """The order and the offsets of a plan, by which plans are compared."""
    names = tuple(plan.graph.ops[i].name for i in plan.schedule.order)
    return names, tuple(sorted(plan.arena.offsets.items()))
