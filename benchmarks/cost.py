"""Predicted cycles beside those of traces: count a grid of shapes, fit, show the errors.

    python -m benchmarks.cost [--boards BOARD,..] [--only KIND,..] [--chosen] [--shapes N] [--write]
                              [--store FOLDER]

Each kind of operator runs at seeded random shapes (`_cost_grid.py`), twice over: one half to fit
the coefficients of its kernel by, one that the fit has not seen. What QEMU executes is read by the
timing models of the cores that run the board's code, and through the caches of some chips
(`FITTED`). Coefficients are non-negative least squares of the relative error: cycles of the core
for each iteration of a kernel's loops, and lines that the caches lack in it. The tables have the
mean and the worst error of each kernel on both halves: of the core without stalls, and with those
of each chip at its highest clock. --write fits by both halves and puts the coefficients into
`toolchain/cost/coefficients/`, a file for each core and for each geometry of caches; with --only or
--chosen (without Arm's kernels where others are chosen) it renews the kernels that were traced and
leaves the others and the rough formulas as they are. What was traced is kept in FOLDER, so that
another run traces only what is new; a trace from before a change of its kernel's C must be deleted.
It takes half an hour for each board.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks._cost_fit import Floats, Point, errors, fit
from benchmarks._cost_grid import GRID, families, kernels
from benchmarks._cost_traces import Traced, traced
from toolchain.boards import Board, Target, as_target
from toolchain.boards import board as find_board
from toolchain.cost.fitted import (
    COEFFICIENTS,
    ROUGH,
    coefficients_text,
    kernel_terms,
    memcpy_terms,
    plain_terms,
    rough_kernel,
)
from toolchain.cost.key import COPIES, Build
from toolchain.cost.predicted import constant_bytes
from toolchain.cost.stalls import Events, Reach, Stalls, constant_terms, geometry, reaches
from toolchain.cycles.core_timing import timing_of
from toolchain.cycles.memory_system import MemorySystem, memory_system
from toolchain.cycles.trace import Section
from toolchain.deployment.measurements import current_build
from toolchain.errors import ThimbleError
from toolchain.kernels import cmsis_nn
from toolchain.ops.kernel import Terms
from toolchain.ops.preference import Preference
from toolchain.timing.kernel_firmware import Kernel

SMALLEST = ("--boards mps2-an386 --only relu,add --shapes 2 --store {scratch}/traces",)
FIT, HELD_OUT = 1, 2
AT_ONCE = 32
"""Kernels in one firmware: the code and weights of twice as many overrun 512 KiB."""


_SMALL_BYTES = 2048
"""So much code of a kernel and what calls it pushes out the kernel before."""


@dataclass(frozen=True)
class Fitted:
    """What a board's traces are read as: cores, and chips for the geometry of their caches."""

    cores: tuple[str, ...]
    chips: tuple[str, ...] = ()


FITTED: Mapping[str, Fitted] = {
    "mps2-an385-v6m": Fitted(("cortex-m0plus",), ("stm32g0b1",)),
    "mps2-an385": Fitted(("cortex-m3",)),
    "mps2-an386": Fitted(("cortex-m4",), ("stm32f405", "stm32l4r5")),
    "mps2-an505": Fitted(("cortex-m33",), ("stm32u575",)),
    "mps2-an500": Fitted(("cortex-m7",), ("stm32h743", "stm32f746")),
    "mps3-an547": Fitted(("cortex-m55", "cortex-m85")),
}


@dataclass(frozen=True)
class Memories:
    """A chip as the traced board's memories stand for its own."""

    target: Target
    system: MemorySystem
    code: Reach
    constants: Reach

    @property
    def forgets(self) -> bool:
        """Whether another operator's code or constants push a kernel's code out of the cache."""
        return "data" in self.code.cache.holds or self.code.cache.size_bytes <= _SMALL_BYTES

    @property
    def name(self) -> str:
        return geometry(self.code.cache, self.constants.cache)


@dataclass(frozen=True)
class Lacked:
    """What one run lacked of lines, and the cycles that it waited for them on that chip."""

    jump: int
    sequential: int
    constants: int
    jump_cycles: float
    sequential_cycles: float
    data_cycles: float

    @property
    def cycles(self) -> float:
        return self.jump_cycles + self.sequential_cycles + self.data_cycles


