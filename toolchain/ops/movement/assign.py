"""Assign: store a state for the next run. TFLite ASSIGN_VARIABLE.

Inputs are the new value and the state. The output, which nothing reads, lies in the state's place.
If the new value is computed in that place, there is nothing to do. If it is part of one buffer with
the state (the end of a window that begins with the state), it is moved down within the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, State, Tensor
from toolchain.ops.extents import Extents
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Kernel
from toolchain.ops.spec import STORED, Alias, Array, TensorType


@dataclass(frozen=True)
class Assign(Attributes):
    """No attributes."""


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    value, state = graph.input(op, 0), graph.input(op, 1)
    if (value.shape, value.dtype) != (state.shape, state.dtype):
        raise ValueError(f"{value} is assigned to {state}")
    return (TensorType(state.shape, state.dtype),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return (inputs[0],)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    """Nothing is called: where the value does not lie in the state, it is copied as a view is."""
    return Kernel((), lambda touched: Extents())


def _aliases(op: Op, graph: Graph) -> tuple[Alias, ...]:
    value, state = op.inputs
    return (Alias(op.outputs[0], state), Alias(value, op.outputs[0]))


def _sample(rng: np.random.Generator) -> Graph:
    shape = tuple(int(size) for size in rng.integers(1, 6, rng.integers(1, 5)))
    q = Quantisation((0.05,), (int(rng.integers(-128, 128)),))
    names = ("x", "state", "state_next")
    tensors = [Tensor(name, shape, DType.INT8, q) for name in names]
    initial = rng.integers(-128, 128, shape).astype(np.int8)
    op = Op("assign", "assign", ("x", "state"), ("state_next",), Assign())
    return Graph.build(
        "sample", tensors, [op], ["x"], ["x"], [State("state", "state_next", initial)]
    )


SPEC = OldForm(
    quantised=STORED,
    kind="assign",
    attributes=Assign,
    infer=_infer,
    reference=_reference,
    select=_select,
    aliases=_aliases,
    sample=_sample,
    types=frozenset(DType),
    limits="any element type; the state is named by VAR_HANDLE and read by READ_VARIABLE",
)
