"""RAM, flash and milliseconds of one network on one board, for a search among architectures.

    estimate = toolchain.evaluate(model, "nucleo-u575zi-q")
    if estimate.ram_bytes <= 64 * 1024 and estimate.milliseconds <= 20: ...

No file is written and no C is generated; a network of MobileNet's size takes some tens of
milliseconds. A float model is estimated as its int8 form with made-up weights: size and time of
int8 code hardly depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toolchain import arena, schedule
from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.cost.predicted import predicted_model
from toolchain.errors import InputError
from toolchain.frontends import front_end_of, load_model
from toolchain.ir import DType, Graph
from toolchain.ir.arena import arena_plan
from toolchain.ir.memory import footprint
from toolchain.memory import arrangement
from toolchain.memory.firmware_size import estimated_need
from toolchain.memory.plan import Plan, planned_ops
from toolchain.ops.check import check
from toolchain.ops.lowering import Lowered, lower
from toolchain.passes import KEEPING_CHANNELS, Prepared
from toolchain.passes.remove_dead_channels import RemoveDeadChannels
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.planning.ordering import choose_views
from toolchain.planning.room import with_room
from toolchain.quantise.as_int8 import as_int8
from toolchain.quantise.tensorflow import converted_keras
from toolchain.report.latency import predict_latency
from toolchain.sweep.alike import lower_alike

_CHANNEL_BYTES = 12
"""Bytes of requantisation for each output channel of a layer with weights, beside its bias."""
_SECONDS = 0.02
"""Work limit of ordering, and of placing, in seconds' worth."""
_ONNX, _KERAS = "onnx", "keras"
_FILE = Path("candidate")


@dataclass(frozen=True)
class Estimate:
    """A network's needs on a board.

    arena_bytes  of a plan that exists; none needs less than `lower_bound_bytes` with its operators
                 whole. `proved`: the two are equal.
    ram_bytes    with data and stack; `flash_bytes` with weights and code. Both are estimates.
    milliseconds of one inference, predicted (`docs/time.md`); None where the board's core has no
                 model of its time, as this computer.
    cycles       the same in cycles, or in instructions where there is no such model
    """

    arena_bytes: int
    lower_bound_bytes: int
    ram_bytes: int
    flash_bytes: int
    milliseconds: float | None
    cycles: int
    macs: int

    @property
    def proved(self) -> bool:
        return self.arena_bytes == self.lower_bound_bytes


def evaluate(
    model: object,
    board: str,
    *,
    proved: bool = False,
    options: PlanOptions | None = None,
) -> Estimate:
    """Estimate `model` on `board`.

    `model`: a Graph, the path of a .tflite or .onnx file, an onnx.ModelProto, or a Keras model
    (which TensorFlow converts first: seconds). int8, or float, which is then estimated as int8.

    Without `proved`, the operators are whole, their order and places come from quick methods, and
    `lower_bound_bytes` says how far off they may be. With `proved`, it is what `plan_model` finds
    with `options`: nearly free splits, quicker kernels for spare flash, constants in RAM; that
    takes seconds. Raises InputError and UnsupportedError for what cannot be read or compiled.
    """
    target = find_board(board)
    graph, made_up = _ready(model)
    if not proved:
        if options is not None:
            raise InputError("options are those of a plan: give proved=True, too")
        lowered = (lower_alike if made_up else lower)(graph, target.core)
        return _estimate(_quick(lowered, target), target)
    return _estimate(plan_graph(check(graph), target, options), target)


def _quick(lowered: Lowered, target: Board) -> Plan:
    """A plan without a search. Constants are not packed: their bytes are estimated."""
    problem = choose_views(lowered)
    order = schedule.scheduler(schedule.DEFAULT).schedule(problem, _SECONDS)
    made = arrangement.place(problem, order, arena.allocator(arena.DEFAULT), _SECONDS)
    placed = arena_plan(problem, order.order, made.placement, made.blocks)
    plan = Plan(
        lowered=lowered,
        board=target.name,
        schedule=made.schedule,
        arena=placed,
        operators=planned_ops(lowered, placed),
        step_bytes=footprint(problem, order.order),
        weight_bytes=_weight_bytes(lowered.graph),
    )
    return with_room(plan)


def _weight_bytes(graph: Graph) -> int:
    """Constants as they are, and what requantisation needs for each channel."""
    held = [
        graph.tensors[name]
        for op in graph.ops
        for name in op.present_inputs()
        if graph.tensors[name].is_constant
    ]
    biases = [tensor for tensor in held if tensor.dtype is DType.INT32 and tensor.quantisation]
    channels = sum(tensor.elements for tensor in biases)
    return sum(tensor.size_bytes for tensor in held) + _CHANNEL_BYTES * channels


def _estimate(plan: Plan, target: Board) -> Estimate:
    need, latency = estimated_need(plan), predict_latency(plan, predicted_model(target))
    return Estimate(
        arena_bytes=plan.arena.size_bytes,
        lower_bound_bytes=plan.schedule.lower_bound_bytes,
        ram_bytes=need.ram_bytes,
        flash_bytes=need.flash_bytes,
        milliseconds=latency.milliseconds,
        cycles=latency.total,
        macs=plan.macs,
    )


def _ready(model: object) -> tuple[Graph, bool]:
    """Any model as an int8 graph that is ready to lower, and whether its constants are made up."""
    graph = _graph_of(model)
    prepared = Prepared(graph)
    for step in KEEPING_CHANNELS:  # `check` after each would take longer than all of them
        prepared = step.run(prepared)
    if prepared.graph.computes_in_float:
        return as_int8(prepared.graph), True
    return RemoveDeadChannels().run(prepared).graph, False


def _graph_of(model: object) -> Graph:
    if isinstance(model, Graph):
        return model
    if isinstance(model, str | Path):
        return load_model(model)
    package = type(model).__module__.partition(".")[0]
    if package == _ONNX and hasattr(model, "SerializeToString"):
        data: bytes = model.SerializeToString()
        return front_end_of(_FILE, data).read(data, _FILE)
    if any(cls.__module__.partition(".")[0] == _KERAS for cls in type(model).__mro__):
        data = converted_keras(model)
        return front_end_of(_FILE, data).read(data, _FILE)
    raise InputError(
        f"{type(model).__name__} is no model that can be estimated: give a Graph, the path of a "
        ".tflite or .onnx file, an onnx.ModelProto or a Keras model"
    )