@dataclass(frozen=True)
class Sample:
    """A kernel of the grid at one shape. `of_bytes`: constants of all that ran in turn."""

    kernel: str
    terms: Terms
    rough: str
    plain: Terms
    size_bytes: int
    of_bytes: int
    cycles: Mapping[str, float]
    lacked: Mapping[str, Lacked]


def memories_of(board: Board, chip: str) -> Memories:
    target = as_target(chip)
    system = memory_system(board.memories, target.memories, target.caches)
    found = reaches(system, board.memories)
    assert found is not None, f"{chip} waits for its flash"
    return Memories(target, system, *found)


def samples(
    found: Sequence[Kernel], board: Board, chips: Sequence[Memories], root: Path, store: Path
) -> Iterator[Sample]:
    """Trace and read kernels of the grid."""
    systems = {one.name: one.system for one in chips} or {"plain": MemorySystem()}
    timings = {name: timing_of(name) for name in FITTED[board.name].cores}
    for batch in traced(found, board, root, systems, store):
        sizes = [_constant_bytes(one) for one in batch]
        for one, size_bytes in zip(batch, sizes, strict=True):
            cycles, by_address = {}, {}
            for name, timing in timings.items():
                if timing is not None:
                    by_address[name], apart = one.core_cycles(timing, board)
                    cycles[name] = sum(by_address[name].values()) + apart
            lacked = {
                chip.name: _lacked(one, chip, by_address[chip.target.core.name]) for chip in chips
            }
            yield _sample(one, size_bytes, sum(sizes), cycles, lacked)


def _constant_bytes(one: Traced) -> int:
    return 0 if one.kernel.copies else constant_bytes(one.plan.lowered, 0)


def _sample(
    one: Traced,
    size_bytes: int,
    of_bytes: int,
    cycles: Mapping[str, float],
    lacked: Mapping[str, Lacked],
) -> Sample:
    graph, lowered = one.kernel.graph, one.plan.lowered
    kernel, terms = COPIES, memcpy_terms(one.kernel.copies)
    if not one.kernel.copies:
        kernel, terms = kernel_terms(lowered, 0)
    op = graph.ops[0]
    rough, plain = rough_kernel(op, graph, lowered.core), plain_terms(op, graph)
    return Sample(kernel, terms, rough, plain, size_bytes, of_bytes, cycles, lacked)


def _lacked(one: Traced, chip: Memories, by_address: Mapping[int, float]) -> Lacked:
    section = one.sections[chip.name]
    counts = section.counts.values()
    after_jumps = {at: replace(of, sequential_misses=0) for at, of in section.counts.items()}
    jumps = chip.system.stalls(replace(section, counts=after_jumps), by_address).values()
    stalls = chip.system.stalls(section, by_address).values()
    jump_cycles = sum(stall.fetch for stall in jumps)
    name = chip.constants.region.name
    jump_misses = sum(of.jump_misses for of in counts)
    sequential_misses = sum(of.sequential_misses for of in counts)
    sequential_cycles = sum(stall.fetch for stall in stalls) - jump_cycles
    if chip.forgets:
        cold = _lines_never_lacked(section, chip.code.cache.filled_bytes)
        sequential_cycles += cold * sequential_cycles / max(sequential_misses, 1)
        sequential_misses += cold
    return Lacked(
        jump_misses,
        sequential_misses,
        sum(of.traffic[name].load_misses for of in counts if name in of.traffic),
        jump_cycles,
        sequential_cycles,
        sum(stall.data for stall in stalls),
    )


def _lines_never_lacked(section: Section, line_bytes: int) -> int:
    """Lines of instructions that were there from the run of another shape of the same kernel."""
    lacked: dict[int, int] = defaultdict(int)
    for address, of in section.counts.items():
        end = (address + of.size_bytes - 1) // line_bytes
        lacked[end] += of.sequential_misses + of.jump_misses
    return sum(not misses for misses in lacked.values())


