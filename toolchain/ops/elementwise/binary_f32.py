"""A function of two float32 tensors, broadcasting, with a fused activation where TFLite has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops import extents
from toolchain.ops.arithmetic.activation import Activation, read_activation
from toolchain.ops.arithmetic.float_math import Float32
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    broadcast,
    infer_broadcast,
    overlaps_same_shape,
    sample_broadcast_shapes,
)
from toolchain.ops.readers.floats import (
    FLOAT,
    HEADER,
    bounds,
    check_float_node,
    clamped,
    larger,
    smaller,
)
from toolchain.ops.spec import (
    Array,
    Lowering,
    OpSpec,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)


@dataclass(frozen=True)
class Binary(Attributes):
    """`function` names an entry of `FUNCTIONS`."""

    function: str
    activation: Activation = Activation.NONE


@dataclass(frozen=True)
class _Function:
    builtin: str
    apply: Callable[[Float32, Float32], Float32]
    options: str


FUNCTIONS: Mapping[str, _Function] = MappingProxyType(
    {
        "add": _Function("ADD", lambda a, b: a + b, "AddOptions"),
        "div": _Function("DIV", lambda a, b: a / b, "DivOptions"),
        "maximum": _Function("MAXIMUM", larger, "MaximumMinimumOptions"),
        "minimum": _Function("MINIMUM", smaller, "MaximumMinimumOptions"),
        "mul": _Function("MUL", lambda a, b: a * b, "MulOptions"),
        "prelu": _Function("PRELU", lambda a, b: np.where(a >= 0, a, a * b), ""),
        "squared_difference": _Function(
            "SQUARED_DIFFERENCE", lambda a, b: (a - b) * (a - b), "SquaredDifferenceOptions"
        ),
        "sub": _Function("SUB", lambda a, b: a - b, "SubOptions"),
    }
)
_WITH_ACTIVATION = frozenset({"add", "sub", "mul", "div"})


def _attributes(op: Op) -> Binary:
    assert isinstance(op.attributes, Binary)
    return op.attributes


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    a, b = (values.astype(np.float32) for values in inputs)
    with np.errstate(all="ignore"):
        values = FUNCTIONS[_attributes(op).function].apply(a, b)
    if _attributes(op).activation is not Activation.NONE:
        values = clamped(values, _attributes(op).activation)
    return (values.astype(np.float32).reshape(graph.output(op).shape),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    attributes = _attributes(op)
    return Lowering(
        functions=(HEADER,),
        fields={
            "function": attributes.function,
            "clamps": attributes.activation is not Activation.NONE,
            "shape": broadcast(graph.input(op, 0).shape, graph.input(op, 1).shape),
            **bounds(attributes.activation),
        },
    )


def _read(node: TfliteNode) -> ReadOp:
    check_float_node(node)
    name = node.builtin.lower()
    activation = read_activation(node) if name in _WITH_ACTIVATION else Activation.NONE
    return ReadOp(Binary(name, activation), (0, 1))


def _write(op: Op, graph: Graph) -> WrittenOp:
    attributes = _attributes(op)
    function = FUNCTIONS[attributes.function]
    fields = {"fusedActivationFunction": attributes.activation}
    options = fields if attributes.function in _WITH_ACTIVATION else {}
    return WrittenOp(function.builtin, function.options, options)


def _sample(rng: np.random.Generator) -> Graph:
    function = str(rng.choice(sorted(FUNCTIONS)))
    shapes = sample_broadcast_shapes(rng, 4)
    shape = tuple(int(d) for d in np.broadcast_shapes(*shapes))
    if function == "prelu":
        shapes = (shape, shapes[1] if len(shapes[1]) <= len(shape) else shape)
    activation = Activation.NONE
    if function in _WITH_ACTIVATION:
        activation = rng.choice(np.array(list(Activation), dtype=object))
    constant = int(rng.integers(4))
    operands = [
        Tensor(
            name,
            own,
            DType.FLOAT32,
            None,
            rng.normal(0, 2, own).astype(np.float32) if index == constant else None,
        )
        for index, (name, own) in enumerate(zip("ab", shapes, strict=True))
    ]
    op = Op("binary_f32", "binary", ("a", "b"), ("y",), Binary(function, activation))
    inputs = [tensor.name for tensor in operands if not tensor.is_constant]
    return Graph.build("sample", [*operands, Tensor("y", shape, DType.FLOAT32)], [op], inputs, "y")


SPEC = OpSpec(
    kind="binary_f32",
    attributes=Binary,
    infer=infer_broadcast,
    reference=_reference,
    lower=_lower,
    extents=extents.binary_f32,
    sample=_sample,
    overlaps=overlaps_same_shape,
    axes=elementwise_axes,
    tflite=TfliteBinding(tuple(function.builtin for function in FUNCTIONS.values()), _read, _write),
    dtypes=FLOAT,
    limits="float32, any broadcast, fused activation",
)
