"""The coefficients of a core: what an iteration of each loop of each kernel costs.

`coefficients/` has a file for each core: a non-negative least-squares fit of the relative error
over a grid of seeded shapes. `python -m benchmarks.cost` counts the grid again, fits the
coefficients and prints the errors. They hold for the compiler and CMSIS-NN that the file names.
`fits` says of each kernel of which C its coefficients are (`key.source_digest`; several, where
several templates share a name), by how many shapes they were fitted or held against a trace last,
and the mean error on shapes that took no part in the fit.
Cores without a file share a rough one that counts instructions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.kernel import Terms
from toolchain.ops.lowering import Lowered

COEFFICIENTS = Path(__file__).with_name("coefficients")
_OF_OTHERS = "plain.json"
_IN_SOFTWARE = "float32 in software"
_WITHOUT_FPU = Core("cortex-m3")
"""Its float32 kernels were fitted, and no core of its name has an FPU."""
ROUGH = ("int8", "int16", "int16 sums", "float32", _IN_SOFTWARE)
"""Rough kernels, by the type of their elements: they stand for kernels that were not fitted."""


@dataclass(frozen=True)
class Fit:
    """`kernels`: of each kernel, by the name of its loop, the cost of an iteration in `unit`."""

    unit: str
    kernels: Mapping[str, Terms]

    def count(self, kernel: str, terms: Terms) -> float | None:
        """The sum over the loops; None for a kernel that was not fitted."""
        each = self.kernels.get(kernel)
        return None if each is None else sum_over(each, terms)


def sum_over(each: Terms, terms: Terms) -> float:
    """The sum over loops of what an iteration of `each` costs, times how often it turns."""
    return sum([each[name] * count for name, count in terms.items() if name in each], 0.0)


@cache
def fit_of(core: Core) -> Fit:
    """The fit of this core, or the rough one in instructions of all cores without one."""
    file_of_core = COEFFICIENTS / f"{core.name}.json"
    file = file_of_core if file_of_core.is_file() else COEFFICIENTS / _OF_OTHERS
    data = json.loads(file.read_text(encoding="utf-8"))
    return Fit(data["unit"], data["kernels"])


def fit_for(core: Core, op: Op, graph: Graph) -> Fit:
    """The fit for an operator's kernel.

    A core without FPU whose fit was made with one takes the fit of a core without FPU for float32.
    """
    fit = fit_of(core)
    if core.fpu or _IN_SOFTWARE in fit.kernels or rough_kernel(op, graph, core) != _IN_SOFTWARE:
        return fit
    return fit_of(_WITHOUT_FPU)


def coefficients_text(data: Mapping[str, Any]) -> str:
    """The text of a file of `coefficients/`: a line for each field, and one for each kernel in a
    field of kernels.
    """
    fields = []
    for name, value in data.items():
        text = json.dumps(value)
        if isinstance(value, Mapping):
            each = [f"  {json.dumps(key)}: {json.dumps(one)}" for key, one in value.items()]
            text = "\n".join(["{", ",\n".join(each), " }"])
        fields.append(f" {json.dumps(name)}: {text}")
    return "\n".join(["{", ",\n".join(fields), "}", ""])


def kernel_name(lowered: Lowered, number: int) -> str:
    """The name of the kernel of operator `number` in the coefficients."""
    return lowered.kernels[number].name or lowered.graph.ops[number].kind


def kernel_terms(lowered: Lowered, number: int) -> tuple[str, Terms]:
    """The name of the kernel of operator `number`, and its loop counts."""
    terms = lowered.kernels[number].terms
    if terms is None:
        terms = plain_terms(lowered.graph.ops[number], lowered.graph)
    return kernel_name(lowered, number), terms


def plain_terms(op: Op, graph: Graph) -> Terms:
    """Loop counts of a kernel without a formula: calls, products and elements."""
    inputs = [graph.tensors[name] for name in op.present_inputs()]
    return {
        "call": 1.0,
        "product": spec_of(op.kind).macs(op, graph),
        "read element": sum(x.elements for x in inputs if not x.is_constant),
        "written element": sum(graph.tensors[name].elements for name in op.outputs),
    }


def rough_kernel(op: Op, graph: Graph, core: Core) -> str:
    """The name in `ROUGH` that stands for the operator's kernel where that was not fitted; its loop
    counts are `plain_terms`."""
    spec = spec_of(op.kind)
    dtypes = spec.form(op, graph).dtypes
    if dtypes == {DType.FLOAT32}:
        return "float32" if core.fpu else _IN_SOFTWARE
    if dtypes == {DType.INT16}:
        return "int16 sums" if spec.macs(op, graph) else "int16"
    return "int8"


def memcpy_terms(sizes: Sequence[int]) -> Terms:
    """newlib's memcpy of words, one call for each size in bytes."""
    return {
        "call": 1.0,
        "copy": len(sizes),
        "64 bytes": sum(size // 64 for size in sizes),
        "16 bytes": sum(size % 64 // 16 for size in sizes),
        "word": sum(size % 16 // 4 for size in sizes),
        "byte": sum(size % 4 for size in sizes),
    }