def by_kernel(found: Sequence[Sample]) -> Mapping[str, Sequence[Sample]]:
    """The samples of each kernel by name; those of its rough formula as well."""
    kernels: dict[str, list[Sample]] = defaultdict(list)
    for one in found:
        kernels[one.kernel].append(one)
        if one.kernel != COPIES:
            rough = Sample(one.rough, one.plain, *list(vars(one).values())[2:])
            kernels[one.rough].append(rough)
    return kernels


def core_points(found: Sequence[Sample], core: str) -> list[Point]:
    return [Point(one.terms, one.cycles[core], one.cycles[core]) for one in found]


def fitted_events(found: Sequence[Sample], chip: Memories) -> Events:
    """The lines that a kernel lacks in each of its loops with the caches of a chip."""
    name, core = chip.name, chip.target.core.name

    def coefficients(which: str, fill: int) -> dict[str, float]:
        points = []
        for one in found:
            lacked = one.lacked[name]
            total = one.cycles[core] + lacked.cycles
            terms = one.terms
            if which == "constants":
                cache = chip.constants.cache
                terms = constant_terms(terms, one.size_bytes, one.of_bytes, cache)
            points.append(Point(terms, getattr(lacked, which), total / max(fill, 1)))
        return fit(points)

    def hidden(which: str) -> float:
        lines = sum(getattr(one.lacked[name], which) for one in found)
        waited = sum(getattr(one.lacked[name], f"{which}_cycles") for one in found)
        busy = chip.code.busy_cycles if which == "sequential" else fill
        return float(f"{busy - waited / lines:.4g}") if lines else 0.0

    fill = chip.code.fill_cycles
    return Events(
        coefficients("jump", fill),
        coefficients("sequential", fill),
        coefficients("constants", chip.constants.fill_cycles),
        hidden("jump"),
        hidden("sequential"),
    )


def stall_errors(found: Sequence[Sample], chip: Memories, core: Terms, events: Events) -> Floats:
    """Of the total with stalls."""
    stalls = Stalls(chip.code, chip.constants, {"it": events})
    name = chip.target.core.name
    result = []
    for one in found:
        lacked = one.lacked[chip.name]
        total = one.cycles[name] + lacked.cycles
        predicted = sum(core.get(term, 0.0) * count for term, count in one.terms.items())
        predicted += stalls.cycles("it", one.terms, one.size_bytes, one.of_bytes)
        result.append(predicted / total - 1)
    return np.array(result)


def show(rows: Mapping[str, Sequence[Floats]], title: str) -> Table:
    """A line for each kernel: errors of the half that fitted and of the other."""
    table = Table(title=title)
    for heading in ("kernel", "fitted by", "mean", "worst", "held out", "mean", "worst"):
        table.add_column(heading, justify="left" if heading == "kernel" else "right")
    for kernel, halves in rows.items():
        row = [kernel]
        for found in halves:
            worst = found[np.abs(found).argmax()] if len(found) else 0.0
            mean = np.abs(found).mean() if len(found) else 0.0
            row += [str(len(found)), f"{mean:.1%}", f"{worst:+.1%}"]
        table.add_row(*row)
    return table


def grid(
    board: Board, seed: int, only: Sequence[str], most: int | None, *, chosen: bool
) -> list[list[Kernel]]:
    """The kernels of the grid in lots for one firmware; `chosen`: those that plans choose."""
    lots: list[list[Kernel]] = []
    preferences = (Preference.AUTO,) if chosen else (Preference.AUTO, Preference.CMSIS_NN)
    for preference in preferences:
        rest: list[Kernel] = []
        for name in only or families():
            found = [
                one for one in kernels(name, seed, board.core, most) if one.preference is preference
            ]
            if name in GRID:
                lots += [found[i : i + AT_ONCE] for i in range(0, len(found), AT_ONCE)]
            else:
                rest += found
        lots.append(rest)
    return lots


Halves = Sequence[Mapping[str, Sequence[Sample]]]


def both(halves: Halves) -> Mapping[str, Sequence[Sample]]:
    names = sorted({name for half in halves for name in half})
    return {name: [one for half in halves for one in half.get(name, ())] for name in names}


