"""int32 and int64 functions of two tensors that broadcast, with a fused activation where TFLite has
one.

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

_RANGES: Mapping[Activation, tuple[int | None, int | None]] = MappingProxyType(
    {
        Activation.NONE: (None, None),
        Activation.RELU: (0, None),
        Activation.RELU_N1_TO_1: (-1, 1),
        Activation.RELU6: (0, 6),
    }
)
"""None: the end of the type's own range."""


def _quotient(a: Int64, b: Int64) -> Int64:
    """Rounded towards 0."""
    quotient: Int64 = a // b + ((a % b != 0) & ((a < 0) != (b < 0)))
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
"""By the kind that they are the int32 or int64 form of."""


def _range(op: Op, graph: Graph) -> tuple[int, int] | None:
    """What the activation holds results in; None for all that the type has."""
    low, high = _RANGES[getattr(op.attributes, "activation", Activation.NONE)]
    info = np.iinfo(graph.output(op).dtype.value)
    return None if low is None else (low, int(info.max) if high is None else high)


def _divisor(op: Op, graph: Graph) -> Array | None:
    return graph.input(op, 1).constant


def _infer_quotient(base: OpSpec) -> Callable[[Op, Graph], tuple[TensorType, ...]]:
    """As `base`'s, but that the divisor must be a constant without 0: TFLite stops there."""

    def infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
        divisor = _divisor(op, graph)
        if divisor is None or not divisor.all():
            raise ValueError(f"the divisor {op.inputs[1]!r} is no constant without zeros")
        return base.infer(op, graph)

    return infer


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    y = graph.output(op)
    a, b = (values.astype(np.int64) for values in inputs)
    with np.errstate(over="ignore"):
        values = FUNCTIONS[op.kind](a, b).astype(y.dtype.numpy)
    limits = _range(op, graph)
    if limits is not None:
        values = np.clip(values, *limits).astype(y.dtype.numpy)
    return (values.reshape(y.shape),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    ends = _RANGES[getattr(op.attributes, "activation", Activation.NONE)]
    limits = {n: v for n, v in zip(("low", "high"), ends, strict=True) if v is not None}
    template = f"binary_s{8 * graph.output(op).dtype.size_bytes}"
    return expressed(broadcast_kernel(op, graph, core, ""), template, op.kind, "", limits)


def _sample(base: OpSpec, dtype: DType) -> Callable[[np.random.Generator], Graph]:
    """The samples of the int8 kind with plain integers."""

    def sample(rng: np.random.Generator) -> Graph:
        while True:
            graph = base.sample(rng)
            (op,) = graph.ops
            tensors = []
            for tensor in graph.tensors.values():
                data = None
                if tensor.is_constant:
                    most = 1 << int(rng.integers(2, 8 * dtype.size_bytes - 1))
                    data = rng.integers(1, most, tensor.shape)
                    data = (data * rng.choice([-1, 1], tensor.shape)).astype(dtype.numpy)
                tensors.append(replace(tensor, dtype=dtype, quantisation=None, constant=data))
            made = Graph.build(graph.name, tensors, graph.ops, graph.inputs, graph.outputs)
            if op.kind not in _DIVISIONS or _divisor(op, made) is not None:
                return made

    return sample


def int32_form(
    base: OpSpec, read: Callable[[TfliteNode], Attributes] = lambda node: Attributes()
) -> OpSpec:
    """The int32 form of an int8 kind `base`. `read` makes the attributes of a TFLite operator."""
    return _form(base, DType.INT32, read)


def int64_form(
    base: OpSpec, read: Callable[[TfliteNode], Attributes] = lambda node: Attributes()
) -> OpSpec:
    """The same for int64."""
    return _form(base, DType.INT64, read)


def _form(base: OpSpec, dtype: DType, read: Callable[[TfliteNode], Attributes]) -> OpSpec:
    assert base.tflite is not None
    binding = base.tflite

    quotient = base.kind in _DIVISIONS

    def read_plain(node: TfliteNode) -> ReadOp:
        for index, tensor in enumerate(node.inputs):
            if tensor is not None and tensor.dtype is not dtype:
                raise node.unsupported(
                    f"input {index} ({tensor.name!r}) is {tensor.dtype.value} beside {dtype.value}"
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
        sample=_sample(base, dtype),
        tflite=TfliteBinding(binding.builtins, read_plain, write),
        onnx=None,
        dtypes=frozenset({dtype}),
        quantised=STORED,
        limits=f"{dtype.value} without scales, any broadcast{activation}{divisor}",
    )
