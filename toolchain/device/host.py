"""Run generated models on this machine, with or without sanitizers.

The models are linked into one program that serves requests over a pipe. A crash or a sanitizer's
report is then an error with its text and does not end the caller. CMSIS-NN compiles to its plain C
path here.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from toolchain.device.blob import write_blob
from toolchain.device.compiler import (
    Unit,
    compile_unit,
    compile_units,
    find_host_compiler,
    link_program,
)
from toolchain.device.patience import RUN_SECONDS, stopped_after, too_slow
from toolchain.errors import LinkError
from toolchain.files.templates import rendered
from toolchain.ir import Graph, Sources, meaning_of
from toolchain.kernels import runtime_c
from toolchain.kernels.cmsis_nn import tree
from toolchain.resources import RUNTIME_C

OWN_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wundef", "-Wcast-align", "-Wshadow")
_BASE = ("-O2",)
_QUICK = ("-O0",)
_SANITIZE = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1")
_CMSIS_NN_SHIFTS = ("-fno-sanitize=shift",)
"""CMSIS-NN shifts negative values left (softmax), which every compiler it supports defines."""
_OWN = ("-std=c99", "-pedantic", "-Werror", *OWN_WARNINGS)
_ARENA_FILL = 0xA5
_WHOLE = 0xFFFFFFFF
"""In place of the cycles of a step: the run is not made in steps."""
_TOGETHER = "together.c"
_ENDING_SECONDS = 5.0
PROGRAM = "models"
"""The file name of the program that `build` makes."""

Array = NDArray[np.generic]


@dataclass(frozen=True)
class HostModel:
    """Generated C and the graph it came from, whose inputs and outputs give the shapes.

    `reaches` are, for each call of `sources.calls`, the (offset, size) in bytes of the runs of the
    arena that the call may access: its operands and scratch. A sanitized program reports any access
    to other bytes, including dead tensors and gaps. Without `reaches`, only the arena's ends are
    checked.
    """

    sources: Sources
    graph: Graph
    reaches: tuple[tuple[tuple[int, int], ...], ...] = ()


def build(
    models: Sequence[HostModel],
    cmsis_nn: Path,
    folder: Path,
    *,
    sanitize: bool = False,
    once: bool = False,
) -> Path:
    """Write the models' C into `folder`, compile and link it. Returns the program's path.

    All that is generated is one unit: a compiler's start takes longer than a small model. It and
    Thimble's kernels are compiled with every warning as an error. It is not optimised where it is
    sanitized or runs `once`; of the latter the object is not cached. Raises BuildError,
    MissingToolError.
    """
    generated = {name: text for m in models for name, text in m.sources.files.items()}
    generated["main.c"] = rendered("host/main.c.j2", models=models)
    generated["host_hooks.h"] = rendered("host/hooks.h.j2")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in generated.items():
        (folder / name).write_text(text, encoding="utf-8")

    flags = _SANITIZE if sanitize else _BASE
    our_flags = (*flags, *_OWN)
    hooks = ('-DTHIMBLE_HOOKS_H="host_hooks.h"',) if sanitize else ()
    system = tree(cmsis_nn).include
    theirs = (*flags, *_CMSIS_NN_SHIFTS) if sanitize else flags
    library = [
        Unit(cmsis_nn / path, theirs, (system,))
        for path in _union(m.sources.cmsis_nn for m in models)
    ]
    library += [
        Unit(RUNTIME_C / path, our_flags, runtime_c.KERNEL_INCLUDES, system_includes=(system,))
        for path in _union(m.sources.runtime for m in models)
    ]
    blobs = [blob.name for m in models if (blob := write_blob(m.sources, folder))]
    names = [*(name for m in models for name in m.sources.run_files), *blobs, "main.c"]
    together = folder / _TOGETHER
    parts = (f'#line 1 "{name}"\n{(folder / name).read_text("utf-8")}' for name in names)
    together.write_text("\n".join(parts), encoding="utf-8")
    quick = _QUICK if once or sanitize else ()
    include = (folder, runtime_c.INCLUDE)
    unit = Unit(together, (*our_flags, *hooks, *quick), include, system_includes=(system,))
    gcc = find_host_compiler()
    if once:
        objects = [*compile_units(library, gcc=gcc), together.with_suffix(".o")]
        compile_unit(gcc, unit, objects[-1])
    else:
        objects = [*compile_units([*library, unit], gcc=gcc)]
    program = folder / PROGRAM
    link_program(objects, _SANITIZE if sanitize else (), program)
    return program


def _union(lists: Iterable[tuple[str, ...]]) -> list[str]:
    return sorted({path for paths in lists for path in paths})


class HostProgram:
    """A running program of `build`; a context manager. `run` may be called any number of times."""

    def __init__(
        self, program: Path, models: Sequence[HostModel], limit_seconds: float = RUN_SECONDS
    ) -> None:
        self._models, self._limit_seconds = tuple(models), limit_seconds
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
        self._process = subprocess.Popen(
            [str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        stdin, stdout = self._pipes()
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        stdout.close()
        try:
            self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:  # it computes without end
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def run(
        self,
        inputs: Sequence[Array],
        model: int = 0,
        *,
        fill: int = _ARENA_FILL,
        restart: bool = True,
        step_cycles: int | None = None,
    ) -> tuple[Array, ...]:
        """Outputs for `inputs`, both in the graph's order, types and shapes.

        `fill` is the content of the arena before the run. Without `restart` a model with state
        continues from its last run; the first run always starts from the initial state. With
        `step_cycles` the run is made in steps that are predicted to take no more. Raises
        LinkError with the program's last output if it dies, and naming the operator if the model's
        run fails; InputError if the run takes longer than `limit_seconds`, and the program is dead.
        """
        graph, sources = self._models[model].graph, self._models[model].sources
        cycles = _WHOLE if step_cycles is None else step_cycles
        request = np.array([model, fill, restart, cycles], np.uint32).tobytes()
        for name, data in zip(graph.inputs, inputs, strict=True):
            tensor = graph.tensors[name]
            request += data.astype(tensor.dtype.numpy, copy=False).reshape(tensor.shape).tobytes()
        with stopped_after(self._limit_seconds, self._process.kill) as expired:
            try:
                status, outputs = self._answer(request, graph)
            except LinkError:
                if not expired.is_set():
                    raise
                inference = f"an inference of {sources.name} on this machine"
                raise too_slow(inference, self._limit_seconds) from None
        if status:
            if meaning_of(status):
                raise LinkError(f"{sources.name} did not run: {meaning_of(status)}")
            if not 0 < status <= len(sources.operators):
                raise LinkError(f"operator {status} of {sources.name} reported an error")
            op = sources.operators[status - 1]
            raise LinkError(f"operator {op.name!r} ({op.kind}) of {sources.name} reported an error")
        return tuple(outputs)

    def _answer(self, request: bytes, graph: Graph) -> tuple[int, list[Array]]:
        """The status of a run, and its outputs."""
        stdin, _ = self._pipes()
        try:
            stdin.write(request)
            stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        status = int(np.frombuffer(self._read(4), np.int32)[0])
        outputs: list[Array] = []
        for name in graph.outputs:
            tensor = graph.tensors[name]
            data = np.frombuffer(self._read(tensor.size_bytes), tensor.dtype.numpy)
            outputs.append(data.reshape(tensor.shape))
        return status, outputs

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def _read(self, size_bytes: int) -> bytes:
        data = self._pipes()[1].read(size_bytes)
        if len(data) != size_bytes:
            raise self._died()
        return data

    def _died(self) -> LinkError:
        code = self._process.wait()
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace").strip()
        return LinkError(f"the host program ended with status {code}:\n{text}")