def core_fit(found: Mapping[str, Sequence[Sample]], core: str) -> dict[str, dict[str, float]]:
    """Of each kernel. A rough formula is to be right on the sum of many operators: the errors of
    large ones weigh more in it.
    """
    fitted = {}
    for name, each in sorted(found.items()):
        points = core_points(each, core)
        if name in ROUGH:
            points = [replace(point, scale=point.count**0.5) for point in points]
        fitted[name] = fit(points)
    return fitted


def study(
    board: Board, halves: Halves, chips: Sequence[Memories]
) -> Iterator[tuple[str, dict[str, Any], Table]]:
    """For each core and each chip's caches: the file's name, its coefficients, the table."""
    cores = [core for core in FITTED[board.name].cores if timing_of(core) is not None]
    fitted = {core: core_fit(halves[0], core) for core in cores}
    for core in cores:
        rows = {
            name: [errors(core_points(half.get(name, ()), core), each) for half in halves]
            for name, each in fitted[core].items()
        }
        stored: dict[str, Any] = {"unit": "cycles", "kernels": core_fit(both(halves), core)}
        yield core, stored, show(rows, f"{core}, no wait states")
    for chip in chips:
        core = chip.target.core.name
        rows = {}
        for name, found in sorted(halves[0].items()):
            each, events = fitted[core][name], fitted_events(found, chip)
            rows[name] = [stall_errors(half.get(name, ()), chip, each, events) for half in halves]
        kernels = {name: vars(fitted_events(found, chip)) for name, found in both(halves).items()}
        title = f"{chip.target.name} at {chip.target.clock_hz / 1e6:g} MHz"
        yield chip.name, {"chip": chip.target.name, "kernels": kernels}, show(rows, title)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--boards", default=",".join(FITTED), help="in QEMU, by comma")
    parser.add_argument("--only", default="", help="only these kinds, by comma")
    parser.add_argument("--chosen", action="store_true", help="only kernels that plans choose")
    parser.add_argument("--shapes", type=int, help="at most so many of each kind")
    parser.add_argument("--write", action="store_true", help="keep the new coefficients")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="of what was traced")
    options = parser.parse_args()
    console, log = Console(width=140), Console(stderr=True)
    only = [name for name in options.only.split(",") if name]
    for name in only:
        if name not in families():
            parser.error(f"no kind {name!r}; there are: {', '.join(families())}")
    for name in options.boards.split(","):
        if name not in FITTED:
            parser.error(f"nothing is fitted on {name!r}, but on: {', '.join(FITTED)}")
    if options.write and options.shapes is not None:
        parser.error("--write fits kinds at all shapes: leave --shapes out")
    store = options.store or cmsis_nn.cache_folder() / "cost-grid"
    try:
        root = cmsis_nn.find()
        build = current_build(root)
        for board in map(find_board, options.boards.split(",")):
            chips = [memories_of(board, name) for name in FITTED[board.name].chips]
            halves = []
            for seed in (FIT, HELD_OUT):
                found: list[Sample] = []
                for lot in grid(board, seed, only, options.shapes, chosen=options.chosen):
                    with log.status(f"{lot[0].graph.ops[0].kind if lot else ''} on {board.name}"):
                        found += samples(lot, board, chips, root, store)
                halves.append(by_kernel(found))
            for name, data, table in study(board, halves, chips):
                console.print(table)
                if options.write:
                    _write(name, data, board, build, renew=bool(only) or options.chosen)
    except ThimbleError as error:
        log.print(f"error: {error}", markup=False)
        return 2
    return 0


def _write(name: str, data: Mapping[str, Any], board: Board, build: Build, *, renew: bool) -> None:
    """All of a file, or of one that is there (`renew`) the kernels in `data`."""
    file = COEFFICIENTS / f"{name}.json"
    kernels = data["kernels"]
    if renew and file.exists():
        kept = json.loads(file.read_text(encoding="utf-8"))["kernels"]
        fresh = {kernel: each for kernel, each in kernels.items() if kernel not in ROUGH}
        kernels = dict(sorted({**kept, **fresh}.items()))
    made = {"board": board.name, "compiler": build.compiler, "cmsis_nn": build.cmsis_nn}
    content = {**made, **data, "kernels": kernels}
    file.write_text(coefficients_text(content), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
