"""Small graphs for tests of passes and front ends, built operator by operator."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import spec_of

QUANTISATION = Quantisation((0.0625,), (-3,))


@dataclass
class Builder:
    """Grows a graph; each call of `op` adds an operator whose output types come from its rule."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    tensors: dict[str, Tensor] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)

    def input(
        self,
        shape: tuple[int, ...],
        dtype: DType = DType.INT8,
        quantisation: Quantisation | None = QUANTISATION,
    ) -> str:
        name = f"in{len(self.inputs)}"
        self.tensors[name] = Tensor(name, shape, dtype, quantisation)
        self.inputs.append(name)
        return name

    def constant(
        self,
        shape: tuple[int, ...],
        dtype: DType = DType.INT8,
        quantisation: Quantisation | None = QUANTISATION,
    ) -> str:
        name = f"constant{len(self.tensors)}"
        data = self.rng.integers(-100, 101, shape).astype(dtype.numpy)
        self.tensors[name] = Tensor(name, shape, dtype, quantisation, data)
        return name

    def op(
        self,
        kind: str,
        inputs: list[str],
        attributes: Attributes,
        quantisation: Quantisation | None = QUANTISATION,
        dtype: DType = DType.INT8,
    ) -> str:
        """Add an operator with one output, and return the output's name."""
        name = f"t{len(self.ops)}"
        op = Op(kind, f"{kind}_{len(self.ops)}", tuple(inputs), (name,), attributes)
        self.tensors[name] = Tensor(name, (1,), dtype, quantisation)
        (found,) = spec_of(kind).infer(op, self.graph([]))
        self.tensors[name] = Tensor(name, found.shape, found.dtype, quantisation)
        self.ops.append(op)
        return name

    def conv(self, x: str, kernel: int, channels: int, attributes: Attributes) -> str:
        """A convolution with random weights and bias."""
        depth = self.tensors[x].shape[3]
        weights = self.constant(
            (channels, kernel, kernel, depth), quantisation=Quantisation((0.01,), (0,))
        )
        scale = float(np.float32(self.tensors[x].q.scale) * np.float32(0.01))
        bias = self.constant((channels,), DType.INT32, Quantisation((scale,), (0,)))
        return self.op("conv2d", [x, weights, bias], attributes)

    def graph(self, outputs: list[str]) -> Graph:
        return Graph.build("test", self.tensors.values(), self.ops, self.inputs, outputs)
