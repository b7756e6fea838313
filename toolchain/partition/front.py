"""The input and the result of a search for ways to split: the task, and the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType

from toolchain.boards import Core
from toolchain.cost import CostModel
from toolchain.ir import Graph, MemoryProblem
from toolchain.ops.preference import Preference
from toolchain.partition.block_costs import NO_NAMES, BlockKernels, FormNames
from toolchain.partition.scheme import Scheme
from toolchain.partition.walk import Walks
from toolchain.progress import Found, Report, silent
from toolchain.search import Stopwatch, Work

DEFAULT_SECONDS = 30.0
MOST_CALLS = 4000
CTRL_C = "by Ctrl-C"


@dataclass(frozen=True)
class Task:
    """A graph to split, its memory problem and order, and the kernels that may compute it.

    `preference`: whose kernels
    the blocks are to be computed by; `names`: which of their forms may be taken that take more
    flash; None: nor those with more scratch.
    `most_calls`: blocks of one region, of all its operators.
    `walks`: of `walks_of`, if these are known.
    """

    graph: Graph
    problem: MemoryProblem
    order: Sequence[int]
    core: Core
    costs: CostModel
    preference: Preference = Preference.AUTO
    names: FormNames | None = field(default_factory=lambda: NO_NAMES)
    most_calls: int = MOST_CALLS
    walks: Walks | None = None


def walks_of(task: Task) -> Walks:
    """The walks of regions of the task's graph, its operators in the task's order."""
    ordered = task.graph.with_ops([task.graph.ops[i] for i in task.order])
    return Walks(BlockKernels(ordered, task.core, task.preference))


@dataclass(frozen=True)
class Point:
    """A point of the front: predicted peak in bytes, extra cost in the cost model's unit.

    `titles`: of the kernels that operators have, by name, where it is not the first.
    """

    peak_bytes: int
    extra: int
    schemes: tuple[Scheme, ...]
    titles: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Front:
    """Points by decreasing peak and rising cost.

    `total` is the cost of the unsplit graph with the quickest kernel for every operator. `stopped`:
    why the search ended early; empty where it did not.
    `others`: lists of points that are predicted to be no better than these, but whose arenas may be
    smaller because they consist of other schemes. `even`: the front without blocks of different
    heights, whose tensors are easier to lay out; None where none were tried.
    """

    points: tuple[Point, ...]
    total: int
    seconds: float
    stopped: str = ""
    others: tuple[tuple[Point, ...], ...] = ()
    even: Front | None = None

    def slowdown(self, point: Point) -> float:
        """The cost of a point as a fraction of the unsplit graph's cost."""
        return point.extra / self.total if self.total else 0.0


class Watch:
    """The work budget and the progress messages of a search. As a context it ends it at Ctrl-C.

    `seconds` limits work to what one core does in about that time. No clock ends the search, so a
    busy machine finds what an idle one does. Code inside the context must keep what it has found in
    a place that survives an interrupt at any moment.
    """

    def __init__(self, seconds: float = DEFAULT_SECONDS, report: Report = silent) -> None:
        self._limit = seconds
        self._stopwatch = Stopwatch()
        self.work = Work(seconds)
        self._report = report
        self.stopped = ""
        self._found: Found = ()

    @property
    def seconds(self) -> float:
        """Seconds by the clock since the beginning, for reports."""
        return self._stopwatch.seconds

    def over(self) -> bool:
        """Whether the work is used up; the search must then end with what it has found."""
        if self.work.over:
            self.stopped = f"after {self._limit:g} s' worth of work"
        return bool(self.stopped)

    def tell(
        self, text: str, peak_bytes: float = math.inf, slowdown: float = 0.0, found: Found = ()
    ) -> None:
        """Report what is being tried, the best result so far, and all results so far (or, without
        `found`, those told before)."""
        self._found = found or self._found
        best = f", best {peak_bytes:,} B at {slowdown:.1%}" if peak_bytes < math.inf else ""
        done = min(round(100 * self.work.spent_seconds / self._limit), 100) if self._limit else 100
        self._report(f"splitting operators: {text}{best}", done, 100, self._found)

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.stopped = CTRL_C
            return True
        return False
