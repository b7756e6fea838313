"""Assign: store a state for the next run. TFLite ASSIGN_VARIABLE.

Inputs are the new value and the state. The output, which nothing reads, lies in the state's place.
If the new value is computed in that place, there is nothing to do. If it is part of one buffer with
the state (the end of a window that begins with the state), it is moved down within the buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit


@dataclass(frozen=True)
class Assign(kit.Attributes):
    """No attributes."""


def _infer(op: kit.AnyOperator) -> kit.TensorTypes:
    value, state = op.x, op.input(1)
    if (value.shape, value.dtype) != (state.shape, state.dtype):
        raise ValueError(f"{value} is assigned to {state}")
    return (kit.TensorType(state.shape, state.dtype),)


def _reference(op: kit.AnyOperator, inputs: kit.Inputs) -> kit.Arrays:
    return (inputs[0],)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    """Nothing is called: where the value does not lie in the state, it is copied as a view is."""
    return kit.Kernel((), lambda touched: kit.Extents())


def _aliases(op: kit.AnyOperator) -> tuple[kit.Alias, ...]:
    value, state = op.each
    return (kit.Alias(op.y.name, state.name), kit.Alias(value.name, op.y.name))


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = tuple(int(size) for size in rng.integers(1, 6, rng.integers(1, 5)))
    q = kit.Quantisation((0.05,), (int(rng.integers(-128, 128)),))
    x, state = (kit.Tensor(name, shape, kit.DType.INT8, q) for name in ("x", "state"))
    initial = rng.integers(-128, 128, shape).astype(np.int8)
    kept = kit.State("state", "state_next", initial)
    graph = kit.sample("assign", Assign(), x, state, outputs=["state_next"], states=[kept])
    return replace(graph, outputs=("x",))


SPEC = kit.Form(
    quantised=kit.STORED,
    kind="assign",
    attributes=Assign,
    infer=_infer,
    reference=_reference,
    select=_select,
    aliases=_aliases,
    sample=_sample,
    types=frozenset(kit.DType),
    limits="any element type; the state is named by VAR_HANDLE and read by READ_VARIABLE",
)
