"""Minimum and maximum of int8 or int16. TFLite MINIMUM and MAXIMUM compare stored values.

Source: `maximum_minimum.cc`, `MaximumMinimumBroadcastSlow`. Operands and output should share one
quantisation, because no scale is used; TFLite does not check this, nor does Thimble.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import Int64, Line, sample_binary
from toolchain.ops.elementwise.kernels import broadcast_kernel
from toolchain.ops.elementwise.rows import Arithmetic, Stored, of_two


@dataclass(frozen=True)
class _Arithmetic(Arithmetic):
    """`choose` is NumPy's function, `bound` the bound of a line that a constant is."""

    choose: Callable[[Any, Any], Any]
    bound: str

    def apply(self, a: Int64, b: Int64) -> Int64:
        chosen: Int64 = self.choose(a, b)
        return chosen

    def line(self, operand: int, other: int) -> Line:
        return replace(Line(1.0, 0.0), **{self.bound: other})

    def kernel(self, op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        return broadcast_kernel(op, core, f"thimble_{op.kind}_{kit.SUFFIXES[op.y.dtype]}")


def sample(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    """An int8 operator, whose tensors have one quantisation."""
    graph = sample_binary(rng, kind, attributes)
    q = graph.tensors["y"].q
    return kit.with_tensors(graph, lambda tensor: replace(tensor, quantisation=q))


def _rules(arithmetic: _Arithmetic) -> tuple[Stored, Stored]:
    """Rules for int8 and int16."""
    int8 = of_two(lambda op: arithmetic)
    return int8, replace(int8, version=3)


MAXIMUM, MAXIMUM_S16 = _rules(_Arithmetic(np.maximum, "low"))
MINIMUM, MINIMUM_S16 = _rules(_Arithmetic(np.minimum, "high"))
