"""A graph on the board: its bytes beside the reference's, its counts beside the prediction."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from toolchain.codegen import generate
from toolchain.contact.document import Sample
from toolchain.contact.visit import Visit
from toolchain.cost.basis import CYCLES, Basis
from toolchain.cost.predicted import predicted_model
from toolchain.deployment.measurements import basis_of
from toolchain.deployment.modelled_time import NoReader, find_reader
from toolchain.device.build import build
from toolchain.device.session import Session, pattern_inputs
from toolchain.ir import DType, Graph, Sources, Tensor
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.report.latency import kernel_keys, predict_latency

_RUNS = 3
"""The first finds caches empty; the quicker of the others is warm."""


@dataclass(frozen=True)
class Ran:
    """Runs of one graph. `totals`, `counts`: of each run the whole, and each operator that the
    firmware counts, in `unit`. `predicted`: likewise; () in another unit. `differing`, `elements`:
    of each output, over all runs. `stack_bytes`: the most that was used.
    """

    plan: Plan
    sources: Sources
    unit: str
    basis: Basis
    totals: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]
    predicted: tuple[int, ...]
    differing: Mapping[str, int]
    elements: Mapping[str, int]
    stack_bytes: int
    flash_bytes: int

    @property
    def cold(self) -> int:
        """The first run."""
        return self.totals[0]

    @property
    def warm(self) -> int:
        """The quickest of the others."""
        return min(self.totals[1:])

    def sample(self, index: int, kind: str) -> Sample | None:
        """The counted operator `index`; None where its time has no key: it moves no bytes, depends
        on data, or is split.
        """
        numbers = self.sources.operators[index].numbers
        key = kernel_keys(self.plan)[numbers[0]]
        if key is None or len(numbers) > 1:
            return None
        first, *others = (run[index] for run in self.counts)
        outputs = self.plan.graph.ops[numbers[0]].outputs
        return Sample(
            kind=kind,
            kernel=key.kernel,
            shape=key.shape,
            unit=self.unit,
            basis=self.basis,
            cold=first,
            warm=min(others),
            predicted=self.predicted[index] if self.predicted else 0,
            elements=sum(self.elements.get(name, 0) for name in outputs),
            differing=sum(self.differing.get(name, 0) for name in outputs),
        )


def ran(
    visit: Visit,
    graph: Graph,
    options: PlanOptions,
    name: str,
    more: Callable[[Session, int], None] | None = None,
) -> Ran:
    """Plan, build, flash and run a graph. The board makes integer inputs by itself. `more`: what
    else is asked of the open session, with the count of the quickest run.

    Raises DoesNotFitError where it does not fit, and as `Visit.put` and `Session.run_pattern` do.
    """
    board = visit.board
    plan = plan_graph(graph, board, options)
    sources = generate(plan, board.core, cmsis_nn.find(visit.desk.cmsis_nn_folder), name="m")
    firmware = build(
        [(plan, sources)],
        board,
        visit.folder / name,
        cmsis_nn_folder=visit.desk.cmsis_nn_folder,
    )
    reader = find_reader(firmware, visit.desk.port)
    memory = None if isinstance(reader, NoReader) else reader.memory
    session = visit.put(firmware, memory)
    differing, elements = dict.fromkeys(plan.graph.outputs, 0), dict.fromkeys(plan.graph.outputs, 0)
    totals: list[int] = []
    counts: list[tuple[int, ...]] = []
    states: dict[str, Array] = {}
    for run in range(_RUNS):
        total, got, want = _inference(session, plan, run, states)
        totals.append(total)
        counts.append(tuple(op.count for op in session.operator_counts()))
        for output in plan.graph.outputs:
            differing[output] += _differing(
                got[output], want[output], inexact=_inexact(plan, output)
            )
            elements[output] += want[output].size
    used = session.memory_use()
    unit = session.hello.unit
    costs = predicted_model(visit.board)
    if not isinstance(reader, NoReader):
        modelled = reader.read(session.trace())
        unit = CYCLES
        costs = predicted_model(reader.target)
        totals = [one.total for one in modelled.runs]
        counts = [one.operators for one in modelled.runs]
    if more is not None:
        more(session, min(totals[1:]))
    visit.leave()
    each = predict_latency(plan, costs).counts
    predicted = [sum(each[number] for number in op.numbers) for op in sources.operators]
    return Ran(
        plan=plan,
        sources=sources,
        unit=unit,
        basis=basis_of(board),
        totals=tuple(totals),
        counts=tuple(counts),
        predicted=tuple(predicted) if costs.unit == unit else (),
        differing=differing,
        elements=elements,
        stack_bytes=used.stack_bytes,
        flash_bytes=firmware.sizes.flash_bytes,
    )


def _inference(
    session: Session, plan: Plan, run: int, states: dict[str, Array]
) -> tuple[int, Mapping[str, Array], Mapping[str, Array]]:
    """The count of a run, its outputs and those of the reference, by name. Every run has the same
    inputs."""
    graph = plan.graph
    inputs = pattern_inputs(session.firmware, 1)
    written = {
        name: _drawn(graph.tensors[name]) for name in inputs if not _any_bytes(graph.tensors[name])
    }
    inputs |= written
    done = session.run_pattern(1, written)
    expected = interpret(graph, [inputs[name] for name in graph.inputs], states)
    return done.count, done.outputs, dict(zip(graph.outputs, expected, strict=True))


def _any_bytes(tensor: Tensor) -> bool:
    """Whether any bytes are values of the tensor."""
    return tensor.dtype not in (DType.FLOAT32, DType.BOOL)


def _drawn(tensor: Tensor) -> Array:
    rng = np.random.default_rng(zlib.crc32(tensor.name.encode()))
    if tensor.dtype is DType.BOOL:
        return rng.random(tensor.shape) < 0.5
    return rng.normal(size=tensor.shape).astype(np.float32)


def _inexact(plan: Plan, output: str) -> bool:
    """Whether the kernel of an output says that it may be off by one."""
    pairs = zip(plan.graph.ops, plan.operators, strict=True)
    return any(planned.inexact for op, planned in pairs if output in op.outputs)


def _differing(got: Array, want: Array, *, inexact: bool) -> int:
    """Elements that are not the reference's; NaNs are equal."""
    if inexact:
        return int((np.abs(got.astype(np.int64) - want.astype(np.int64)) > 1).sum())
    return int((~np.equal(got, want) & ~((got != got) & (want != want))).sum())
