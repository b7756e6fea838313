"""The level `split`: networks split for a random budget of RAM give the bytes of the unsplit ones.

Both plans of a case are in one program (or firmware), beside the NumPy references of the unsplit
graph. On this machine under the sanitizers; `--board` names an emulated one.
"""

from __future__ import annotations

import random
import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.fuzz.outcome import (
    EQUAL,
    FAILED,
    SANITIZER,
    UNSPLIT,
    WRONG,
    Outcome,
    limit_memory,
    of_error,
    time_limit,
)
from benchmarks.fuzz.pool import Serve
from benchmarks.fuzz.reading import check_plan
from benchmarks.zoo_mobile import mobilenet_v2
from tests.support import random_networks, split_graphs
from tests.support.host import model_of, random_inputs
from toolchain.boards import board
from toolchain.codegen import generate
from toolchain.device.build import build as build_firmware
from toolchain.device.host import HostProgram, build
from toolchain.device.session import open_board
from toolchain.errors import DoesNotFitError, LinkError
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.memory.firmware_size import firmware_data_bytes
from toolchain.memory.plan import Plan
from toolchain.ops.check import check
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array
from toolchain.partition import splitters
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions

_SPLIT_SECONDS = 1.0
_CASE_SECONDS = 60.0
_LARGE_SHARE = 0.05


@dataclass(frozen=True)
class _Pair:
    number: int
    whole: Plan
    split: Plan
    inputs: tuple[Array, ...]

    @property
    def plans(self) -> tuple[Plan, Plan]:
        return self.whole, self.split


def splitter(seed: int, place: str = "host") -> Serve:
    """The level `split` on a board, or on this machine."""
    limit_memory(resource.RLIM_INFINITY)  # the address sanitizer maps terabytes

    def serve(numbers: Sequence[int], begun: Callable[[int], None]) -> Iterator[Outcome]:
        pairs = []
        for number in numbers:
            begun(number)
            found = _pair(seed, number, place)
            if isinstance(found, Outcome):
                yield found
            else:
                pairs.append(found)
        if pairs:
            with tempfile.TemporaryDirectory(prefix="thimble-fuzz-") as folder:
                run = _on_host if place == "host" else _on_board
                yield from run(pairs, Path(folder))

    return serve


def _network(rng: random.Random) -> Graph:
    numbers = np.random.default_rng(rng.getrandbits(32))
    if rng.random() < _LARGE_SHARE:
        return mobilenet_v2("mobilenet", 0.35, rng.choice((32, 48, 64)), classes=10)
    if rng.random() < 0.3:
        depths = (rng.randrange(5, 16), rng.randrange(2, 16), rng.randrange(8, 48))
        return check(split_graphs.inverted_bottleneck(numbers, *depths, rng.randrange(2, 16)))
    makers = (random_networks.random_network, split_graphs.random_network)
    return check(rng.choice(makers)(numbers))


def _pair(seed: int, number: int, place: str) -> Outcome | _Pair:
    """A network and a budget below what it needs. UNSPLIT: no way was found to meet it."""
    rng = random.Random(f"split {seed} {number}")
    graph, target = _network(rng), board(place)
    try:
        with time_limit(_CASE_SECONDS):
            options = PlanOptions(
                scheduler="rpo",
                allocator="greedy-size",
                splitter=rng.choice((*["auto"] * 6, *splitters.names())),
                split_seconds=_SPLIT_SECONDS,
                rewrite=False,
                one_bank=True,
            )
            whole = plan_graph(graph, target, options)
            check_plan(whole)
            needed = firmware_data_bytes(whole)
            if rng.random() < 0.7:
                share = rng.uniform(0.6, 0.99)
                ram = needed + int(share * whole.arena.size_bytes)
                options = replace(options, ram_bytes=ram)
            else:
                options = replace(options, max_slowdown=rng.uniform(0.0, 2.0))
            split = plan_graph(graph, target, options)
            check_plan(split)
    except DoesNotFitError:
        return Outcome(number, UNSPLIT)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return of_error(number, error)
    if len(split.graph.ops) == len(whole.graph.ops):
        return Outcome(number, UNSPLIT)
    budget = options.ram_bytes
    if budget is not None and needed + split.arena.size_bytes > budget:
        return Outcome(number, WRONG, "more RAM than asked for", f"{split.arena.size_bytes}")
    inputs = random_inputs(graph, np.random.default_rng(number))
    return _Pair(number, whole, split, inputs)


def _on_host(pairs: Sequence[_Pair], folder: Path) -> Iterator[Outcome]:
    models = [
        model_of(plan, f"{what}{pair.number}")
        for pair in pairs
        for what, plan in zip(("whole", "split"), pair.plans, strict=True)
    ]
    program = build(models, cmsis_nn.find(), folder, sanitize=True, once=True)
    for index, pair in enumerate(pairs):
        with HostProgram(program, models) as running:
            try:
                got = [running.run(pair.inputs, 2 * index + which) for which in (0, 1)]
            except LinkError as error:
                kind = FAILED if "reported an error" in str(error) else SANITIZER
                yield Outcome(pair.number, kind, "a split network", str(error)[:1500])
            else:
                yield _judged(pair, *got)


def _on_board(pairs: Sequence[_Pair], folder: Path) -> Iterator[Outcome]:
    """All in one firmware; half of them at a time where that does not fit."""
    target = board(pairs[0].whole.board)
    models = [
        (plan, generate(plan, target.core, cmsis_nn.find(), name=f"{what}{pair.number}"))
        for pair in pairs
        for what, plan in zip(("whole", "split"), pair.plans, strict=True)
    ]
    try:
        firmware = build_firmware(models, target, folder)
    except DoesNotFitError:
        if len(pairs) == 1:
            yield Outcome(pairs[0].number, UNSPLIT, "too large for the board")
            return
        half = len(pairs) // 2
        yield from _on_board(pairs[:half], folder / "a")
        yield from _on_board(pairs[half:], folder / "b")
        return
    with open_board(firmware) as session:
        for index, pair in enumerate(pairs):
            got = []
            for which, plan in enumerate(pair.plans):
                session.choose(2 * index + which)
                outputs = session.run(pair.inputs).outputs
                got.append(tuple(outputs[name] for name in plan.graph.outputs))
            yield _judged(pair, *got)


def _judged(pair: _Pair, whole: Sequence[Array], split: Sequence[Array]) -> Outcome:
    names = [plan.graph.outputs for plan in pair.plans]
    wanted = dict(zip(names[0], interpret(pair.whole.graph, pair.inputs), strict=True))
    for plan, outputs in zip(pair.plans, (whole, split), strict=True):
        for name, got in zip(plan.graph.outputs, outputs, strict=True):
            differing = int((got.reshape(-1) != wanted[name].reshape(-1)).sum())
            if differing:
                text = f"{differing} of {got.size} of {name}"
                return Outcome(pair.number, WRONG, f"{plan.board}, {plan.slowdown:.0%}", text)
    return Outcome(pair.number, EQUAL)
