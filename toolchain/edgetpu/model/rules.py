"""The rules that a pipeline must meet to run in Google's PipelinedModelRunner: constraints, checks.

Outputs of the model come from the last stage. Only the first stage reads its inputs. Every stage
receives and sends at least one tensor. Operators that share state stay together. How stages are
written (`split.py`) takes care of names and of tensors that skip stages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from toolchain.edgetpu.model.figures import StageOf, Totals
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.errors import InputError, ResultError


@dataclass(frozen=True)
class Rules:
    """The rules for one model.

    `unit_of`: operators of one unit stay in one stage; units are numbered in a topological order.
    `first` and `last` are the units that must be in the first and the last stage. Every stage needs
    at least one of the units `anchored`.
    """

    unit_of: tuple[int, ...]
    units: int
    predecessors: tuple[frozenset[int], ...]
    first: frozenset[int]
    last: frozenset[int]
    anchored: frozenset[int]

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """For each unit those that read what it writes, in their order."""
        users: list[list[int]] = [[] for _ in range(self.units)]
        for unit, predecessors in enumerate(self.predecessors):
            for before in predecessors:
                users[before].append(unit)
        return tuple(map(tuple, users))

    @property
    def free(self) -> int:
        """Anchored units that are not bound to the first or the last stage."""
        return len(self.anchored - self.first - self.last)


def rules_of(graph: PipelineGraph, same_stage_children: bool = False) -> Rules:
    """The rules of a model; `same_stage_children` adds formulation (14)."""
    groups: list[tuple[int, ...]] = []
    owners: dict[int, list[int]] = {}
    for index, op in enumerate(graph.ops):
        for state in op.states:
            owners.setdefault(state, []).append(index)
    groups += [tuple(members) for members in owners.values()]
    if same_stage_children:
        groups += [users for users in graph.consumers.values() if len(users) > 1]
    unit_of, units = _contract(graph, groups)
    before: list[set[int]] = [set() for _ in range(units)]
    for index, members in enumerate(graph.predecessors):
        before[unit_of[index]].update(unit_of[b] for b in members if unit_of[b] != unit_of[index])
    readers = {u for t in graph.inputs for u in graph.consumers.get(t, ())}
    writers = {graph.producer[t] for t in graph.outputs}
    first = {unit_of[index] for index in readers}
    for unit in reversed(range(units)):
        if unit in first:
            first |= before[unit]
    last = {unit_of[index] for index in writers}
    for unit in range(units):
        if before[unit] & last:
            last.add(unit)
    return Rules(
        unit_of,
        units,
        tuple(frozenset(members) for members in before),
        frozenset(first),
        frozenset(last),
        frozenset(unit_of[index] for index in graph.anchored),
    )


def check_stages(graph: PipelineGraph, rules: Rules, stages: int) -> None:
    """Raise InputError, with the rule and the remedy, if `stages` stages are impossible."""
    if stages < 1:
        raise InputError(f"{stages} stages: at least one is needed")
    if stages > len(graph.ops):
        raise InputError(
            f"{graph.name} has {len(graph.ops)} operators, too few for {stages} stages; "
            f"ask for at most {len(graph.ops)}"
        )
    if stages == 1:
        return
    if not rules.anchored:
        raise InputError(
            f"{graph.name}: no operator leads from an input of the model to an output; "
            "such a model cannot be a pipeline"
        )
    both = rules.first & rules.last
    if both:
        index = next(i for i, unit in enumerate(rules.unit_of) if unit in both)
        raise InputError(
            f"{graph.name}: operator {index} ({graph.ops[index].kind}) would have to lie in the "
            f"first stage (an input of the model is read there or behind it) and in the last (an "
            f"output of the model is written there or before it): {_late_end(graph)}; "
            "export the model without that end, or use one stage"
        )
    most = rules.free + (1 if rules.first else 0) + (1 if rules.last else 0)
    if stages > most:
        raise InputError(
            f"{graph.name} can be cut into at most {most} stages, not {stages}: inputs of the "
            "model must be read in the first stage and outputs written in the last "
            f"(PipelinedModelRunner), and every stage needs an operator between them; "
            f"{_late_end(graph)}; ask for at most {most} stages"
        )


def _late_end(graph: PipelineGraph) -> str:
    """The input read latest and the output written earliest, in words."""
    latest = ""
    if graph.inputs:
        read, tensor = max((min(graph.consumers.get(t, (0,))), t) for t in graph.inputs)
        latest = f"input {graph.tensors[tensor].name!r} is first read by operator {read}, "
    written, output = min((graph.producer[t], t) for t in graph.outputs)
    return f"{latest}output {graph.tensors[output].name!r} is written by operator {written}"


def _contract(
    graph: PipelineGraph, groups: Iterable[tuple[int, ...]]
) -> tuple[tuple[int, ...], int]:
    """Unit of each operator: groups together, with everything that lies between their members."""
    parent = list(range(len(graph.ops)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for group in groups:
        for index in group[1:]:
            parent[root(index)] = root(group[0])
    edges: dict[int, set[int]] = {root(i): set() for i in range(len(graph.ops))}
    for index, sources in enumerate(graph.predecessors):
        for before in sources:
            if root(before) != root(index):
                edges[root(before)].add(root(index))
    component, count = _components(edges)
    # Tarjan numbers components against the edges, so that counting down is a topological order.
    return tuple(count - 1 - component[root(i)] for i in range(len(graph.ops))), count


def _components(edges: dict[int, set[int]]) -> tuple[dict[int, int], int]:
    """Strongly connected components, numbered in reverse topological order (Tarjan)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    component: dict[int, int] = {}
    stack: list[int] = []
    count = 0
    for start in edges:
        if start in number:
            continue
        work = [(start, iter(sorted(edges[start])))]
        number[start] = low[start] = len(number)
        stack.append(start)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in number:
                    number[successor] = low[successor] = len(number)
                    stack.append(successor)
                    work.append((successor, iter(sorted(edges[successor]))))
                    break
                if successor not in component:
                    low[node] = min(low[node], number[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    while True:
                        member = stack.pop()
                        component[member] = count
                        if member == node:
                            break
                    count += 1
    return component, count


def check_plan(
    graphs: Sequence[PipelineGraph],
    assigned: Sequence[StageOf],
    totals: Totals,
    *,
    stages: int,
    balance: str,
    cache_bytes: int,
    runnable: bool = True,
    beside: Collection[int] = (),
) -> None:
    """Raise ResultError if a plan breaks a rule or its totals are wrong.

    The check is independent: it has no code of the solvers or of `figures.py`.

    `assigned`: the stage of each operator, by graph. `balance`: which parameter sizes were
    balanced. `cache_bytes`: the cache of a stick. `runnable=False` skips the rules of the runner,
    which a baseline may break. `beside`: the stages that are on no stick, and spill nothing.
    """
    for graph, stage_of in zip(graphs, assigned, strict=True):
        for line in broken_rules(graph, stage_of, stages):
            if runnable or "before operator" in line:
                raise ResultError(f"the plan is wrong, please report this: {line}")
    communication, held = 0, [0] * stages
    for graph, stage_of in zip(graphs, assigned, strict=True):
        for tensor, writer in graph.producer.items():
            for stage in range(stages):
                readers = [u for u in graph.consumers.get(tensor, ()) if stage_of[u] == stage]
                if readers and stage_of[writer] != stage:
                    communication += graph.tensors[tensor].size_bytes
        if balance == "compiled":
            for op, stage in zip(graph.ops, stage_of, strict=True):
                held[stage] += op.compiled_bytes
            continue
        at: dict[int, set[int]] = {}
        for op, stage in zip(graph.ops, stage_of, strict=True):
            for constant in op.constants:
                at.setdefault(constant, set()).add(stage)
        for constant, places in at.items():
            for stage in places:
                held[stage] += graph.constant_bytes[constant]
    spill = sum(max(0, size - cache_bytes) for k, size in enumerate(held) if k not in beside)
    for what, ours, told in (
        ("largest stage", max(held), totals.max_stage_bytes),
        ("spill", spill, totals.spill_bytes),
        ("communication", communication, totals.communication_bytes),
    ):
        if ours != told:
            raise ResultError(
                f"the plan is wrong, please report this: {what} is {ours} bytes, not {told}"
            )


def broken_rules(graph: PipelineGraph, stage_of: tuple[int, ...], stages: int) -> list[str]:
    """Every rule of dependency and of the runner that an assignment breaks, as text."""
    broken = []
    for index, sources in enumerate(graph.predecessors):
        if not 0 <= stage_of[index] < stages:
            broken.append(f"operator {index} is in stage {stage_of[index]} of {stages}")
        broken += [
            f"operator {index} runs in stage {stage_of[index]}, before operator {before}"
            for before in sources
            if stage_of[before] > stage_of[index]
        ]
    for tensor in graph.inputs:
        broken += [
            f"operator {user} reads the model's input {graph.tensors[tensor].name!r} in stage "
            f"{stage_of[user]}, not in the first"
            for user in graph.consumers.get(tensor, ())
            if stage_of[user]
        ]
    for tensor in graph.outputs:
        if stage_of[graph.producer[tensor]] != stages - 1:
            broken.append(
                f"the model's output {graph.tensors[tensor].name!r} is written in stage "
                f"{stage_of[graph.producer[tensor]]}, not in the last"
            )
    for stage in range(stages):
        operators = [index for index, at in enumerate(stage_of) if at == stage]
        written = {t for index in operators for t in graph.ops[index].outputs}
        read = {t for index in operators for t in graph.ops[index].inputs} - written
        passed = {
            t for t in written if any(stage_of[u] > stage for u in graph.consumers.get(t, ()))
        }
        if not operators:
            broken.append(f"stage {stage} has no operators")
        elif not read:
            broken.append(f"stage {stage} receives nothing")
        elif stage < stages - 1 and not passed:
            broken.append(f"stage {stage} passes nothing on")
    owners: dict[int, int] = {}
    for index, op in enumerate(graph.ops):
        for state in op.states:
            if stage_of[owners.setdefault(state, index)] != stage_of[index]:
                broken.append(f"operators {owners[state]} and {index} share state")
    return broken
