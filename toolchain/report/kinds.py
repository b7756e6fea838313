"""Features of the operator kinds, from their specs: the table of `thimble ops`."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import HOST, Core
from toolchain.ir import DType, Graph
from toolchain.kernels import cmsis_nn
from toolchain.ops import kernel_of, specs
from toolchain.ops.forms import OpSpec
from toolchain.ops.preference import Preference

CORES = (
    Core("cortex-m3"),
    Core("cortex-m4", dsp=True, fpu=True),
    Core("cortex-m55", dsp=True, mve=True, fpu=True),
)
_SAMPLES = 12
_ANY = frozenset(DType)

HEADINGS = ("operator", "TFLite", "ONNX", "types", "kernels", "memory", "splits")
_LONGEST_CELL = 100
NOTES = (
    "- *types*: element types of the activations.",
    "- *kernels*: whose C function computes it. `own`: Thimble's, in `runtime_c/`. `on request`: "
    "taken with `--kernels cmsis-nn`. `not exact`: bytes may differ from LiteRT's by 1 (the plan "
    "lists such operators, with the reason).",
    "- *memory*: `view`: owns no bytes where its data need not move. `in place`: may write over an "
    "input. `diagonal`: its output may begin some bytes below an input that it still reads.",
    "- *splits*: axes of the output along which it can be computed block by block (`--ram`). "
    "`sums`: also axes that it sums over, by int32 sums.",
)


@dataclass(frozen=True)
class Kind:
    """One row. `memory` and `splits` are what was found on samples, best case first."""

    name: str
    tflite: tuple[str, ...]
    onnx: tuple[str, ...]
    types: tuple[str, ...]
    kernels: tuple[str, ...]
    functions: tuple[str, ...]
    memory: tuple[str, ...]
    splits: str
    limits: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of HEADINGS."""
        names = [
            f"{each[0]} and {len(each) - 1} more, [below](#limits)"
            if len(", ".join(each)) > _LONGEST_CELL
            else ", ".join(each)
            for each in (self.tflite, self.onnx)
        ]
        lists = [", ".join(each) for each in (self.types, self.kernels, self.memory)]
        return (self.name, *names, *lists, self.splits)

    @property
    def limit(self) -> str:
        """The item of the list of limits, with the names that a cell is too short for."""
        names = [", ".join(each) for each in (self.tflite, self.onnx)]
        long = [each for each in names if len(each) > _LONGEST_CELL]
        return f"- **{self.name}**: {'; '.join([*long, self.limits])}"


def kinds(wanted: Sequence[str] = ()) -> tuple[Kind, ...]:
    """All operator kinds, or those with a name that contains one of `wanted`, ignoring case."""
    return tuple(_described(spec) for spec in specs().values() if matching(_names(spec), wanted))


