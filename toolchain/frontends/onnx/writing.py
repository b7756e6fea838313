"""Operators that replace one that is written as others: old forms, QLinear forms, compositions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.onnx.model import Array, Node
from toolchain.ir.names import Names

Shapes = Mapping[str, tuple[int, ...]]
_AXES_ARE_INPUTS = 18
"""The first opset whose reductions but ReduceSum have their axes as an input."""


@dataclass
class Writer:
    """The operators that replace `node`, and the constants that they read.

    constants  of the whole model, and those that are added.
    opset      the file's.
    names      of all tensors, for those that are added.
    shapes     of the tensors whose shapes can be told.
    known      tensors whose values are known, dequantised constants included.
    ranks      the number of dimensions of each tensor that can be told; called at most once.
    nodes      what was written so far; nothing where `node` stays as it is.
    """

    node: Node
    constants: dict[str, Array]
    opset: int
    names: Names
    shapes: Shapes = field(default_factory=dict)
    known: Set[str] = frozenset()
    ranks: Callable[[], Mapping[str, int]] = dict
    nodes: list[Node] = field(default_factory=list)

    def put(self, node: Node) -> None:
        self.nodes.append(node)

    def write(
        self, operator: str, inputs: Iterable[str], outputs: Iterable[str], /, **attributes: Any
    ) -> None:
        """Add an operator that gives the tensors `outputs`."""
        node = self.node
        self.put(Node(node.index, operator, node.name, tuple(inputs), tuple(outputs), attributes))

    def named(self, stem: str, operator: str, inputs: Iterable[str], /, **attributes: Any) -> str:
        """Add an operator; returns the name of its result, made of `stem`."""
        output = self.fresh(stem)
        self.write(operator, inputs, (output,), **attributes)
        return output

    def op(self, operator: str, inputs: Iterable[str], /, **attributes: Any) -> str:
        """Add an operator; returns the name of its result."""
        return self.named(f"{operator}{len(self.nodes)}", operator, inputs, **attributes)

    def answer(self, operator: str, inputs: Iterable[str], /, **attributes: Any) -> None:
        """Add the operator that gives the node's own results."""
        self.write(operator, inputs, self.node.outputs, **attributes)

    def constant(
        self, values: Any, dtype: type[np.generic] = np.float32, stem: str | None = None
    ) -> str:
        name = self.fresh(f"constant{len(self.constants)}" if stem is None else stem)
        self.constants[name] = np.asarray(values, dtype)
        return name

    def integers(self, values: Any) -> str:
        """An int64 constant: a shape, axes, places."""
        return self.constant(values, np.int64)

    def fresh(self, stem: str) -> str:
        """A name for a tensor."""
        return self.names.fresh(f"{self.node.outputs[0]}/{self.node.index}/{stem}")

    def input(self, index: int) -> str:
        """The name of input `index`; '' where it is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else ""

    def shape(self, name: str) -> tuple[int, ...]:
        known = self.constants.get(name)
        return self.shapes[name] if known is None else known.shape

    def reshaped(self, name: str, shape: Sequence[int]) -> str:
        return self.op("Reshape", [name, self.integers(list(shape))])

    def axes(self) -> Sequence[int] | None:
        """The axes that a reduction names; None for all."""
        if self.input(1):
            given = self.constants.get(self.node.inputs[1])
            if given is None:
                raise InputError(f"{self.node}: its axes are computed while the model runs")
            return [int(axis) for axis in given.reshape(-1)] or None
        return self.node.attributes.get("axes")

    def sum(self, x: str, axes: Sequence[int] | None, *, keep: bool) -> str:
        """`x` summed over `axes`."""
        return self.op("ReduceSum", self._summed(x, axes), keepdims=int(keep))

    def answer_sum(self, x: str) -> None:
        """The node's own result is `x` summed, as the reduction `node` says."""
        keep = int(self.node.attributes.get("keepdims", 1))
        self.answer("ReduceSum", self._summed(x, self.axes()), keepdims=keep)

    def largest(self, x: str, axes: Sequence[int] | None, *, keep: bool) -> str:
        """The largest of `x` over `axes`."""
        if axes is None or self.opset >= _AXES_ARE_INPUTS:
            return self.op("ReduceMax", self._summed(x, axes), keepdims=int(keep))
        return self.op("ReduceMax", [x], keepdims=int(keep), axes=list(axes))

    def _summed(self, x: str, axes: Sequence[int] | None) -> list[str]:
        return [x] if axes is None else [x, self.integers(list(axes))]
