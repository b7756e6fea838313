"""Predicted cycles beside those of traces: count a grid of shapes, fit, show the errors.

    python -m benchmarks.cost [--boards BOARD,..] [--only KIND,..] [--kernels NAME,..] [--stale]
                              [--chosen] [--shapes N] [--write] [--store FOLDER]

Each kind of operator runs at seeded random shapes (`_cost_grid.py`), twice over: one half to fit
the coefficients of its kernel by, one that the fit has not seen. What QEMU executes is read by the
timing models of the cores that run the board's code, and through the caches of some chips
(`FITTED`). Coefficients are non-negative least squares of the relative error: cycles of the core
for each iteration of a kernel's loops, and lines that the caches lack in it. The tables have the
mean and the worst error of each kernel on both halves: of the core without stalls, and with those
of each chip at its highest clock. --write fits by both halves and puts the coefficients into
`toolchain/cost/coefficients/`, a file for each core and for each geometry of caches. Beside each
kernel's coefficients stand a digest of its C and the mean error on the half that the fit had not
seen.

--only, --kernels (names in those files) and --chosen (without the kernels of the library that is
not chosen) trace a part: --write then leaves all other kernels and the rough formulas as they are,
and those of which kinds outside --only have more shapes. --stale does what a change of C needs: it
draws all kernels of the grid, traces a few held-out shapes of each that has no coefficients or
other C than was fitted, keeps the coefficients that are still right to 5%, and fits the others
again by all their shapes. What was traced is kept in FOLDER, so that another run traces only what
is new; a trace from before a change of its kernel's C must be deleted. A whole board takes half an
hour.
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
from benchmarks._cost_grid import families
from benchmarks._cost_part import HELD_OUT, SEEDS, Part
from benchmarks._cost_records import Record, old_fits, sources_of
from benchmarks._cost_traces import Traced, traced
from toolchain.boards import Board, Core, Target, as_target
from toolchain.boards import board as find_board
from toolchain.cost.fitted import (
    COEFFICIENTS,
    ROUGH,
    coefficients_text,
    fit_of,
    kernel_terms,
    memcpy_terms,
    plain_terms,
    rough_kernel,
)
from toolchain.cost.key import COPIES, Build, source_digest
from toolchain.cost.predicted import constant_bytes
from toolchain.cost.stalls import Events, Reach, Stalls, constant_terms, geometry, reaches
from toolchain.cycles.core_timing import timing_of
from toolchain.cycles.memory_system import MemorySystem, memory_system
from toolchain.cycles.trace import Section
from toolchain.deployment.measurements import current_build
from toolchain.errors import ThimbleError
from toolchain.kernels import cmsis_nn
from toolchain.ops.kernel import Terms
from toolchain.timing.kernel_firmware import Kernel

SMALLEST = ("--boards mps2-an386 --only relu,add --shapes 2 --store {scratch}/traces",)
CHECKED = 3
"""Held-out shapes of each kernel, of each kind, that show whether old coefficients still hold."""
HOLDS = 0.05
"""The mean error on them up to which they do."""

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
    """A kernel of the grid at one shape. `of_bytes`: constants of all that ran in turn. `source`:
    the digest of its C.
    """

    kernel: str
    terms: Terms
    rough: str
    plain: Terms
    size_bytes: int
    of_bytes: int
    cycles: Mapping[str, float]
    lacked: Mapping[str, Lacked]
    source: str


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
    kernel, terms, source = COPIES, memcpy_terms(one.kernel.copies), ""
    if not one.kernel.copies:
        kernel, terms = kernel_terms(lowered, 0)
        source = source_digest(lowered.kernels[0])
    op = graph.ops[0]
    rough, plain = rough_kernel(op, graph, lowered.core), plain_terms(op, graph)
    return Sample(kernel, terms, rough, plain, size_bytes, of_bytes, cycles, lacked, source)


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
        found = both(halves)
        rows = {
            name: [
                errors(core_points(half.get(name, ()), core), fitted[core].get(name, {}))
                for half in halves
            ]
            for name in found
        }
        fits = {
            name: vars(Record.of((one.source for one in found[name]), len(found[name]), held_out))
            for name, (_, held_out) in rows.items()
            if name not in ROUGH
        }
        stored = {"unit": "cycles", "kernels": core_fit(found, core), "fits": fits}
        yield core, stored, show(rows, f"{core}, no wait states")
    for chip in chips:
        core = chip.target.core.name
        rows = {}
        for name, found_here in sorted(halves[0].items()):
            each, events = fitted[core][name], fitted_events(found_here, chip)
            rows[name] = [stall_errors(half.get(name, ()), chip, each, events) for half in halves]
        kernels = {name: vars(fitted_events(found, chip)) for name, found in both(halves).items()}
        title = f"{chip.target.name} at {chip.target.clock_hz / 1e6:g} MHz"
        yield chip.name, {"chip": chip.target.name, "kernels": kernels}, show(rows, title)


@dataclass(frozen=True)
class Bench:
    """A board whose kernels are traced, the chips as which they are read, and where both lie."""

    board: Board
    chips: Sequence[Memories]
    root: Path
    store: Path
    log: Console

    def samples(self, part: Part, seed: int) -> Mapping[str, Sequence[Sample]]:
        """A part of one half of the grid, by kernel. A plan may take another form than the one that
        was drawn: without those.
        """
        found: list[Sample] = []
        for lot in part.lots(seed, self.board.core):
            with self.log.status(f"{lot[0].graph.ops[0].kind} on {self.board.name}"):
                found += samples(lot, self.board, self.chips, self.root, self.store)
        kernels = by_kernel(found)
        if part.names is None:
            return kernels
        return {name: kernels[name] for name in kernels if name in (*part.names, *ROUGH)}

    def held(
        self, names: frozenset[str], sources: Mapping[str, frozenset[str]]
    ) -> Mapping[str, Mapping[str, Record]]:
        """Of these kernels those whose coefficients are right to `HOLDS` on a few held-out shapes,
        on all cores and with all chips' caches: the new records of each core.
        """
        cores = FITTED[self.board.name].cores
        known = frozenset(
            name for name in names if all(name in fit_of(Core(c)).kernels for c in cores)
        )
        found = self.samples(Part(names=known, each=CHECKED), HELD_OUT)
        by_core: dict[str, dict[str, Record]] = {}
        wrong = set(names - set(found))
        for core in cores:
            fit, records = fit_of(Core(core)).kernels, by_core.setdefault(core, {})
            for name in known & set(found):
                seen = errors(core_points(found[name], core), fit[name])
                records[name] = Record.of(sources[name], len(seen), seen)
            wrong |= {n for n in names if n not in records or records[n].held_out > HOLDS}
        for chip in self.chips:
            core = chip.target.core.name
            fit, stored = fit_of(Core(core)).kernels, _stored(chip.name).get("kernels", {})
            for name in names - wrong:
                events = Events(**stored[name]) if name in stored else None
                if (
                    events is None
                    or _mean(stall_errors(found[name], chip, fit[name], events)) > HOLDS
                ):
                    wrong.add(name)
        return {
            core: {name: one for name, one in records.items() if name not in wrong}
            for core, records in by_core.items()
        }


def _mean(found: Floats) -> float:
    return float(np.abs(found).mean())


def _stored(name: str) -> Mapping[str, Any]:
    """A file of coefficients; empty where there is none."""
    file = COEFFICIENTS / f"{name}.json"
    if not file.exists():
        return {}
    data: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return data


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--boards", default=",".join(FITTED), help="in QEMU, by comma")
    parser.add_argument("--only", default="", help="only these kinds, by comma")
    parser.add_argument("--kernels", default="", help="only these kernels, by comma")
    parser.add_argument("--stale", action="store_true", help="only what a change made wrong")
    parser.add_argument("--chosen", action="store_true", help="only kernels that plans choose")
    parser.add_argument("--shapes", type=int, help="at most so many of each kind")
    parser.add_argument("--write", action="store_true", help="keep the new coefficients")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="of what was traced")
    options = parser.parse_args()
    console, log = Console(width=140), Console(stderr=True)
    kinds, names = (
        tuple(name for name in given.split(",") if name)
        for given in (options.only, options.kernels)
    )
    for name in kinds:
        if name not in families():
            parser.error(f"no kind {name!r}; there are: {', '.join(families())}")
    for name in options.boards.split(","):
        if name not in FITTED:
            parser.error(f"nothing is fitted on {name!r}, but on: {', '.join(FITTED)}")
    if options.write and options.shapes is not None:
        parser.error("--write fits kinds at all shapes: leave --shapes out")
    if options.stale and (kinds or options.chosen or options.shapes is not None):
        parser.error("--stale looks at all kernels, or those that --kernels names")
    named = frozenset(names) if names else None
    part = Part(kinds, named, options.shapes, chosen=options.chosen)
    store = options.store or cmsis_nn.cache_folder() / "cost-grid"
    try:
        root = cmsis_nn.find()
        build = current_build(root)
        for board in map(find_board, options.boards.split(",")):
            chips = [memories_of(board, name) for name in FITTED[board.name].chips]
            bench = Bench(board, chips, root, store, log)
            held, taken = _stale(bench, named, console) if options.stale else ({}, part)
            halves = [bench.samples(taken, seed) for seed in SEEDS]
            for file, data, table in study(board, halves, chips):
                if any(halves):
                    console.print(table)
                if options.write:
                    renewed = {name: vars(record) for name, record in held.get(file, {}).items()}
                    fits = {"fits": {**renewed, **data["fits"]}} if "fits" in data else {}
                    write(file, {**data, **fits}, board, build, taken)
    except ThimbleError as error:
        log.print(f"error: {error}", markup=False)
        return 2
    return 0


def _stale(
    bench: Bench, named: frozenset[str] | None, console: Console
) -> tuple[Mapping[str, Mapping[str, Record]], Part]:
    """The new records of kernels whose coefficients hold, and what is to be fitted again."""
    sources = sources_of(bench.board.core, SEEDS)
    old = frozenset().union(*(old_fits(core, sources) for core in FITTED[bench.board.name].cores))
    old = old if named is None else old & named
    held = bench.held(old, sources)
    again = old - frozenset(name for records in held.values() for name in records)
    console.print(
        f"{bench.board.name}: {len(old)} kernels are new or of other C than was fitted; "
        f"{len(old) - len(again)} hold, {len(again)} are fitted again: "
        f"{', '.join(sorted(again))}",
        markup=False,
    )
    return held, Part(names=again, every=frozenset(sources))


def write(name: str, data: Mapping[str, Any], board: Board, build: Build, part: Part) -> None:
    """All of a file, or of one that is there the kernels in `data` that no other part of the grid
    has shapes of; without those that nothing in the grid gets, where `part` knows that.
    """
    stored = _stored(name)
    made = {"board": board.name, "compiler": build.compiler, "cmsis_nn": build.cmsis_nn}
    content = {**made, **data}
    if stored and not part.whole:
        left = {*ROUGH, *part.shared(board.core)}
        for field in ("kernels", "fits"):
            if field in data:
                fresh = {name: each for name, each in data[field].items() if name not in left}
                merged = sorted({**stored.get(field, {}), **fresh}.items())
                content[field] = {name: each for name, each in merged if part.has(name)}
    file = COEFFICIENTS / f"{name}.json"
    file.write_text(coefficients_text(content), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
