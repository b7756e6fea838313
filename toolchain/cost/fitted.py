"""Estimated instructions of a kernel: the count of each of its loops times the cost of an
iteration.

The coefficients in `coefficients.json` are a non-negative least-squares fit of the relative error
over a grid of seeded shapes, counted in QEMU. `python -m benchmarks.cost` measures the grid again,
fits the coefficients and prints the errors. They hold for the compiler and CMSIS-NN that the file
names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from toolchain.boards import Core
from toolchain.cost.key import COPIES
from toolchain.ir import Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.kernel import Terms
from toolchain.ops.lowering import Lowered

COEFFICIENTS = Path(__file__).with_name("coefficients.json")


def family_of(core: Core) -> str:
    """Name of the group of cores that share one set of coefficients; '' if there is none."""
    return "helium" if core.mve else "dsp" if core.dsp else ""


def kernel_terms(lowered: Lowered, number: int) -> tuple[str, Terms]:
    """The kernel of operator `number`, and its loop counts."""
    op, kernel = lowered.graph.ops[number], lowered.kernels[number]
    terms = kernel.terms
    if terms is None:
        terms = _plain_terms(op, lowered.graph)
    return kernel.name or op.kind, terms


def _plain_terms(op: Op, graph: Graph) -> Terms:
    """Of a kernel that has no formula of its own."""
    inputs = [graph.tensors[name] for name in op.present_inputs()]
    return {
        "call": 1.0,
        "product": spec_of(op.kind).macs(op, graph),
        "read element": sum(x.elements for x in inputs if not x.is_constant),
        "written element": sum(graph.tensors[name].elements for name in op.outputs),
    }


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


def fitted_count(lowered: Lowered, number: int) -> float | None:
    """Estimated instructions; None where no coefficients are known for this kernel and core."""
    kernels = _coefficients().get(family_of(lowered.core), {})
    kernel, terms = kernel_terms(lowered, number)
    each = kernels.get(kernel)
    return sum(each.get(name, 0.0) * count for name, count in terms.items()) if each else None


def fitted_copies(sizes: Sequence[int], core: Core) -> float | None:
    """Estimated instructions of copies of so many bytes; None as in `fitted_count`."""
    each = _coefficients().get(family_of(core), {}).get(COPIES)
    terms = memcpy_terms(sizes)
    return sum(each.get(name, 0.0) * count for name, count in terms.items()) if each else None


@cache
def _coefficients() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    data = json.loads(COEFFICIENTS.read_text(encoding="utf-8"))
    return {family: fitted["kernels"] for family, fitted in data.items()}