def matching(names: Iterable[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """The `names` that contain one of `wanted`, ignoring case; all if nothing is wanted."""
    words = [word.casefold() for word in wanted]
    return tuple(n for n in names if not words or any(word in n.casefold() for word in words))


_ONNX_NOTES = (
    "ONNX files:",
    "",
    "- Operators that depend on constants alone are computed while reading, also if the constants "
    "are behind DequantizeLinear.",
    "- Operators that ONNX defines as functions of others (GroupNormalization, "
    "MeanVarianceNormalization, RMSNormalization, Swish, ...) are written out. So are an If whose "
    "condition is known, and a Loop whose count is known.",
    "- Operators of opsets 1 to 12 are read in their old forms.",
    "- Operators that a quantised model leaves in float run in float32, between a `dequantize` and "
    "a `quantize`, as in ONNX Runtime. So does a PRelu whose real slopes, stored in int8, would "
    "move its output by a step or more.",
)


def markdown(
    read_away: Mapping[str, Sequence[str]],
    unread: Mapping[str, Callable[[Collection[str]], list[str]]],
) -> str:
    """The whole of `docs/operators.md`.

    `read_away`: per format, operators that need no kernel. `unread`: per format, lines about
    operators that are not read, from the names of those that are.
    """
    lines = [
        "# Operators",
        "",
        "`thimble ops --markdown` generates this page; a test keeps it up to date. TFLite "
        "operators give the bytes of LiteRT's reference kernels, ONNX operators are within 1 of "
        "ONNX Runtime.",
        "",
        *NOTES,
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|" + "---|" * len(HEADINGS),
    ]
    described = kinds()
    for kind in described:
        cells = (cell.replace("|", "\\|") or "-" for cell in kind.cells)
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "## Limits",
        "",
        "The forms of each operator that Thimble reads, and how it computes them:",
        "",
    ]
    lines += [kind.limit for kind in described]
    lines += ["", "## Read without a kernel", ""]
    lines += ["These are computed, renamed or expanded while reading, and need no kernel:", ""]
    lines += [f"- {form}: {', '.join(sorted(names))}" for form, names in read_away.items()]
    lines += ["", *_ONNX_NOTES]
    for form, about in unread.items():
        read = {name for spec in specs().values() for name in _names(spec)} | set(read_away[form])
        lines += [
            "",
            f"## Not read from {form}",
            "",
            "The more common ones, as far as known, come first:",
            "",
        ]
        lines += about(read)
    return "\n".join(lines) + "\n"


def _names(spec: OpSpec) -> list[str]:
    return [spec.kind, *_tflite_names(spec), *_onnx_names(spec)]


def _tflite_names(spec: OpSpec) -> tuple[str, ...]:
    """TFLite's names of a kind, for all element types."""
    bindings = [form.tflite for form in spec.forms if form.tflite is not None]
    return tuple(dict.fromkeys(name for binding in bindings for name in binding.builtins))


def _onnx_names(spec: OpSpec) -> tuple[str, ...]:
    """ONNX's names of a kind. Names with a domain are left out: the front end makes them for its
    own use."""
    return tuple(name for name in (spec.onnx.operators if spec.onnx else ()) if "." not in name)


def _described(spec: OpSpec) -> Kind:
    rng = np.random.default_rng(zlib.crc32(spec.kind.encode()))
    samples = [form.sample(rng) for form in spec.forms for _ in range(_SAMPLES)]
    functions = {
        function
        for graph in samples
        for core in CORES
        for function in kernel_of(graph.ops[0], graph, core).functions
    }
    return Kind(
        spec.kind,
        _tflite_names(spec),
        _onnx_names(spec),
        ("any",) if spec.dtypes == _ANY else tuple(sorted(t.value for t in spec.dtypes)),
        _kernels(functions, samples),
        tuple(sorted(functions)),
        _memory(spec, samples),
        _splits(spec, samples) + _sums(spec, samples),
        spec.limits,
    )


def _kernels(functions: set[str], samples: Sequence[Graph]) -> tuple[str, ...]:
    """The makers of a kind's kernels, and of those on request."""
    chosen = {"CMSIS-NN" if cmsis_nn.is_named(f) else "own" for f in functions}
    asked = [
        kernel
        for graph in samples
        for core in CORES
        if (kernel := kernel_of(graph.ops[0], graph, core, Preference.CMSIS_NN)).of_cmsis_nn
    ]
    wanted = {
        "CMSIS-NN on request" + (" (not exact)" if kernel.inexact else "")
        for kernel in asked
        if "CMSIS-NN" not in chosen
    }
    return (*sorted(chosen), *sorted(wanted))


def _memory(spec: OpSpec, samples: Sequence[Graph]) -> tuple[str, ...]:
    claims = [claim for graph in samples for claim in kernel_of(graph.ops[0], graph, HOST).overlaps]
    claimed = {
        "view": any(spec.aliases(graph.ops[0], graph) for graph in samples),
        "in place": any(claim.lead_bytes == 0 for claim in claims),
        "diagonal": any(claim.lead_bytes != 0 for claim in claims),
    }
    return tuple(name for name, holds in claimed.items() if holds)


def _sums(spec: OpSpec, samples: Sequence[Graph]) -> str:
    reduces = any(spec.reductions(graph.ops[0], graph) for graph in samples)
    return "; sums" if reduces else ""


def _splits(spec: OpSpec, samples: Sequence[Graph]) -> str:
    """The axes along which a kind splits: all, all but the last, or their numbers, over all
    ranks."""
    splittable, last = set(), False
    every = True
    for graph in samples:
        rank = len(graph.output(graph.ops[0]).shape)
        axes = {axis.axis for axis in spec.axes(graph.ops[0], graph)}
        splittable |= axes
        every &= axes == set(range(rank))
        last |= rank - 1 in axes and rank > 0
    if not splittable:
        return ""
    if every:
        return "every axis"
    if not last:
        return (
            "leading axes" if 0 in splittable else f"axes {', '.join(map(str, sorted(splittable)))}"
        )
    return f"axes {', '.join(map(str, sorted(splittable)))}"
