"""The front of finished plans in RAM, flash and time, and the one that is asked for.

Every way to compute the graph (`planning.ways`) is placed once; beyond what its tensors take, more
arena and more flash let quicker kernels in (`planning.room`). All requests choose among these
plans, so that more RAM is never slower, and more slowdown never takes more RAM. The base of
every slowdown is the quickest of them that the board and its flash hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush

from toolchain.boards import Board, Content, Memory
from toolchain.codegen import constant_bytes
from toolchain.cost import CostModel
from toolchain.cost.predicted import predicted_model
from toolchain.errors import DoesNotFitError, Overflow
from toolchain.ir import Graph, MemoryProblem
from toolchain.memory.banks import may_spread
from toolchain.memory.firmware_size import (
    estimated_need,
    firmware_data_bytes,
    least_data_bytes,
    ram_bytes,
)
from toolchain.memory.plan import NEARLY_FREE, Plan
from toolchain.memory.problem import memory_problem
from toolchain.partition.front import CTRL_C, Point
from toolchain.planning.copies import Copies, copy_banks, most_copied
from toolchain.planning.flash import check_flash, flash_spent
from toolchain.planning.known import Known, Timed, timed_alike
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.ordering import choose_views
from toolchain.planning.placing import over_banks
from toolchain.planning.room import Forms, Room
from toolchain.planning.ways import Built, Ways, built, finer, search, way_plan, ways
from toolchain.progress import Report
from toolchain.report.latency import predict_latency
from toolchain.search.collector import collecting_seldom

_LEAST_BYTES, _LEAST_SHARE = 1024, 0.05
"""A split that nobody asked for must save so many bytes, and such a share of the arena: blocks take
flash, and longer C."""


_TABLE_BYTES = 4096
"""Tables and parameters of channels, which operators may share whose weights differ, take less."""
_APART = 0.99
"""Rows of the front are shown whose arenas are so far apart."""


@dataclass(frozen=True)
class Choice:
    """A finished plan before it is told: a way, and the bytes of arena that it may take.

    `ram_bytes`: of the arena, data and stack, without copies of constants. `count`: its cost, in
    the unit of the cost model, with all copies. `flash`: whether it may take kernels whose
    constants take more of it.
    """

    way: int
    arena_bytes: int
    ram_bytes: int
    count: int
    flash: bool = True


class Candidates:
    """The plans of one graph on one board, each made when it is first asked for."""

    def __init__(
        self,
        known: Known,
        target: Board,
        options: PlanOptions,
        costs: CostModel,
        report: Report,
    ) -> None:
        """`known`: of this graph, the board's core, and these options."""
        self.whole = replace(known.whole, board=target.name)
        self.target = target
        self.options = options
        self.costs = costs
        self.report = report
        model = predicted_model(target)
        banks = copy_banks(target, options, model)
        self._copies = bool(banks)
        shared = known.shares_constants
        self._most_copied = math.inf if shared else most_copied(target, options, model)
        self._known = known
        self._timed = self._timed_by(banks)
        self._flash_bytes = options.flash_of(target)
        self._flash = options.optimise is not Optimise.SIZE and not target.is_host

    def asking(self, options: PlanOptions) -> Candidates:
        """These ways for a request that differs in RAM, slowdown and flash."""
        return Candidates(self._known, self.target, options, self.costs, self.report)

    def _timed_by(self, banks: Sequence[Memory]) -> Timed:
        """The results for this board's costs: those that are known, or else none yet."""
        named = tuple((bank.name, bank.code_origin is not None) for bank in banks)
        key = timed_alike(self.target, self.costs.identity, self.options, named)
        timed = self._known.timed
        if timed is None or timed.key != key:
            costs = self.costs.within(self.whole.graph)
            timed = Timed(key, Forms(costs, self._known.kernels, banks))
            self._known.timed = timed
        return timed

    @property
    def ways(self) -> Ways:
        """The ways to compute the graph; the first is the unsplit plan."""
        if self._timed.ways is None:
            self._timed.ways = self._ways()
        return self._timed.ways

    def _ways(self) -> Ways:
        first = Point(self.whole.schedule.peak_bytes, 0, ())
        if not self._searched:
            return Ways((first,), "")
        walks = self._known.walks
        front = search(self.whole, self.target, self.options, self.costs, self.report, walks=walks)
        if front.stopped == CTRL_C and not self.options.splits:
            raise KeyboardInterrupt  # of a search that nobody asked for, nothing is kept
        found = ways(front)
        points = [point for point in found.points if point.schemes or point.titles]
        if not self._split:
            points = [point for point in points if not point.schemes]
        return replace(found, points=(first, *points))

    @property
    def _split(self) -> bool:
        options = self.options
        return options.splits or options.splits_nearly_free

    @property
    def _searched(self) -> bool:
        """Memory is not scarce on the host, but for an input that arrives by rows."""
        pushed = self.whole.graph.pushed is not None
        return self.options.splits or pushed or not self.target.is_host

    def _graph(self, way: int) -> Graph:
        """The graph of a way, which ways by other kernels share."""
        schemes, graphs = self.ways.points[way].schemes, self._known.graphs
        if schemes not in graphs:
            graphs[schemes] = finer(self.whole, schemes)
        return graphs[schemes]

    def _way(self, way: int) -> Built:
        known, point = self._known, self.ways.points[way]
        key = point.schemes, point.titles
        if key not in known.built:
            known.built[key] = built(self.whole, self._graph(way), point, known.kernels)
        return known.built[key]

    def _plan(self, way: int) -> Plan:
        """The plan of a way, with the kernels of its titles."""
        if not way:
            return self.whole
        point, plans = self.ways.points[way], self._known.plans
        key = point.schemes, point.titles
        if key not in plans:
            allocator = self._known.allocator
            plans[key] = way_plan(self._way(way), self.whole, self.target, self.options, allocator)
            del self._known.built[key]  # the plan has what is asked of a way from here on
        return plans[key]

    def _placed_plan(self, way: int) -> Plan | None:
        """The plan of a way if it is made already."""
        point = self.ways.points[way]
        return self._known.plans.get((point.schemes, point.titles)) if way else self.whole

    def _least_count(self, way: int) -> int:
        """No plan of a way takes less time: for this it needs neither an order nor places."""
        most, copied = self._most_constants, self._most_copied
        key, least = (self.ways.points[way].schemes, most, copied), self._timed.least
        if key not in least:
            least[key] = self._timed.forms.least(self._graph(way), most, most_copied=copied)
        return least[key]

    @cached_property
    def _most_constants(self) -> int | None:
        """Bytes of constants, at most, for which a plan may have room beyond those of its lean
        kernels; None where that is not known.
        """
        if self.options.flash_bytes is not None or not self._flash:
            return None
        return self._flash_bytes - self._known.least_flash_bytes

    def _bound(self, way: int) -> Choice:
        """The arena and the time that a way takes at least: neither needs places."""
        placed = self._placed_plan(way)
        peak = (self._way(way).found if placed is None else placed.schedule).peak_bytes
        return Choice(way, peak, peak + least_data_bytes(), self._least_count(way))

    def _may_take(
        self, way: int, most_count: float, most_bytes: float, ram_bytes: int | None = None
    ) -> bool:
        """Whether a plan of a way may take at most so long, and so many bytes of RAM; with copies
        `ram_bytes`.

        The bound for a way without places counts forms of kernels whose scratch fits beside what is
        live.
        """
        if self._placed_plan(way) is not None or math.inf in (most_bytes, most_count):
            return True
        beside = self._way(way).beside(most_bytes - least_data_bytes())
        graph, most_constants = self._graph(way), self._most_constants
        copied = self._copied_within(ram_bytes, self._bound(way).ram_bytes)
        return self._timed.forms.least(graph, most_constants, beside, copied) <= most_count

    def _copied_within(self, ram_bytes: int | None, taken: int) -> float:
        """Bytes of an operator's largest constant that may be copied where all RAM is so much, of
        which the rest of the firmware takes `taken`.
        """
        most = self._most_copied
        if ram_bytes is None or most == math.inf:
            return most
        return min(most, max(ram_bytes - taken, _TABLE_BYTES))

    def _ways_within(self, most_count: float, *, split: bool) -> list[int]:
        """The ways of which a plan may take at most so long, the quickest bound first. `split`: or
        else those that split nothing.
        """
        each = [
            (self._least_count(way), way)
            for way, point in enumerate(self.ways.points)
            if split or not point.schemes
        ]
        return [way for count, way in sorted(each) if count <= most_count]

    def room(self, way: int) -> Room:
        """A way, placed."""
        rooms = self._timed.rooms
        if way not in rooms:
            rooms[way] = Room(self._plan(way), self._timed.forms)
        return rooms[way]

    def _lean_bytes(self, way: int) -> int:
        """The flash that a way takes by kernels each of which alone takes the least."""
        lean_bytes = self._timed.lean_bytes
        if way not in lean_bytes:
            lean_bytes[way] = estimated_need(_weighed(self.room(way).lean)).flash_bytes
        return lean_bytes[way]

    def _held(self, way: int) -> bool:
        """Whether the flash holds a way by lean kernels, if it does hold the unsplit plan. Where
        others may be taken, what `--flash` holds depends on the arena, too (`_sizes`).
        """
        if self.target.is_host or not self.ways.points[way].schemes:
            return True
        asked = None if self._flash else self.options.flash_bytes
        most = asked or self.target.chip_flash_bytes
        return self._lean_bytes(way) <= most or self._lean_bytes(0) > most

    def spare(self, way: int, *, flash: bool = True) -> int | None:
        """Bytes of flash beyond what a way takes by its lean kernels; less than 0 where `--flash`
        does not hold these. None where no kernel may have more constants.
        """
        if not (self._flash and flash):
            return None
        more = self._flash_bytes - self._lean_bytes(way)
        return more if self.options.flash_bytes is not None else max(more, 0)

    @cached_property
    def most_bytes(self) -> float:
        """Bytes that the arena in one piece, data and stack may take."""
        banks = [bank for bank in self.target.memories if Content.ARENA in bank.holds]
        if self.target.is_host:
            return ram_bytes(self.whole)
        return max(bank.size_bytes for bank in banks)

    def _data_bytes(self, way: int) -> int:
        return firmware_data_bytes(self.room(way).whole)

    def _sizes(self, way: int, most_bytes: float = math.inf) -> list[int]:
        """Sizes of the arena in which a way may have other kernels; the first is what it takes at
        least. None where `--flash` holds no kernels for it. `most_bytes`: with data and stack.
        """
        sizes, data = self.room(way).sizes, self._data_bytes(way)
        most = min(most_bytes, self.most_bytes) - data
        if sizes[0] + data > most_bytes:
            return []
        fitting = [*sizes[:1], *(size for size in sizes[1:] if size <= most)]
        spare = self.spare(way)
        if spare is None or spare >= 0:
            return fitting
        return [size for size in fitting if self.room(way).holds(size, spare)]

    def _steps(self, way: int, most_bytes: float = math.inf, *, flash: bool = True) -> list[int]:
        """Sizes of the arena in which a way is quicker than in all smaller ones."""
        spare, found, least = self.spare(way, flash=flash), [], math.inf
        for size in self._sizes(way, most_bytes):
            if (count := self.room(way).count(size, spare)) < least:
                least = count
                found.append(size)
        return found

    def _choice(
        self, way: int, arena_bytes: int, ram_bytes: int | None = None, *, flash: bool = True
    ) -> Choice:
        """A way in an arena; with copies, of which RAM of so many bytes is a limit."""
        count = self.room(way).count(arena_bytes, self.spare(way, flash=flash))
        found = Choice(way, arena_bytes, arena_bytes + self._data_bytes(way), count, flash)
        if not self._copies:
            return found
        count = self._copied(found, ram_bytes).total(ram_bytes, self.costs)
        return replace(found, count=count)

    def _quickest_of(
        self, way: int, most_bytes: float, most_count: float, ram_bytes: int | None
    ) -> Choice | None:
        """The quickest plan of a way; None where none takes at most so long."""
        spare = self.spare(way)
        if not self._copies:
            sizes = self._sizes(way, most_bytes)
            if not sizes:
                return None
            count = self.room(way).count(sizes[-1], spare)
            return self._smallest_of(way, count)
        best, data = None, self._data_bytes(way)
        for size in reversed(self._steps(way, most_bytes)):
            copied = self._copied_within(ram_bytes, size + data)
            if self.room(way).least(size, spare, copied) <= most_count:
                found = self._choice(way, size, ram_bytes)
                if best is None or _rank(found) < _rank(best):
                    best, most_count = found, min(most_count, found.count)
        return best

    def quickest(
        self, most_bytes: float, *, split: bool = True, ram_bytes: int | None = None
    ) -> Choice | None:
        """The quickest plan with an arena, data and stack of at most so many bytes, of equals the
        smallest; None where there is none. `split`: or else of those that split nothing.
        `ram_bytes`: of all RAM, with copies.

        A way is left out if its bounds alone say that none of its plans can be chosen: the order in
        which ways are tried changes no result.
        """
        best: Choice | None = None
        for way in self._ways_within(math.inf, split=split):
            most_count = math.inf if best is None else best.count
            if self._least_count(way) > most_count:
                break
            if self._bound(way).ram_bytes > most_bytes:
                continue
            if self._may_take(way, most_count, most_bytes, ram_bytes) and self._held(way):
                found = self._quickest_of(way, most_bytes, most_count, ram_bytes)
                if found and (best is None or _rank(found) < _rank(best)):
                    best = found
        return best

    @cached_property
    def base(self) -> Choice:
        """The quickest plan that fits the board; where none does, the quickest."""
        return self._quickest()

    def _quickest(self, *, split: bool = True) -> Choice:
        found = self.quickest(self.most_bytes, split=split) or self.quickest(math.inf, split=split)
        if found is None:  # the unsplit plan is one, but for --flash
            found = self.quickest(math.inf)
        if found is None:
            ways = range(len(self.ways.points))
            least = min(ways, key=lambda way: (self.room(way).least_flash_bytes, way))
            smallest = replace(self.room(least).smallest, board=self.target.name)
            check_flash(_weighed(smallest), self.options)
        assert found is not None, "a plan that --flash holds is one"
        return found

    def _smallest_of(self, way: int, most_count: float) -> Choice | None:
        """The smallest plan of a way that takes at most so long; None where none does."""
        room, spare, sizes = self.room(way), self.spare(way), self._sizes(way)
        if self._copies:  # forms for a larger arena may gain less from copies
            for size in self._steps(way):
                if room.least(size, spare, self._most_copied) <= most_count:
                    found = self._choice(way, size)
                    if found.count <= most_count:
                        return found
            return None
        if not sizes or room.count(sizes[-1], spare) > most_count:
            return None
        low, high = 0, len(sizes) - 1
        while low < high:
            middle = (low + high) // 2
            if room.count(sizes[middle], spare) <= most_count:
                high = middle
            else:
                low = middle + 1
        found = self._choice(way, sizes[low])
        return found if found.count <= most_count else None

    def smallest(self, most_count: float, *, split: bool = True) -> Choice | None:
        """The plan with the least RAM, copies apart, that takes at most so long, of equals the
        quickest; None where there is none. `split`: or else of those that split nothing.

        The bound of the time comes first, because it needs no order: the peaks of ways that take
        longer are not computed. Nor has a way places if it takes longer in the RAM that another one
        needs: that of the base, at first, which is one of them where it takes at most so long. Ways
        whose kernels were chosen for their peaks come first: they are mostly as small as predicted,
        and leave the others, whose kernels come from what room is left, little RAM to be quick in.
        """
        best: Choice | None = None
        base, most_bytes = self.base, math.inf
        if base.count <= most_count and (split or not self._is_split(base)):
            most_bytes = base.ram_bytes
        bounds = map(self._bound, self._ways_within(most_count, split=split))
        for bound in sorted(bounds, key=self._size_order):
            if best is not None:
                most_bytes = min(most_bytes, best.ram_bytes)
            if bound.ram_bytes > most_bytes:
                continue
            if self._may_take(bound.way, most_count, most_bytes) and self._held(bound.way):
                found = self._smallest_of(bound.way, most_count)
                if found and (best is None or _size_rank(found) < _size_rank(best)):
                    best = found
        return best

    @collecting_seldom()
    def front(self) -> list[Choice]:
        """The choices that no other is as good as in arena and time, the quickest first, each with
        clearly less arena than the one before it; with quicker kernels and, behind them, without.
        """
        found: list[Choice] = []
        for share in (True, False) if self._flash else (True,):
            each = sorted(self._each(flash=share), key=_rank)
            last, least = math.inf, math.inf
            for choice in each:
                if choice.arena_bytes <= _APART * last and choice.ram_bytes < least:
                    last, least = choice.arena_bytes, choice.ram_bytes
                    found.append(choice)
        return found

    def _each(self, *, flash: bool) -> Iterator[Choice]:
        """Every way in every arena in which it becomes quicker, but for those that take as much
        time, or more, as one with as small an arena.

        A way waits at the bound of its RAM, and is placed if by then no choice is as quick as the
        bound of its time. All that it could give comes behind that place, and takes at least so
        long: none of it would be yielded.
        """
        waiting: list[tuple[int, int, int]] = []
        best = math.inf
        for way in range(len(self.ways.points)):
            heappush(waiting, (self._bound(way).ram_bytes, way, -1))
        while waiting:
            _, way, size = heappop(waiting)
            if size < 0:
                if self._least_count(way) < best and self._held(way):
                    data = self._data_bytes(way)
                    for step in self._steps(way, flash=flash):
                        heappush(waiting, (step + data, way, step))
            elif self._least_in(way, size, flash=flash) < best:
                found = self._choice(way, size, flash=flash)
                best = min(best, found.count)
                yield found

    def _least_in(self, way: int, arena_bytes: int, *, flash: bool) -> int:
        """No plan of a way, in an arena of so many bytes, takes less time."""
        spare = self.spare(way, flash=flash)
        return self.room(way).least(arena_bytes, spare, self._most_copied)

    @collecting_seldom()
    def asked(self) -> Plan:
        """The plan that the options ask for. Raises DoesNotFitError where there is none."""
        options = self.options
        if options.ram_bytes is not None:
            return self._quickest_in(options.ram_bytes)
        speed = options.optimise is Optimise.SPEED
        if speed and options.max_slowdown is None:
            return self.finished(self.base)
        share = NEARLY_FREE if options.max_slowdown is None else options.max_slowdown
        limit = (1 + share) * self.base.count
        best = self.smallest(limit)
        assert best is not None, "the base is one"
        if options.max_slowdown is None and self._is_split(best):
            whole = self.smallest(limit, split=False)
            if whole is not None and not self._worth(best, whole):
                best = whole
        return self.finished(best)

    @cached_property
    def whole_bytes(self) -> int:
        """The arena of the plan without splits."""
        quickest = self._quickest(split=False)
        if self.options.optimise is Optimise.SPEED:
            return quickest.arena_bytes
        found = self.smallest((1 + NEARLY_FREE) * quickest.count, split=False)
        return (found or quickest).arena_bytes

    def _size_order(self, bound: Choice) -> tuple[bool, tuple[int, int, int]]:
        """By size, but ways come last whose kernels all wait for room, if others have such."""
        return self._flash and not self.ways.points[bound.way].titles, _size_rank(bound)

    def _is_split(self, choice: Choice) -> bool:
        return bool(self.ways.points[choice.way].schemes)

    def _worth(self, split: Choice, whole: Choice) -> bool:
        """Whether a split saves enough, or costs nothing."""
        saved = whole.arena_bytes - split.arena_bytes
        enough = max(_LEAST_BYTES, _LEAST_SHARE * whole.arena_bytes)
        return saved >= enough or (saved > 0 and split.count <= whole.count)

    def _quickest_in(self, most_ram_bytes: int) -> Plan:
        """Raises DoesNotFitError, with the RAM that is needed, if no way fits."""
        slowdown = self.options.max_slowdown
        limit = math.inf if slowdown is None else (1 + slowdown) * self.base.count
        best = self.quickest(most_ram_bytes, ram_bytes=most_ram_bytes)
        if best is not None and best.count <= limit:
            return self.finished(best, most_ram_bytes)
        least = self.smallest(limit)
        assert least is not None, "the base is one"
        plan = self.finished(least, max(most_ram_bytes, least.ram_bytes))
        if slowdown is not None and plan.slowdown > slowdown:
            plan = self.finished(least)  # within the limit because of its copies
        raise self._too_large(plan, most_ram_bytes)

    def _too_large(self, best: Plan, most_bytes: int) -> DoesNotFitError:
        options, stopped = self.options, self.ways.stopped
        limit = options.max_slowdown
        slower = "" if limit is None else f" at a slowdown of at most {limit:.1%}"
        until = f" until the search was stopped {stopped}" if stopped else ""
        copied = best.copied.size_bytes
        copies = f", copies {copied:,}" if copied else ""
        return DoesNotFitError(
            f"{self.whole.graph.name} does not fit {most_bytes:,} bytes of RAM on "
            f"{self.whole.board}{slower}: the least that was found{until} is "
            f"{ram_bytes(best):,} bytes (arena {best.arena.size_bytes:,}{copies}, slowdown "
            f"{best.slowdown:.1%}).",
            remedies=[
                f"--ram {-(-ram_bytes(best) // 1024)}K",
                *(() if limit is None else ("a larger --max-slowdown",)),
                *(("--no-copies",) if ram_bytes(best) - copied <= most_bytes else ()),
                *(() if options.flash_bytes is None else ("a larger --flash",)),
                *(("more --split-seconds",) if stopped else ()),
                "a smaller input",
            ],
            overflows=[Overflow("RAM", ram_bytes(best), most_bytes, is_flash=False)],
        )

    def _copied(self, choice: Choice, ram_bytes: int | None) -> Copies:
        """The plan of a choice with its arena in banks, and the copies of constants and code that
        it may have. `ram_bytes`: of all RAM, which is read where the arena may be spread.
        """
        spare = self.spare(choice.way, flash=choice.flash)
        key = choice.way, choice.arena_bytes, spare, self.target.name
        placed = self._timed.placed
        if key not in placed:
            plan = self._in_one_piece(choice, spare)
            placed[key] = plan, may_spread(plan, self.target), {}
        plan, spreads, known = placed[key]
        limit = ram_bytes if spreads else None
        if limit not in known:
            known[limit] = self._banked(plan, choice, limit)
        return known[limit]

    def _in_one_piece(self, choice: Choice, spare: int | None) -> Plan:
        """The plan of a choice with its arena in one piece."""
        room = self.room(choice.way)
        plan = _weighed(room.plan(choice.arena_bytes, spare))
        plan = replace(plan, board=self.target.name)
        while spare and spare > 0 and estimated_need(plan).flash_bytes > self._flash_bytes:
            spare = max(spare - (estimated_need(plan).flash_bytes - self._flash_bytes), 0)
            plan = _weighed(room.plan(choice.arena_bytes, spare))
            plan = replace(plan, board=self.target.name)
        return plan

    def _banked(self, plan: Plan, choice: Choice, ram_bytes: int | None) -> Copies:
        options = replace(self.options, ram_bytes=ram_bytes)
        split, lowered = self._is_split(choice), plan.lowered

        def problem() -> MemoryProblem:
            return memory_problem(lowered, progressive=True) if split else choose_views(lowered)

        plan = over_banks(plan, self.target, problem, options, self.report)
        return Copies(plan, self.target, options)

    @collecting_seldom()
    def finished(self, choice: Choice, ram_bytes: int | None = None) -> Plan:
        """The plan of a choice, with all that is said of it. `ram_bytes`: of all RAM, copies
        included.
        """
        copies = self._copied(choice, ram_bytes)
        plan = copies.made(ram_bytes)
        check_flash(plan, self.options)
        slowdown = predict_latency(plan, self.costs).total / max(self.base.count, 1) - 1
        return replace(
            plan,
            unsplit_bytes=self.whole_bytes if self._is_split(choice) else 0,
            spent=flash_spent(copies.plan, self.costs, self._timed.forms),
            search_stopped=self.ways.stopped,
            slowdown=max(slowdown, 0.0),
        )


def _weighed(plan: Plan) -> Plan:
    return replace(plan, weight_bytes=constant_bytes(plan))


def _rank(choice: Choice) -> tuple[int, int, int]:
    return choice.count, choice.ram_bytes, choice.way


def _size_rank(choice: Choice) -> tuple[int, int, int]:
    return choice.ram_bytes, choice.count, choice.way
