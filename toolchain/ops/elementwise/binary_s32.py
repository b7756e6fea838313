"""int32 and int64 functions of two tensors that broadcast, with a fused activation where TFLite has
one.

They compute with plain integers: no scale is used. Sums and products wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.elementwise.common import expression_of
from toolchain.ops.elementwise.kernels import broadcast_kernel, expressed

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


def _powers(a: Int64, b: Int64, too_large: Callable[[int], int]) -> Int64:
    """`too_large`: what becomes of a power that int32 does not hold."""
    least, most = -(2**31), 2**31 - 1
    pairs = zip(*(values.ravel() for values in np.broadcast_arrays(a, b)), strict=True)
    powers = [int(base) ** int(exponent) for base, exponent in pairs]
    held = [value if least <= value <= most else too_large(value) for value in powers]
    return np.array(held, np.int64).reshape(np.broadcast_shapes(a.shape, b.shape))


def _power(a: Int64, b: Int64) -> Int64:
    """What int32 does not hold is its least number, as a double is converted."""
    return _powers(a, b, lambda value: -(2**31))


def _power_multiplied(a: Int64, b: Int64) -> Int64:
    """Products that wrap."""
    return _powers(a, b, lambda value: (value + 2**31) % 2**32 - 2**31)


_DIVISIONS = frozenset({"div", "floor_div", "floor_mod"})
FUNCTIONS: Mapping[str, Callable[[Int64, Int64], Int64]] = MappingProxyType(
    {
        "add": lambda a, b: a + b,
        "bitwise_xor": np.bitwise_xor,
        "div": _quotient,
        "floor_div": lambda a, b: a // b,
        "floor_mod": lambda a, b: a % b,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "mul": lambda a, b: a * b,
        "pow": _power,
        "pow_multiplied": _power_multiplied,
        "right_shift": lambda a, b: a >> np.clip(b, 0, 31),
        "squared_difference": _squared_difference,
        "sub": lambda a, b: a - b,
    }
)
"""By the kind that they are the int32 or int64 form of (`expression_of`)."""


_CALLED = MappingProxyType({"pow": "thimble_pow_s32", "pow_multiplied": "thimble_pow_wrapped_s32"})
"""The C function in an expression, where there is one."""


def _range(op: kit.AnyOperator) -> tuple[int, int] | None:
    """What the activation holds results in; None for all that the type has."""
    low, high = _RANGES[getattr(op.attributes, "activation", Activation.NONE)]
    info = np.iinfo(op.y.dtype.value)
    return None if low is None else (low, int(info.max) if high is None else high)


@dataclass(frozen=True)
class _Limited:
    """What the second operand, a constant, must be: elsewhere TFLite stops."""

    holds: Callable[[kit.Array], bool]
    wrong: str
    named: str


_DIVISOR = _Limited(
    lambda data: bool(data.all()), "it divides by 0, at which TFLite stops", "divisor"
)
_EXPONENT = _Limited(
    lambda data: bool((data.astype(np.int64) >= 0).all()),
    "it has a negative exponent, at which TFLite stops",
    "exponent",
)


def _limited(kind: str) -> _Limited | None:
    return _DIVISOR if kind in _DIVISIONS else _EXPONENT if kind == "pow" else None


def _second(op: kit.AnyOperator) -> kit.Array | None:
    return op.input(1).constant


def _infer_limited(
    base: kit.Form[Any], limited: _Limited
) -> Callable[[kit.Operator[Any]], tuple[kit.TensorType, ...]]:
    """As `base`'s, but that the second operand must be a constant within its limits."""

    def infer(op: kit.AnyOperator) -> tuple[kit.TensorType, ...]:
        data = _second(op)
        if data is None or not limited.holds(data):
            raise ValueError(
                f"the {limited.named} {op.op.inputs[1]!r} is no constant that it may be"
            )
        return base.infer(op)

    return infer


def _reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    y = op.y
    a, b = (values.astype(np.int64) for values in inputs)
    with np.errstate(over="ignore"):
        values = FUNCTIONS[expression_of(op)](a, b).astype(y.dtype.numpy)
    limits = _range(op)
    if limits is not None:
        values = np.clip(values, *limits).astype(y.dtype.numpy)
    return (values.reshape(y.shape),)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    ends = _RANGES[getattr(op.attributes, "activation", Activation.NONE)]
    limits = {n: v for n, v in zip(("low", "high"), ends, strict=True) if v is not None}
    template = f"binary_s{8 * op.y.dtype.size_bytes}"
    expression = expression_of(op)
    loops = broadcast_kernel(op, core, "")
    return expressed(loops, template, expression, _CALLED.get(expression, ""), limits)


def _sample(base: kit.Form[Any], dtype: kit.DType) -> Callable[[np.random.Generator], kit.Graph]:
    """The samples of the int8 kind with plain integers."""

    def sample(rng: np.random.Generator) -> kit.Graph:
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
                    if op.kind == "pow":
                        data = np.abs(data) % 8
                tensors.append(replace(tensor, dtype=dtype, quantisation=None, constant=data))
            made = kit.Graph.build(graph.name, tensors, graph.ops, graph.inputs, graph.outputs)
            if _limited(op.kind) is None or _second(kit.operator_of(op, made)) is not None:
                return made

    return sample


def int32_form(
    base: kit.Form[Any],
    read: Callable[[kit.TfliteNode], kit.Attributes] = lambda node: kit.Attributes(),
) -> kit.Form[Any]:
    """The int32 form of an int8 kind `base`. `read` makes the attributes of a TFLite operator."""
    return _form(base, kit.DType.INT32, read)


def int64_form(
    base: kit.Form[Any],
    read: Callable[[kit.TfliteNode], kit.Attributes] = lambda node: kit.Attributes(),
) -> kit.Form[Any]:
    """The same for int64."""
    return _form(base, kit.DType.INT64, read)


def _form(
    base: kit.Form[Any], dtype: kit.DType, read: Callable[[kit.TfliteNode], kit.Attributes]
) -> kit.Form[Any]:
    assert base.tflite is not None
    binding = base.tflite

    limited = _limited(base.kind)

    def read_plain(node: kit.TfliteNode) -> kit.ReadOp:
        for index, tensor in enumerate(node.inputs):
            if tensor is not None and tensor.dtype is not dtype:
                raise node.unsupported(
                    f"input {index} ({tensor.name!r}) is {tensor.dtype.value} beside {dtype.value}"
                )
        if limited is not None and not limited.holds(node.constant(1)):
            raise node.unsupported(limited.wrong)
        return kit.ReadOp(read(node), (0, 1))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        return replace(binding.write(op), version=1)

    activation = ", fused activation" if hasattr(base.attributes(), "activation") else ""
    constant = "" if limited is None else f", constant {limited.named}"
    return replace(
        base,
        infer=base.infer if limited is None else _infer_limited(base, limited),
        reference=_reference,
        select=_select,
        sample=_sample(base, dtype),
        tflite=kit.TfliteBinding(binding.builtins, read_plain, write),
        onnx=None,
        dtype=dtype,
        quantised=kit.STORED,
        limits=f"{dtype.value} without scales, any broadcast{activation}{constant}",
    )
