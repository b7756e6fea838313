"""int32 functions of two tensors that broadcast, with a fused activation where TFLite has one.

They compute with plain integers: no scale is used. Sums and products wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.elementwise.kernels import broadcast_kernel, expressed
from toolchain.ops.kernel import Kernel
from toolchain.ops.spec import (
    STORED,
    Array,
    OpSpec,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

Int64 = NDArray[np.int64]

_LIMITS = np.iinfo(np.int32)
_RANGES: Mapping[Activation, tuple[int, int]] = MappingProxyType(
    {
        Activation.NONE: (_LIMITS.min, _LIMITS.max),
        Activation.RELU: (0, _LIMITS.max),
        Activation.RELU_N1_TO_1: (-1, 1),
        Activation.RELU6: (0, 6),
    }
)


def _quotient(a: Int64, b: Int64) -> Int64:
    """Rounded towards 0."""
    quotient: Int64 = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return quotient


def _squared_difference(a: Int64, b: Int64) -> Int64:
    """The difference wraps before it is squared."""
    wrapped = (a - b).astype(np.int32).astype(np.int64)
    square: Int64 = wrapped * wrapped
    return square


_DIVISIONS = frozenset({"div", "floor_div", "floor_mod"})
FUNCTIONS: Mapping[str, Callable[[Int64, Int64], Int64]] = MappingProxyType(
    {
        "add": lambda a, b: a + b,
        "div": _quotient,
        "floor_div": lambda a, b: a // b,
        "floor_mod": lambda a, b: a % b,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "mul": lambda a, b: a * b,
        "squared_difference": _squared_difference,
        "sub": lambda a, b: a - b,
    }
)
"""By the kind that they are the int32 form of."""


def _range(op: Op) -> tuple[int, int]:
    return _RANGES[getattr(op.attributes, "activation", Activation.NONE)]


def _divisor(op: Op, graph: Graph) -> Array | None:
    return graph.input(op, 1).constant


def _infer_quotient(base: OpSpec) -> Callable[[Op, Graph], tuple[TensorType, ...]]:
    """As `base`'s, but that the divisor must be a constant without 0: TFLite stops there."""

    def infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
        divisor = _divisor(op, graph)
        if divisor is None or not divisor.all():
            raise ValueError(f"the int32 divisor {op.inputs[1]!r} is no constant without zeros")
        return base.infer(op, graph)

    return infer


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    a, b = (values.astype(np.int64) for values in inputs)
    values = FUNCTIONS[op.kind](a, b).astype(np.int32)
    return (np.clip(values, *_range(op)).astype(np.int32).reshape(graph.output(op).shape),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    low, high = _range(op)
    limits: dict[str, float] = (
        {"low": low, "high": high} if (low, high) != _RANGES[Activation.NONE] else {}
    )
    return expressed(broadcast_kernel(op, graph, core, ""), "binary_s32", op.kind, "", limits)


def _sample(base: OpSpec) -> Callable[[np.random.Generator], Graph]:
    """The samples of the int8 kind with plain integers."""

    def sample(rng: np.random.Generator) -> Graph:
        while True:
            graph = base.sample(rng)
            (op,) = graph.ops
            tensors = []
            for tensor in graph.tensors.values():
                data = None
                if tensor.is_constant:
                    data = rng.integers(1, 1 << int(rng.integers(2, 31)), tensor.shape)
                    data = (data * rng.choice([-1, 1], tensor.shape)).astype(np.int32)
                tensors.append(replace(tensor, dtype=DType.INT32, quantisation=None, constant=data))
            made = Graph.build(graph.name, tensors, graph.ops, graph.inputs, graph.outputs)
            if op.kind not in _DIVISIONS or _divisor(op, made) is not None:
                return made

    return sample


def int32_form(
    base: OpSpec, read: Callable[[TfliteNode], Attributes] = lambda node: Attributes()
) -> OpSpec:
    """The int32 form of an int8 kind `base`. `read` makes the attributes of a TFLite operator."""
    assert base.tflite is not None
    binding = base.tflite

    quotient = base.kind in _DIVISIONS

    def read_plain(node: TfliteNode) -> ReadOp:
        for index, tensor in enumerate(node.inputs):
            if tensor is not None and tensor.dtype is not DType.INT32:
                raise node.unsupported(
                    f"input {index} ({tensor.name!r}) is {tensor.dtype.value} beside int32"
                )
        if quotient and not node.constant(1).all():
            raise node.unsupported("it divides by 0, at which TFLite stops")
        return ReadOp(read(node), (0, 1))

    def write(op: Op, graph: Graph) -> WrittenOp:
        return replace(binding.write(op, graph), version=1)

    activation = ", fused activation" if hasattr(base.plain_attributes(), "activation") else ""
    divisor = ", by a constant" if quotient else ""
    return replace(
        base,
        infer=_infer_quotient(base) if quotient else base.infer,
        reference=_reference,
        select=_select,
        sample=_sample(base),
        tflite=TfliteBinding(binding.builtins, read_plain, write),
        onnx=None,
        dtypes=frozenset({DType.INT32}),
        quantised=STORED,
        limits=f"int32 without scales, any broadcast{activation}{divisor}",
    )
