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
from toolchain.ops.elementwise.quantised import Arithmetic, Quantised, forms_of
from toolchain.ops.readers.onnx_elementwise import read_extremum, read_plain


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


def _spec(kind: str, choose: Callable[[Any, Any], Any], bound: str) -> kit.OpSpec:
    arithmetic = _Arithmetic(choose, bound)

    def sample(rng: np.random.Generator) -> kit.Graph:
        """All tensors have one quantisation."""
        graph = sample_binary(rng, kind, kit.Attributes(), 1.0)
        q = graph.tensors["y"].q
        return kit.with_tensors(graph, lambda tensor: replace(tensor, quantisation=q))

    rule = Quantised(
        kind,
        lambda op: arithmetic,
        versions=(2, 3),
        onnx=(read_extremum(kind), read_plain(kind)),
        quantised=kit.STORED,
        sample=sample,
    )
    return kit.OpSpec(forms_of(rule))


SPECS = (_spec("maximum", np.maximum, "low"), _spec("minimum", np.minimum, "high"))
