"""Contents of every exported package: the generated C, all kernels and headers that it needs,
licences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from toolchain.boards import Board
from toolchain.codegen.arrays import c_type
from toolchain.codegen.library import SHARED_NAME, shared_arena_header
from toolchain.codegen.preprocess import FRONT_ENDS
from toolchain.ir import Sources
from toolchain.ir.boundary import End
from toolchain.kernels import cmsis_nn, runtime_c
from toolchain.memory.plan import Plan
from toolchain.resources import LICENCE, RUNTIME_C

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(?P<name>[^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Port:
    """An input or output in C: identifier, element type, elements."""

    identifier: str
    c_type: str
    elements: int

    @property
    def is_float(self) -> bool:
        return self.c_type == "float"


@dataclass(frozen=True)
class CarriedModel:
    """A model with its plan and its C."""

    plan: Plan
    sources: Sources

    @property
    def name(self) -> str:
        return self.sources.name

    @property
    def inputs(self) -> tuple[Port, ...]:
        return _ports(self.sources.inputs, self.plan.inputs)

    @property
    def outputs(self) -> tuple[Port, ...]:
        return _ports(self.sources.outputs, self.plan.outputs)


def _ports(identifiers: Sequence[str], ends: Sequence[End]) -> tuple[Port, ...]:
    return tuple(
        Port(identifier, c_type(end.tensor.dtype), end.tensor.elements)
        for identifier, end in zip(identifiers, ends, strict=True)
    )


@dataclass(frozen=True)
class Carried:
    """Models that one package holds, for one board or chip, and the C that they need.

    `name`: of the package, a C identifier. `share_arena`: they run one at a time in one arena.
    `elsewhere`: names of kernels' files that another package of the same program holds.
    File names are flat: each kernel is one file, and no two have the same name, however many models
    call it.
    """

    name: str
    models: tuple[CarriedModel, ...]
    board: Board
    cmsis_nn: Path
    share_arena: bool
    elsewhere: frozenset[str] = frozenset()

    @cached_property
    def public_headers(self) -> Mapping[str, str]:
        """Headers that a program includes, by name."""
        headers = dict(self._generated((".h", ".hpp")))
        for model in self.models:
            headers.pop(f"{model.name}_weights.h", None)
        if self.share_arena:
            sources = [model.sources for model in self.models]
            headers[f"{SHARED_NAME}_arena.h"] = shared_arena_header(sources)
        return headers | self._ours_included_by(headers.values())

    @property
    def front_ends(self) -> list[str]:
        """Headers of what `--preprocess` compiled in: a sensor's data to the model's input."""
        names = (f"{model.name}_{kind}.h" for model in self.models for kind in FRONT_ENDS)
        return [name for name in names if name in self.public_headers]

    @cached_property
    def generated(self) -> Mapping[str, str]:
        """The models' own C files."""
        return dict(self._generated((".c",)))

    @cached_property
    def kernels(self) -> Mapping[str, str]:
        """C files of Thimble's kernels and of CMSIS-NN's, each once, without those elsewhere."""
        ours = sorted({path for model in self.models for path in model.sources.runtime})
        theirs = sorted({path for model in self.models for path in model.sources.cmsis_nn})
        files = [*(RUNTIME_C / path for path in ours), *(self.cmsis_nn / path for path in theirs)]
        return {
            file.name: file.read_text(encoding="utf-8")
            for file in files
            if file.name not in self.elsewhere
        }

    @cached_property
    def private_headers(self) -> Mapping[str, str]:
        """Headers that models and kernels include: weights, kernels' headers, CMSIS-NN's."""
        weights = [f"{model.name}_weights.h" for model in self.models]
        made = dict(self._generated((".h",)))
        headers = {name: made[name] for name in weights if name in made}
        queue = [*headers.values(), *self.generated.values(), *self.kernels.values()]
        known = {**self._our_headers, **self._their_headers}
        while queue:
            for match in _INCLUDE.finditer(queue.pop()):
                name = match["name"]
                if name in known and name not in headers and name not in self.public_headers:
                    headers[name] = known[name].read_text(encoding="utf-8")
                    queue.append(headers[name])
        return dict(sorted(headers.items()))

    @property
    def has_cmsis_nn(self) -> bool:
        return any(model.sources.cmsis_nn for model in self.models) or any(
            name in self._their_headers for name in self.private_headers
        )

    @property
    def licences(self) -> Mapping[str, str]:
        """The licences of the files, and who holds which part."""
        parts = ["The generated C and the kernels named thimble_*: Thimble, Apache License 2.0."]
        if self.has_cmsis_nn:
            parts.append(
                "The files named arm_*: CMSIS-NN, Copyright Arm Limited and/or its affiliates, "
                "Apache License 2.0, unchanged."
            )
        parts.append("The weights belong to whoever made the model.")
        return {"LICENSE": LICENCE.read_text(encoding="utf-8"), "NOTICE": "\n".join(parts) + "\n"}

    @property
    def needs_fpu(self) -> bool:
        """Whether a compiler whose floats are software is refused."""
        core, floats = self.board.core, (m.plan.graph.computes_in_float for m in self.models)
        return not self.board.is_host and (core.mve or (core.fpu and any(floats)))

    @property
    def core_flags(self) -> tuple[str, ...]:
        """The compiler's flags for the core, as `-mcpu=cortex-m4`; none for the host."""
        return tuple(f for f in self.board.compiler_flags if not f.startswith("-D"))

    @property
    def definitions(self) -> tuple[str, ...]:
        """Macros, as `NAME=1`, that the kernels are compiled with."""
        return tuple(f[2:] for f in self.board.compiler_flags if f.startswith("-D"))

    @property
    def core(self) -> str:
        return self.board.core.name

    def sources(self, folder: str = "src") -> tuple[str, ...]:
        """The paths of all C files: the generated ones in `folder`, the kernels below it."""
        kernels = (f"{folder}/kernels/{name}" for name in self.kernels)
        return (*(f"{folder}/{name}" for name in self.generated), *kernels)

    def tree(self, public: str = "include", private: str = "src") -> dict[str, str]:
        """Every C file and header by its path: public headers in one folder; the rest in another,
        the kernels in `kernels` below it. Both folders are to be searched for includes.
        """
        files = {f"{public}/{name}": text for name, text in self.public_headers.items()}
        files |= {f"{private}/{name}": text for name, text in self.private_headers.items()}
        files |= {f"{private}/{name}": text for name, text in self.generated.items()}
        return files | {f"{private}/kernels/{name}": text for name, text in self.kernels.items()}

    def _generated(self, suffixes: Sequence[str]) -> Iterable[tuple[str, str]]:
        for model in self.models:
            for name, text in model.sources.files.items():
                if Path(name).suffix in suffixes:
                    yield name, text

    def _ours_included_by(self, texts: Iterable[str]) -> dict[str, str]:
        headers: dict[str, str] = {}
        queue = list(texts)
        while queue:
            for match in _INCLUDE.finditer(queue.pop()):
                header = self._our_headers.get(match["name"])
                if header is not None and header.name not in headers:
                    headers[header.name] = header.read_text(encoding="utf-8")
                    queue.append(headers[header.name])
        return headers

    @cached_property
    def _our_headers(self) -> Mapping[str, Path]:
        tree = runtime_c.tree()
        return {path.name: path for path in (*tree.headers(), *tree.support())}

    @cached_property
    def _their_headers(self) -> Mapping[str, Path]:
        include = cmsis_nn.tree(self.cmsis_nn).include
        headers = sorted(include.rglob("*.h"))
        return {path.relative_to(include).as_posix(): path for path in headers}
