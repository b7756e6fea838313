"""Results that planning keeps are those that it would find again."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from benchmarks.planning import KINDS
from toolchain import passes
from toolchain.boards import board
from toolchain.codegen import constant_bytes
from toolchain.codegen.writer import Writer
from toolchain.cost.predicted import predicted_model
from toolchain.ir import Graph
from toolchain.partition import Mode
from toolchain.partition.block_costs import BlockKernels
from toolchain.partition.estimate import Estimator
from toolchain.partition.region import CannotSplitError, region
from toolchain.partition.search import Chains
from toolchain.partition.segments import Segment
from toolchain.partition.walk import Walks
from toolchain.planner import Planner, candidates, plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.planning.room import Form, _Block, _Spot, _useful
from toolchain.search import Work

BOARD, OTHER = board("nucleo-l4r5zi"), board("nucleo-f303re")
STEPS = 12
FORM = Form(0, "", "", (), 0, (), 0, 0, 0, 0, 0)


def _graph(kind: str, operators: int) -> Graph:
    return passes.prepare(KINDS[kind](operators)).graph


@pytest.mark.parametrize("seed", range(20))
def test_chains_are_those_of_a_search_without_memory(seed: int) -> None:
    rng, chains, known = random.Random(seed), Chains(STEPS, Work()), []
    for _ in range(60):
        for _ in range(rng.randint(0, 4)):
            begin = rng.randrange(STEPS)
            end = min(begin + rng.randint(1, 4), STEPS)
            known.append(Segment(begin, end, rng.randint(1, 9), rng.randint(0, 9)))
            chains.add(known[-1])
        limit = rng.choice((3, 6, 9, 12))
        fresh = Chains(STEPS, Work())
        for segment in known:
            fresh.add(segment)
        assert chains.reached(limit) == fresh.reached(limit)
        assert chains.chain(limit) == fresh.chain(limit)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chain", "residual"])
def test_regions_that_are_alike_have_the_estimates_that_each_has_alone(kind: str) -> None:
    """Alone, and where another cost model has walked them before."""
    graph, costs = _graph(kind, 6), predicted_model(BOARD)
    walks = Walks(BlockKernels(graph, BOARD.core))
    first, after = Estimator(walks, predicted_model(OTHER)), Estimator(walks, costs)

    def estimator() -> Estimator:
        return Estimator(Walks(BlockKernels(graph, BOARD.core)), costs)

    kept, counted, several = estimator(), 0, [2, 3, 5, 16]
    for length in (1, 2, 3):
        for begin in range(len(graph.ops) - length + 1):
            seed = graph.ops[begin + length - 1].outputs[0], 1
            try:
                part = region(graph, range(begin, begin + length), seed)
            except CannotSplitError:
                continue
            for mode in (Mode.SLIDING, Mode.TILES):
                for dying in (frozenset[str](), frozenset(part.sliced)):
                    alone = estimator()
                    found = kept.estimates(part, several, mode, dying)
                    assert found == alone.estimates(part, several, mode, dying)
                    assert alone.runs <= kept.runs
                    first.estimates(part, several, mode, dying)
                    assert found == after.estimates(part, several, mode, dying)
                    counted += 1
    assert counted > len(kept._found) > 0
    assert (after.runs, after.costs.known) == (kept.runs, kept.costs.known)


@pytest.mark.slow
def test_no_plan_is_quicker_than_the_bound_of_its_way() -> None:
    """In the largest arena, with flash for no, some and all kernels with more constants; and what
    is asked for is what it would be without bounds. One planner keeps the ways for all boards.
    """
    graph, options = _graph("residual", 3), PlanOptions()
    planner, nearer, counts = Planner(graph, options), 0, set()
    for kib in (40, 64, 256):
        flash, *others = BOARD.memories
        target = replace(BOARD, memories=(replace(flash, size_bytes=kib << 10), *others))
        found = planner.candidates(target, options)
        for way in range(min(len(found.ways.points), 6)):
            room, least, most = found.room(way), found._least_count(way), found._most_copied
            assert least <= room.least(room.sizes[-1], found.spare(way), most)
            nearer += least > found._timed.forms.least(found._graph(way), most_copied=most)
        without = planner.candidates(target, options)
        without.__dict__.update(_most_constants=None, _most_copied=math.inf)
        assert without.base == found.base
        counts.add(found.base.count)
    assert nearer and len(counts) > 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_constants_are_counted_as_the_c_holds_them(kind: str) -> None:
    for options in (PlanOptions(), PlanOptions(max_slowdown=0.3)):
        plan = plan_graph(_graph(kind, 6), BOARD, options)
        writer = Writer(plan, "model")
        writer.calls()
        assert constant_bytes(plan) == writer.constants.size_bytes == plan.weight_bytes > 0


def test_bounds_of_ways_without_places_hold() -> None:
    """No plan of a way takes less time in an arena than the forms that have scratch there at all.
    One bound is above that for any arena: else nothing is left out by it.
    """
    found = candidates(_graph("residual", 3), BOARD)
    ways = range(1, len(found.ways.points))
    built = {way: found._way(way) for way in ways}
    higher = 0
    for way in ways:
        room, forms, graph = found.room(way), found._timed.forms, found._graph(way)
        spare = found.spare(way)
        for size in room.sizes:
            least = forms.least(graph, found._most_constants, built[way].beside(size))
            assert least <= room.count(size, spare)
            higher += least > found._least_count(way)
    assert higher


def test_spots_that_are_left_out_are_never_the_best() -> None:
    rng = random.Random(1)
    for _ in range(200):
        forms = [
            replace(FORM, number=number, cycles=rng.randrange(5), function=rng.choice("abc"))
            for number in range(8)
        ]
        spots = [_Spot(form, 0, rng.randrange(6)) for form in forms]
        every = tuple(sorted(spots, key=lambda spot: (spot.form.cycles, -spot.form.number)))
        now = rng.choice(spots)
        for functions in (frozenset(), frozenset("a"), frozenset("bc")):
            for size in range(-1, 6):
                bests = [
                    _Block(0, kept, now, "b").best(functions, size)
                    for kept in (every, _useful(spots))
                ]
                assert bests[0] == bests[1]
