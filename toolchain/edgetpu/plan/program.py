"""The exact formulation as an integer program on CP-SAT, for one model or several at once.

Source: Yin, Zhang and Yu, "Exact Memory- and Communication-aware Scheduling of DNNs on Pipelined
Edge TPUs", SEC 2022; comments name its equations. A unit's stage is represented by y[unit, k] = "in
stage k or before". Dependencies (1) are then implications, one stage each (2) means that y rises
with k, and the content of a stage (5) is a difference of two y.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolchain import search
from toolchain.edgetpu.model.figures import StageOf, layer_bytes
from toolchain.edgetpu.model.rules import Rules
from toolchain.edgetpu.plan.cuts import Model, measured
from toolchain.edgetpu.plan.demand import Assignment, Proof
from toolchain.packages import EDGETPU, lazy
from toolchain.search import Work

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy("ortools.sat.python.cp_model", EDGETPU)

_SECONDS_PER_UNIT = 1.5
"""Seconds of CP-SAT's deterministic time."""
PICOSECONDS = 1e9
"""Picoseconds in a millisecond. Times are whole picoseconds; the time of a byte is rounded down."""


class Program:
    """The variables of all models on the same sticks, and one expression for each objective."""

    def __init__(self, models: Sequence[Model], stages: int) -> None:
        self.models, self.stages, self.cost = tuple(models), stages, models[0].cost
        self.balance = models[0].balance
        self.model: Any = cp_model.CpModel()
        self._true = self.model.new_constant(1)
        self._false = self.model.new_constant(0)
        self.by = [self._stages_of(model.rules) for model in models]
        self.params = [self._params(stage) for stage in range(stages)]
        self.objectives: dict[str, Any] = {}

    def _stages_of(self, rules: Rules) -> list[list[Any]]:
        """y[unit][k] with (1), (2) and the rules of the runner."""
        model, last = self.model, self.stages - 1
        by: list[list[Any]] = []
        for unit in range(rules.units):
            row = [model.new_bool_var("") for _ in range(last)] + [self._true]
            if unit in rules.first and last:
                model.add(row[0] == 1)
            if unit in rules.last and last:
                model.add(row[last - 1] == 0)
            for k in range(last):
                model.add_implication(row[k], row[k + 1])
            for before in rules.predecessors[unit]:
                for k in range(last):
                    model.add_implication(row[k], by[before][k])
            by.append(row)
        for stage in range(self.stages):
            model.add(sum(self._in(by, unit, stage) for unit in rules.anchored) >= 1)
        return by

    def _in(self, by: Sequence[Sequence[Any]], unit: int, stage: int) -> Any:
        """1 where a unit is in a stage, as an expression."""
        return by[unit][stage] - (by[unit][stage - 1] if stage else 0)

    def _params(self, stage: int) -> Any:
        """(5): parameter bytes of a stage over all models, a shared constant once."""
        terms = []
        for model, by in zip(self.models, self.by, strict=True):
            graph, rules = model.graph, model.rules
            weights = [0] * rules.units
            if self.balance == "compiled":
                for unit, op in zip(rules.unit_of, graph.ops, strict=True):
                    weights[unit] += op.compiled_bytes
            else:
                for constant, users in graph.constant_users.items():
                    units = {rules.unit_of[user] for user in users}
                    size = graph.constant_bytes[constant]
                    if len(units) == 1:
                        weights[next(iter(units))] += size
                        continue
                    held = self.model.new_bool_var("")
                    for unit in units:
                        self.model.add(held >= self._in(by, unit, stage))
                    terms.append(size * held)
            terms += [w * self._in(by, unit, stage) for unit, w in enumerate(weights) if w]
        return sum(terms)

    def objective(self, name: str) -> Any:
        """The variable or expression of an objective, created when it is first requested."""
        if name not in self.objectives:
            make = {
                "params": self._largest,
                "spill": lambda: sum(self._spills),
                "comm": self._communication,
                "period": self._period,
            }
            self.objectives[name] = make[name]()
        return self.objectives[name]

    def _total(self) -> int:
        if self.balance == "compiled":
            return sum(op.compiled_bytes for model in self.models for op in model.graph.ops)
        return sum(model.graph.param_bytes for model in self.models)

    def _largest(self) -> Any:
        total = self._total()
        largest = self.model.new_int_var(-(-total // self.stages), total, "params")
        for params in self.params:
            self.model.add(params <= largest)
        return largest

    @cached_property
    def _spills(self) -> list[Any]:
        """(8): what exceeds the cache of each stick."""
        total = self._total()
        spills: list[Any] = [self.model.new_int_var(0, total, "") for _ in self.params]
        for params, spill in zip(self.params, spills, strict=True):
            self.model.add(spill >= params - self.cost.cache_bytes)
        self.model.add(sum(spills) >= total - self.stages * self.cost.cache_bytes)
        return spills

    def _cuts_of(self, model: int) -> dict[tuple[int, int], Any]:
        """(9), (10): for (tensor, stage), 1 where the stage reads it from an earlier one."""
        graph, rules, by = self.models[model].graph, self.models[model].rules, self.by[model]
        booleans = {}
        for tensor, readers in graph.consumers.items():
            if tensor not in graph.producer:
                continue
            writer = rules.unit_of[graph.producer[tensor]]
            units = {rules.unit_of[user] for user in readers} - {writer}
            for stage in range(1, self.stages):
                cut = self.model.new_bool_var("")
                for unit in units:
                    self.model.add(cut >= self._in(by, unit, stage) - self._in(by, writer, stage))
                booleans[tensor, stage] = cut
            for unit in units:
                for k in range(self.stages - 1):
                    cuts = [booleans[tensor, stage] for stage in range(1, self.stages)]
                    self.model.add(sum(cuts) >= by[writer][k] - by[unit][k])
        return booleans

    @cached_property
    def _cuts(self) -> list[dict[tuple[int, int], Any]]:
        """`_cuts_of` every model."""
        return [self._cuts_of(index) for index in range(len(self.models))]

    def _communication(self) -> Any:
        terms = [
            model.graph.tensors[tensor].size_bytes * cut
            for model, cuts in zip(self.models, self._cuts, strict=True)
            for (tensor, _), cut in cuts.items()
        ]
        return sum(terms) if terms else self._false

    def _period(self) -> Any:
        """A lower bound of the period in picoseconds: parameters stream to the byte."""
        cost = self.cost
        longest = int(PICOSECONDS * 1e4)
        period = self.model.new_int_var(0, longest, "period")
        spills = self._spills
        for stage in range(self.stages):
            terms = [int(cost.call_ms * PICOSECONDS) * len(self.models)]
            terms.append(int(PICOSECONDS / cost.stream_bytes_per_ms) * spills[stage])
            for model, by, cuts in zip(self.models, self.by, self._cuts, strict=True):
                terms += self._stage_terms(model, by, cuts, stage)
            self.model.add(sum(terms) <= period)
        self.model.add(int(PICOSECONDS / cost.hub_bytes_per_ms) * sum(spills) <= period)
        return period

    def _stage_terms(
        self,
        model: Model,
        by: Sequence[Sequence[Any]],
        cuts: Mapping[tuple[int, int], Any],
        stage: int,
    ) -> list[Any]:
        """Arithmetic and transfers of one model in one stage, in picoseconds."""
        cost, graph, rules = self.cost, model.graph, model.rules
        inward, outward = PICOSECONDS / cost.in_bytes_per_ms, PICOSECONDS / cost.out_bytes_per_ms
        weights = [0] * rules.units
        for unit, time_ms in zip(rules.unit_of, model.weights_ms, strict=True):
            weights[unit] += int(PICOSECONDS * time_ms)
        terms = [w * self._in(by, unit, stage) for unit, w in enumerate(weights) if w]
        if stage == 0:
            read = [t for t in graph.inputs if t in graph.consumers]
            terms += [int(inward * graph.tensors[t].size_bytes) for t in read]
        for (tensor, at), cut in cuts.items():
            if at == stage:
                terms.append(int(inward * graph.tensors[tensor].size_bytes) * cut)
        for tensor, index in graph.producer.items():
            writer = rules.unit_of[index]
            size = int(outward * graph.tensors[tensor].size_bytes)
            if tensor in graph.outputs:
                terms.append(size * self._in(by, writer, stage))
            elif stage < self.stages - 1 and size:
                sent = self.model.new_bool_var("")
                for user in graph.consumers.get(tensor, ()):
                    unit = rules.unit_of[user]
                    self.model.add(sent >= self._in(by, writer, stage) - self._in(by, unit, stage))
                terms.append(size * sent)
        return terms

    def bound_stages(self, largest: int) -> None:
        """Limit the stages of each unit by what must come before and behind it.

        `largest`: the most bytes of a stage.
        """
        if self.balance == "compiled" or largest <= 0:
            return
        for model, by in zip(self.models, self.by, strict=True):
            graph, rules = model.graph, model.rules
            own = [0] * rules.units
            sizes = layer_bytes(graph, range(len(graph.ops)), self.balance)
            for unit, size in zip(rules.unit_of, sizes, strict=True):
                own[unit] += size
            upward, downward = _closures(rules, own)
            for unit in range(rules.units):
                earliest = -(-upward[unit] // largest) - 1
                latest = self.stages - -(-downward[unit] // largest)
                for k in range(min(earliest, self.stages - 1)):
                    self.model.add(by[unit][k] == 0)
                for k in range(max(latest, 0), self.stages - 1):
                    self.model.add(by[unit][k] == 1)

    def hint(self, stage_of: Sequence[Sequence[int]]) -> None:
        """Start from a known plan."""
        self.model.clear_hints()
        for model, by, stages in zip(self.models, self.by, stage_of, strict=True):
            unit_stage = dict(zip(model.rules.unit_of, stages, strict=True))
            for unit in range(model.rules.units):
                for k in range(self.stages - 1):
                    self.model.add_hint(by[unit][k], int(unit_stage[unit] <= k))

    def read(self, solver: cp_model.CpSolver) -> tuple[tuple[int, ...], ...]:
        """Stage of each operator of each model in the solver's solution."""
        result = []
        for model, by in zip(self.models, self.by, strict=True):
            stage = [sum(1 - int(solver.value(y)) for y in row[: self.stages - 1]) for row in by]
            result.append(tuple(stage[unit] for unit in model.rules.unit_of))
        return tuple(result)


def _closures(rules: Rules, own: Sequence[int]) -> tuple[list[int], list[int]]:
    """Bytes of everything before each unit and of everything behind it, the unit included."""
    before = [0] * rules.units
    behind = [0] * rules.units
    for unit in range(rules.units):
        before[unit] = 1 << unit
        for b in rules.predecessors[unit]:
            before[unit] |= before[b]
    for unit in reversed(range(rules.units)):
        behind[unit] |= 1 << unit
        for b in rules.predecessors[unit]:
            behind[b] |= behind[unit]

    def weigh(members: int) -> int:
        return sum(size for unit, size in enumerate(own) if size and members >> unit & 1)

    return [weigh(members) for members in before], [weigh(members) for members in behind]


def _value(models: Sequence[Model], stage_of: Sequence[StageOf], stages: int, name: str) -> int:
    """An objective of a plan, as the program counts it."""
    to_the_byte = replace(models[0].cost, whole_layers=False)
    first = replace(models[0], cost=to_the_byte)
    totals = measured([first, *models[1:]], stage_of, stages)[1]
    return {
        "params": totals.max_stage_bytes,
        "spill": totals.spill_bytes,
        "comm": totals.communication_bytes,
        "period": math.ceil(PICOSECONDS * totals.period_ms),
    }[name]


def solve(
    models: Sequence[Model],
    stages: int,
    objectives: Sequence[str],
    *,
    slack: float = 0.0,
    start: Sequence[StageOf] | None = None,
    start_params: int | None = None,
    optima: Mapping[str, int] | None = None,
    seconds: float = 60.0,
) -> Assignment | None:
    """Solve for one objective after the other, each kept (within `slack`) while the next is solved.

    start         a plan to begin with.
    start_params  its largest stage, if it is as good in all objectives before `params`, which then
                  need not exceed it.
    optima        the known optimum of each objective, those before it kept, which `start` reaches:
                  the plan is then only checked against the program.
    seconds       most work for each objective, in seconds that it takes on one core. When it is
                  used up, the plan so far is kept, with its bound.

    None if there is no plan, or none was found with so much work.
    """
    program = Program(models, stages)
    proofs: list[Proof] = []
    best = start
    for name in objectives:
        if name == "params" and start_params is not None:
            program.bound_stages(int(start_params * (1 + slack)))
        expression = program.objective(name)
        if best is not None:
            program.hint(best)
        program.model.minimize(expression)
        solver, status = search.solve(
            program.model,
            Work(seconds),
            _SECONDS_PER_UNIT,
            symmetry_level=0,
            fix_variables_to_their_hinted_value=optima is not None,
        )
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            value, bound = round(solver.objective_value), round(solver.best_objective_bound)
            best = program.read(solver)
        elif status == cp_model.UNKNOWN and best is not None:  # out of work: keep what there is
            value = _value(models, best, stages, name)
            bound = min(value, max(0, math.floor(solver.best_objective_bound)))
        else:
            return None
        if optima is not None:
            bound = min(value, optima[name])
        proofs.append(
            Proof(name, value / PICOSECONDS, bound / PICOSECONDS)
            if name == "period"
            else Proof(name, value, bound)
        )
        program.model.add(expression <= int(value * (1 + slack)))
    return Assignment(tuple(tuple(s) for s in best or ()), tuple(proofs))
