"""One ONNX operator as a chain of elementwise kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.frontends.onnx.quantisation import UNIT
from toolchain.ir import Attributes
from toolchain.ops import spec_of
from toolchain.ops.elementwise.functions import UNARY
from toolchain.ops.elementwise.kinds import float_attributes, float_kind
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.spec import OnnxNode


class Chain:
    """Elementwise operators one after another on input 0; the last one answers."""

    def __init__(self, node: OnnxNode, axes: tuple[int, ...]) -> None:
        self._node, self._axes = node, axes
        self._tensor = node.operand(0, axes)
        shape = node.shape(0)
        self.shape = tuple(shape[axis] for axis in axes)
        self._waiting: tuple[str, Attributes, list[str]] | None = None

    def binary(self, kind: str, operand: NDArray[np.float64] | float | str) -> None:
        """`operand`: the last dimensions as they lie, a number, or a tensor."""
        if not isinstance(operand, str):
            data = np.asarray(operand, np.float32)
            operand = self._node.add_constant(kind, data, None)
        self._then(kind, spec_of(kind).plain_attributes(), [self.tensor, operand])

    def unary(self, function: str) -> None:
        """A function of the table, by its name."""
        row = UNARY[function]
        self._then(float_kind(row), float_attributes(row), [self.tensor])

    def restart(self, tensor: str) -> None:
        """Go on from `tensor`, an earlier result."""
        self._tensor, self._waiting = tensor, None

    @property
    def tensor(self) -> str:
        """The result so far."""
        if self._waiting is not None:
            self._tensor = self._node.intermediate(*self._waiting, self.shape, UNIT)
            self._waiting = None
        return self._tensor

    def mean(self, tensor: str, axes: tuple[int, ...]) -> str:
        shape = tuple(1 if axis in axes else d for axis, d in enumerate(self.shape))
        return self._node.intermediate("mean", Reduce(axes, True), [tensor], shape, UNIT)

    def answer(self) -> None:
        assert self._waiting is not None
        self._node.emit(*self._waiting, UNIT, self._axes)

    def _then(self, kind: str, attributes: Attributes, inputs: list[str]) -> None:
        self._waiting = (kind, attributes, inputs)
