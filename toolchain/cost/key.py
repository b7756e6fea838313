"""Keys of measurements: the kernel, the shape it runs on, and the build."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from toolchain.ir import Tensor
from toolchain.kernels.c_sources import defines, reached_text, source_closure
from toolchain.kernels.runtime_c import tree
from toolchain.ops.kernel import Kernel
from toolchain.ops.lowering import Lowered
from toolchain.resources import RUNTIME_C, TEMPLATES

COPIES = "memcpy"
_PLAIN_CALL = "call"
"""The template of calls that compute nothing themselves."""
_LONGEST = 48
_HEADER = re.compile(r'^\s*#\s*include\s+"(?:[^"]*/)?([^"/]+)"', re.MULTILINE)
_TEMPLATE = re.compile(r'\{%-?\s*(?:include|import|from|extends)\s+"([^"]+)"')


@dataclass(frozen=True, order=True)
class Key:
    """A kernel on a shape, which was measured.

    `kernel`: the C functions, their form where there are several, and a digest of all of Thimble's
    C in them: these functions, the ones that they call, the headers and templates that both
    include. `shape`: the operator's attributes and its tensors as text; for copies their sizes in
    bytes. Scales, zero points and the bytes of constants are left out: the time of one kernel does
    not follow from them, and which kernel it is stands in `kernel`.
    """

    kernel: str
    shape: str


@dataclass(frozen=True, order=True)
class Build:
    """The build of the kernels: the compiler with its optimisation, and CMSIS-NN's version."""

    compiler: str
    cmsis_nn: str


def operator_key(lowered: Lowered, number: int) -> Key:
    """The key of operator `number` of the graph, which runs as a kernel."""
    graph, kernel = lowered.graph, lowered.kernels[number]
    op = graph.ops[number]
    words = [
        op.kind,
        *(f"{f.name}={_word(getattr(op.attributes, f.name))}" for f in fields(op.attributes)),
    ]
    inputs = ", ".join(_type(tensor) for tensor in graph.input_tensors(op))
    outputs = ", ".join(_type(graph.tensors[name]) for name in op.outputs)
    functions = kernel.title or op.kind
    return Key(
        f"{functions}@{_code_digest(_templates(kernel), kernel.functions)}",
        f"{' '.join(words)} ({inputs}) -> ({outputs})",
    )


def source_digest(kernel: Kernel) -> str:
    """A digest of what a kernel executes of Thimble's C: comments, layout, types and what its
    headers hold besides do not change it. '' for a kernel of CMSIS-NN's alone.
    """
    return _source_digest(_templates(kernel), kernel.functions)


def copies_key(sizes: Sequence[int]) -> Key:
    """The key of an operator that only makes copies of so many bytes each."""
    return Key(COPIES, " ".join(str(size) for size in sorted(sizes)))


def _word(value: Any) -> str:
    """A short word for an attribute; long ones (tables) by their digest."""
    if isinstance(value, Enum):
        return str(value.name)
    if hasattr(value, "tobytes"):
        return _digest(value.tobytes())
    text = str(value).replace(" ", "")
    return text if len(text) <= _LONGEST else _digest(text.encode())


def _type(tensor: Tensor | None) -> str:
    if tensor is None:
        return "-"
    dims = ",".join(str(d) for d in tensor.shape)
    channels = tensor.quantisation is not None and tensor.quantisation.per_channel
    constant = "const " if tensor.is_constant else ""
    return f"{constant}{tensor.dtype.value}[{dims}]{' per channel' if channels else ''}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:8]


def _templates(kernel: Kernel) -> tuple[str, ...]:
    """The templates that compute something themselves."""
    return tuple(sorted({call.template for call in kernel.calls} - {_PLAIN_CALL}))


@cache
def _source_digest(templates: tuple[str, ...], functions: tuple[str, ...]) -> str:
    kernels = tree()
    own = [name for name in functions if defines(kernels, name)]
    if not (own or templates):
        return ""
    files = [TEMPLATES / "ops" / f"{name}.c.j2" for name in templates]
    texts = [path.read_text("utf-8") for path in _with_included(files, _TEMPLATE, TEMPLATES)]
    return _digest("\0".join([*texts, reached_text(own, kernels)]).encode())


@cache
def _code_digest(templates: tuple[str, ...], functions: tuple[str, ...]) -> str:
    """A digest of the operator's templates and Thimble's kernels, with all that they include and
    call; CMSIS-NN's version is a part of `Build`. The files are read once.
    """
    kernels = tree()
    wanted = [name for name in functions if defines(kernels, name)]
    files = [TEMPLATES / "ops" / f"{name}.c.j2" for name in templates]
    included = _with_included(files, _TEMPLATE, TEMPLATES)
    included += _with_included(source_closure(wanted, (kernels,)).files, _HEADER, RUNTIME_C)
    return _digest(b"\0".join(path.read_bytes() for path in included))


def _with_included(files: Iterable[Path], pattern: re.Pattern[str], folder: Path) -> list[Path]:
    """The files and those below `folder` that they include, by the end of their paths; sorted."""
    included = {path for path in files if path.exists()}
    queue = list(included)
    while queue:
        for name in pattern.findall(queue.pop().read_text(encoding="utf-8")):
            more = set(folder.rglob(name)) - included
            included |= more
            queue += more
    return sorted(included)
