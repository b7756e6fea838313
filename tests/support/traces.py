"""When a kernel reads and writes each byte of its tensors: recorded, to hold overlaps against.

The generated C and its kernels are compiled with `-fsanitize=thread`, which makes gcc report every
access to memory; `programs/trace.c` stands in for that sanitizer's library and notes the times.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.support.host import plan_of
from toolchain.boards import HOST
from toolchain.codegen import generate
from toolchain.device.compiler import Unit, compile_units, find_host_compiler, link_program
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn, runtime_c
from toolchain.kernels.cmsis_nn import tree
from toolchain.memory.plan import Plan
from toolchain.ops.kernel import SafeOverlap
from toolchain.resources import RUNTIME_C

PROGRAM = Path(__file__).resolve().parents[1] / "host_c" / "programs" / "trace.c"
WRAPPED = tuple(f"-Wl,--wrap={name}" for name in ("memcpy", "memmove", "memset"))
Times = NDArray[np.int64]


@dataclass(frozen=True)
class Trace:
    """Times of the first write of every output byte and of the last read of every input byte."""

    first_write: Times
    last_read: Times

    def lead_bytes(self) -> int:
        """The smallest lead from which on no input byte is overwritten before its last read."""
        written = np.flatnonzero(self.first_write)
        written = written[np.argsort(self.first_write[written], kind="stable")]
        times, highest = self.first_write[written], np.maximum.accumulate(written)
        read = np.flatnonzero(self.last_read)
        before = np.searchsorted(times, self.last_read[read])
        leads = highest[before[before > 0] - 1] - read[before > 0] + 1
        return max(int(leads.max(initial=0)), 0)

    def bears(self, distance: int) -> bool:
        """Whether the input may begin exactly so many bytes behind the output's start."""
        reads = np.zeros_like(self.first_write)
        begin, end = max(distance, 0), min(distance + len(self.last_read), len(reads))
        if begin < end:
            reads[begin:end] = self.last_read[begin - distance : end - distance]
        return not bool(np.any((self.first_write > 0) & (self.first_write < reads)))


@dataclass(frozen=True)
class Run:
    """One run of a model: for each byte of the arena the times of its first write and last read,
    and for each operator that runs code the time when it began, in the order of calls."""

    first_write: Times
    last_read: Times
    begun: Times


def record(graph: Graph, overlaps: Sequence[SafeOverlap], folder: Path) -> list[Trace]:
    """Run single operators side by side, nothing over anything; a trace for each overlap.

    `graph` has one operator for each overlap, in order (`ir.merged`).
    """
    plan = plan_of(graph, spread=True)
    run, _ = record_run(plan, folder)
    traces = []
    for op, overlap in zip(graph.ops, overlaps, strict=True):
        source, target = graph.input(op, overlap.input), graph.output(op, overlap.output)
        begin, start = plan.arena.offsets[source.name], plan.arena.offsets[target.name]
        traces.append(
            Trace(
                run.first_write[start : start + target.size_bytes],
                run.last_read[begin : begin + source.size_bytes],
            )
        )
    return traces


def record_run(plan: Plan, folder: Path) -> tuple[Run, tuple[int, ...]]:
    """Generate, compile and run a plan; and the operator that each call runs, by index."""
    sources = generate(plan, HOST, cmsis_nn.find(), name="traced")
    for name, text in sources.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    system = tree(cmsis_nn.find()).include
    flags = ("-O1", "-fno-builtin", "-fsanitize=thread", "-w")
    theirs = [Unit(cmsis_nn.find() / p, flags, (system,)) for p in sources.cmsis_nn]
    hooks = (*flags, '-DTHIMBLE_HOOKS_H="trace_hooks.h"')
    include = (*runtime_c.KERNEL_INCLUDES, PROGRAM.parent)
    units = [
        Unit(RUNTIME_C / path, hooks, include, system_includes=(system,))
        for path in sources.runtime
    ]
    units += [
        Unit(folder / name, hooks, (folder, *include), system_includes=(system,))
        for name in sources.run_files
    ]
    recorder = Unit(PROGRAM, ("-O2", "-Wall", "-Wextra", "-Werror"), (PROGRAM.parent,))
    objects = compile_units([recorder, *theirs, *units], gcc=find_host_compiler())
    program = folder / "trace"
    link_program(objects, WRAPPED, program)
    command = [str(program), str(plan.arena.size_bytes)]
    done = subprocess.run(command, capture_output=True, check=True)
    times = np.frombuffer(done.stdout, np.uint32).astype(np.int64)
    calls = len(sources.calls)
    bytes_, begun = times[: len(times) - calls].reshape(-1, 2), times[len(times) - calls :]
    return Run(bytes_[:, 0], bytes_[:, 1], begun), sources.calls
