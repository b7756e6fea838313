"""`thimble schedule`: the order of operators with the smallest peak, and what is proved about
it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from rich.table import Table

from toolchain import passes, schedule
from toolchain.boards import board as find_board
from toolchain.cli._console import output_console, progress
from toolchain.cli._groups import argument, grouped, only, option
from toolchain.cli._options import BoardOption, named_board
from toolchain.cli._output import JsonOption, tell_json
from toolchain.errors import InputError, ResultError
from toolchain.frontends import load_model
from toolchain.frontends.neutral import is_neutral, read_neutral
from toolchain.ir import MemoryProblem
from toolchain.memory.off_chip import off_chip_traffic
from toolchain.ops.lowering import lower
from toolchain.planning.options import PlanOptions
from toolchain.planning.ordering import choose_views


@grouped
def command(
    graph: Path = argument("GRAPH_OR_MODEL", "A neutral .json graph, or an int8 .tflite or .onnx."),
    *,
    options: Annotated[PlanOptions, only("scheduler")],
    budget: int | None = option(
        None,
        "Stop at the first order with at most this peak; exit 1 if there is none.",
        unit="BYTES",
    ),
    time_limit: float | None = option(
        None,
        "Work limit, after which the best order so far is printed, in seconds that it "
        "takes on one core of a desktop computer. No clock is read: the order is the same on "
        "every machine.",
        unit="S",
    ),
    on_chip: int | None = option(
        None, "Also report off-chip traffic with this much on-chip memory (Belady).", unit="BYTES"
    ),
    board: BoardOption = "",
    json: JsonOption = None,
) -> None:
    """Find the order of operators that needs the least memory, and say whether that is proved.

    For a model, the scratch memory of its operators is that of the kernels of --board. In a neutral
    graph only tensors count.

    Example: `thimble schedule graph.json --scheduler auto --time-limit 10`
    """
    for name, value in (("budget", budget), ("time-limit", time_limit), ("on-chip", on_chip)):
        if value is not None and value < 0:
            raise InputError(f"--{name} is {value}; it cannot be negative")
    method = schedule.scheduler(options.scheduler)
    with progress() as step:
        step(f"reading {graph}")
        title, problem, names = _problem(graph, board)
        step(f"ordering {len(problem.ops)} operators")
        order = method.schedule(problem, time_limit, budget)
    result: dict[str, Any] = {
        "graph": title,
        "scheduler": order.method,
        "operators": len(problem.ops),
        "peak_bytes": order.peak_bytes,
        "lower_bound_bytes": order.lower_bound_bytes,
        "proved_optimal": order.proved_optimal,
        "seconds": order.seconds,
    }
    if budget is not None:
        result |= {"budget_bytes": budget, "budget_met": order.peak_bytes <= budget}
    if on_chip is not None:
        traffic = off_chip_traffic(problem, order.order, on_chip)
        result["traffic"] = {
            "on_chip_bytes": on_chip,
            "read_bytes": traffic.read_bytes,
            "written_bytes": traffic.written_bytes,
            "total_bytes": traffic.total_bytes,
        }
    result["order"] = [names[op] for op in order.order]
    if tell_json(json, result):
        output_console().print(_table(result))
    if budget is not None and order.peak_bytes > budget:
        known = "no order does" if order.lower_bound_bytes > budget else "none was found that does"
        raise ResultError(
            f"the best order peaks at {order.peak_bytes:,} B, above the budget of {budget:,} B; "
            f"{known} (lower bound {order.lower_bound_bytes:,} B)"
        )


def _problem(path: Path, board: str) -> tuple[str, MemoryProblem, list[int | str]]:
    """The graph's name, its memory problem, and the operators' names in the file."""
    if is_neutral(path):
        graph = read_neutral(path)
        return graph.name, graph.memory_problem(), [node.id for node in graph.nodes]
    model = passes.prepare(load_model(path)).graph
    problem = choose_views(lower(model, find_board(named_board(board)).core))
    return model.name, problem, list(problem.ops)


def _table(result: dict[str, Any]) -> Table:
    proof = (
        "proved optimal"
        if result["proved_optimal"]
        else f"not proved: at least {result['lower_bound_bytes']:,} B"
    )
    table = Table(title=f"{result['graph']}: {result['operators']} operators", show_header=False)
    table.add_row("scheduler", result["scheduler"])
    table.add_row("peak", f"{result['peak_bytes']:,} B, {proof}")
    table.add_row("time", f"{result['seconds']:.3f} s")
    if "traffic" in result:
        traffic = result["traffic"]
        table.add_row(
            f"off-chip traffic with {traffic['on_chip_bytes']:,} B on chip",
            f"{traffic['total_bytes']:,} B "
            f"({traffic['read_bytes']:,} read, {traffic['written_bytes']:,} written)",
        )
    return table
