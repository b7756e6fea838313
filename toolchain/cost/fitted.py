"""Instructions of a kernel: how often each of its loops turns, times what a turn takes.

The coefficients in `coefficients.json` are non-negative least squares of the relative error over a
grid of seeded shapes, counted in QEMU; `python -m benchmarks.cost` measures the grid again, fits
them anew and prints the errors. They hold for the compiler and CMSIS-NN that the file names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from toolchain.boards import Core
from toolchain.cost.element_terms import (
    adds,
    binary_terms,
    copy_terms,
    ending_terms,
    fully_connected_terms,
    matmul_terms,
    memcpy_terms,
    move_terms,
    partial_fully_connected_terms,
    plain_terms,
    reduction_terms,
    softmax_terms,
    unary_terms,
)
from toolchain.cost.key import COPIES
from toolchain.cost.window_terms import Terms, pool_terms
from toolchain.ops import spec_of
from toolchain.ops.lowering import Lowered
from toolchain.ops.spec import Lowering

COEFFICIENTS = Path(__file__).with_name("coefficients.json")
_MOVE = "thimble_move"


def family_of(core: Core) -> str:
    """Cores for which one set of coefficients holds: '' where there is none."""
    return "helium" if core.mve else "dsp" if core.dsp else ""


def kernel_terms(lowered: Lowered, number: int) -> tuple[str, Terms]:
    """The kernel of operator `number`, and what its loops do."""
    graph, core, chosen = lowered.graph, lowered.core, lowered.kernels[number]
    op = graph.ops[number]
    if chosen.lowering is None:
        terms = chosen.terms
        if terms is None:
            terms = plain_terms(op, graph, spec_of(op.kind).macs(op, graph))
        return chosen.name or op.kind, dict(terms)
    match op.kind:
        case "average_pool2d" | "max_pool2d":
            return pool_terms(op, graph, core)
        case "fully_connected":
            return fully_connected_terms(op, graph, core)
        case "partial_fully_connected":
            return "thimble_partial_fully_connected_s8", partial_fully_connected_terms(op, graph)
    spec = spec_of(op.kind)
    lowering = chosen.lowering
    assert isinstance(lowering, Lowering)
    kernel = "+".join(lowering.functions) or op.kind
    fields = lowering.fields
    if "copies" in fields:
        if kernel == _MOVE:
            return kernel, move_terms(fields["copies"][0], core)
        return kernel, copy_terms(fields["copies"])
    if fields.get("kernel") in ("lookup", "rescale"):
        return kernel, unary_terms(op, graph, core, lowering)
    if hasattr(fields.get("shape"), "step_1"):
        return kernel, binary_terms(op, graph, core, lowering)
    match kernel:
        case "thimble_batch_matmul_s8":
            return kernel, matmul_terms(op, graph)
        case "thimble_partial_matmul_s8":
            output = graph.output(op).elements
            return kernel, matmul_terms(op, graph) | {"added": output * adds(op)}
        case "thimble_reduce_sum_s8":
            return kernel, reduction_terms(op, graph)
        case "thimble_partial_sum_s8":
            output = graph.output(op).elements
            return kernel, reduction_terms(op, graph) | {"added": output * adds(op)}
        case "thimble_softmax_s8":
            return kernel, softmax_terms(op, graph)
    if op.kind == "requantise_sums":
        return kernel, ending_terms(op, graph, lowering)
    return kernel, plain_terms(op, graph, spec.macs(op, graph))


def fitted_count(lowered: Lowered, number: int) -> float | None:
    """Estimated instructions; None where no coefficients are known for this kernel and core."""
    kernels = _coefficients().get(family_of(lowered.core), {})
    kernel, terms = kernel_terms(lowered, number)
    each = kernels.get(kernel)
    return sum(each.get(name, 0.0) * count for name, count in terms.items()) if each else None


def fitted_copies(sizes: Sequence[int], core: Core) -> float | None:
    """Estimated instructions of copies of so many bytes; None as for operators."""
    each = _coefficients().get(family_of(core), {}).get(COPIES)
    terms = memcpy_terms(sizes)
    return sum(each.get(name, 0.0) * count for name, count in terms.items()) if each else None


@cache
def _coefficients() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    data = json.loads(COEFFICIENTS.read_text(encoding="utf-8"))
    return {family: fitted["kernels"] for family, fitted in data.items()}
