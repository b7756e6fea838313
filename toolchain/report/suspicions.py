"""Signs that a model's quantisation is broken, although it is computed as asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from toolchain.ir import DType, Graph, Op
from toolchain.memory.plan import Plan

_SATURATED = 1 << 30
"""Half of what int32 holds. Converters write the end of int32 for a bias that it does not hold."""
_FAR = 2.0**30
_NARROW = (DType.INT8, DType.UINT8, DType.INT16)


def warnings_json(plan: Plan) -> dict[str, Any]:
    """The field `warnings` of `--json`, a list of texts; nothing without any."""
    warnings = plan_warnings(plan)
    return {"warnings": list(warnings)} if warnings else {}


def plan_warnings(plan: Plan) -> tuple[str, ...]:
    """One text for each suspicion: how many operators, the first one's name, and what it means.

    An operator in blocks counts as one.
    """
    graph = plan.graph
    saturated: dict[str, int] = {}
    for op in graph.ops:
        largest = _largest_bias(op, graph)
        name = op.counted_as[0]
        if largest >= _SATURATED:
            saturated[name] = max(largest, saturated.get(name, 0))
    return (*_of_biases(saturated), *_of_scales(graph), *_of_kernels(plan))


def _of_biases(saturated: Mapping[str, int]) -> Iterator[str]:
    """`saturated`: the operators' names, and their largest biases."""
    if not saturated:
        return
    first, largest = next(iter(saturated.items()))
    count = len(saturated)
    which = f"operator {first!r} has" if count == 1 else f"{count} operators, first {first!r}, have"
    yield (
        f"{which} a bias of 2**30 steps or more in magnitude ({largest:,}), as a broken conversion "
        "writes; sums that int32 does not hold wrap, as the reference's do"
    )


def _of_scales(graph: Graph) -> Iterator[str]:
    """Suspicions about scales of data in 8 and 16 bits; channels without weights may have any
    scale."""
    absurd = [
        tensor
        for tensor in graph.tensors.values()
        if tensor.quantisation is not None
        and tensor.dtype in _NARROW
        and not tensor.is_constant
        and not 1 / _FAR <= tensor.q.scales[0] <= _FAR
    ]
    if not absurd:
        return
    first, count = absurd[0], len(absurd)
    name = repr(first.name)
    which = f"tensor {name} has" if count == 1 else f"{count} tensors, first {name}, have"
    yield (
        f"{which} a scale beyond 2**-30 to 2**30 ({first.q.scales[0]:.3g}), as a broken conversion "
        "writes; values that int32 does not hold wrap, as the reference's do"
    )


def _of_kernels(plan: Plan) -> Iterator[str]:
    """Suspicions that kernels tell (`Kernel.suspicion`)."""
    suspects: dict[str, dict[str, None]] = {}
    for op, kernel in zip(plan.graph.ops, plan.lowered.kernels, strict=True):
        if kernel.suspicion:
            suspects.setdefault(kernel.suspicion, {})[op.counted_as[0]] = None
    for suspicion, names in suspects.items():
        first, count = next(iter(names)), len(names)
        one = f"operator {first!r} has"
        yield f"{one if count == 1 else f'{count} operators, first {first!r}, have'} {suspicion}"


def _largest_bias(op: Op, graph: Graph) -> int:
    """The largest magnitude of a quantised int32 constant of an operator; 0 if there is none."""
    magnitudes = [0]
    for name in op.present_inputs():
        tensor = graph.tensors[name]
        if tensor.constant is None or tensor.dtype is not DType.INT32 or not tensor.elements:
            continue
        if tensor.quantisation is not None:
            magnitudes.append(int(np.abs(tensor.constant.astype(np.int64)).max()))
    return max(magnitudes)
