"""A model as a folder that another project can build: sources, a list of kernels, CMake."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from toolchain.codegen.environment import environment
from toolchain.ir import Sources
from toolchain.kernels import runtime_c
from toolchain.resources import RUNTIME_C

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(?P<name>[^"]+)"', re.MULTILINE)
CMSIS_NN_LIST = "cmsis_nn_sources.txt"
RUNTIME_FOLDER = "runtime"
SHARED_NAME = "thimble_shared"
"""The name of a library of several models."""


def library_files(models: Sequence[Sources]) -> Mapping[str, str]:
    """The text of each file, by its path below the library's folder.

    The folder holds the generated files (for several models also the union of their arenas),
    Thimble's kernels with the headers they include, under `runtime/`, and a CMakeLists.txt that
    builds a static library. If a model calls CMSIS-NN, a further file lists the sources to compile,
    one path below CMSIS-NN's folder per line, and CMake asks for `-DCMSIS_NN_DIR`.
    """
    files = {name: text for sources in models for name, text in sources.files.items()}
    generated = [name for name in files if name.endswith(".c")]
    runtime = sorted({path for sources in models for path in sources.runtime})
    kernels = {path: (RUNTIME_C / path).read_text(encoding="utf-8") for path in runtime}
    copied = with_headers(kernels, files)
    name = models[0].name
    if len(models) > 1:
        name = SHARED_NAME
        files[f"{SHARED_NAME}_arena.h"] = shared_arena_header(models)
    files |= {f"{RUNTIME_FOLDER}/{path}": text for path, text in sorted(copied.items())}
    cmsis_nn = sorted({path for sources in models for path in sources.cmsis_nn})
    if cmsis_nn:
        files[CMSIS_NN_LIST] = "".join(f"{path}\n" for path in cmsis_nn)
    files["CMakeLists.txt"] = (
        environment()
        .get_template("library/CMakeLists.txt.j2")
        .render(
            name=name,
            models=[sources.name for sources in models],
            generated=generated,
            runtime=[f"{RUNTIME_FOLDER}/{path}" for path in runtime],
            has_runtime=bool(copied),
            cmsis_nn_list=CMSIS_NN_LIST,
            needs_cmsis_nn=bool(cmsis_nn),
        )
    )
    return MappingProxyType(files)


def shared_arena_header(models: Sequence[Sources]) -> str:
    """The text of `thimble_shared_arena.h`: the union of the models' arenas."""
    return environment().get_template("library/shared_arena.h.j2").render(models=models)


def with_headers(kernels: Mapping[str, str], generated: Mapping[str, str]) -> dict[str, str]:
    """`kernels` and every header of Thimble's that they or the `generated` files include and do not
    bring, all in one folder.
    """
    tree = runtime_c.tree()
    every = (*tree.headers(), *tree.support())
    headers = {path.name: path for path in every if path.name not in generated}
    files = dict(kernels)
    queue = [*kernels.values(), *generated.values()]
    while queue:
        for match in _INCLUDE.finditer(queue.pop()):
            path = f"include/{match['name']}"
            if path not in files and match["name"] in headers:
                files[path] = headers[match["name"]].read_text(encoding="utf-8")
                queue.append(files[path])
    return files


def write_library(models: Sequence[Sources], folder: Path) -> tuple[Path, ...]:
    """Write `library_files` below `folder`; return the paths. Raises OSError if a file cannot be
    written.
    """
    written = []
    for name, text in library_files(models).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        written.append(path)
    for sources in models:
        if sources.weights is not None:
            path = folder / sources.weights_file
            path.write_bytes(sources.weights.data)
            written.append(path)
    return tuple(written)
