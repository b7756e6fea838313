"""Kinds of functions of two int8 or int16 operands that broadcast.

A module gives the arithmetic of its function, once for both types (`Arithmetic`), and says in a
`Quantised` what else is its own. Shape rule, reference, choice of a kernel, axes, TFLite's reader
and writer and samples are made here; float32 and integers without scales in `kinds`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import (
    Int64,
    Line,
    check_node,
    infer_broadcast,
    require_types,
    sample_binary,
)
from toolchain.ops.elementwise.functions import BINARY
from toolchain.ops.elementwise.kernels import constant_kernel
from toolchain.ops.elementwise.kinds import attributes_reader, binding, plain_forms
from toolchain.ops.elementwise.rows import Fused
from toolchain.ops.readers.int16 import as_int16

Infer = Callable[[kit.Operator[Any]], tuple[kit.TensorType, ...]]
Reader = Callable[[kit.OnnxNode], None]
BROADCAST = "any broadcast"
FUSED = f"{BROADCAST}, fused activation"
_TYPES = (kit.DType.INT8, kit.DType.INT16)


class Arithmetic(ABC):
    """All that the results of one operator depend on besides its operands."""

    @abstractmethod
    def apply(self, a: Int64, b: Int64) -> Int64:
        """Stored results of stored operands that broadcast."""

    @abstractmethod
    def kernel(self, op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        """The kernel of the operator, whose tensors have been checked."""

    def line(self, operand: int, other: int) -> Line | None:
        """The straight line that an int8 function of one operand may equal, the other being one
        number.
        """
        return None


def _sample_scale(rng: np.random.Generator) -> float:
    return 1.0


def _any(graph: kit.Graph) -> bool:
    return True


def _wide(rng: np.random.Generator, graph: kit.Graph) -> kit.Graph:
    return as_int16(graph)


@dataclass(frozen=True)
class Quantised:
    """The declaration of a kind: the parts that are its function's own.

    kind        the row's name.
    arithmetic  from an operator of int8 or int16.
    versions    of int8 and int16 operators in files that tests write.
    attributes  with a fused activation if they are `Fused`.
    cmsis_nn    CMSIS-NN's kernel of an operator with its arithmetic, if it has one.
    onnx        the readers of an `OnnxBinding`; () for none.
    infer       the shape rules of int8 and int16.
    beside      types that operands of int16 operators have besides.
    quantised   how tensors must be quantised.
    limits      of int8 and int16, after the type.
    scale       draws the scale of a sample's results over the larger operand's.
    taken       whether an int8 sample is one.
    sample      int8 samples, where `scale` and `taken` do not make them.
    wide        makes an int8 sample int16.
    """

    kind: str
    arithmetic: Callable[[kit.Operator[Any]], Arithmetic]
    versions: tuple[int, int] = (2, 2)
    attributes: type[kit.Attributes] = kit.Attributes
    cmsis_nn: Callable[[kit.Operator[Any], kit.Core, Any], kit.Kernel] | None = None
    onnx: Sequence[Reader] = ()
    infer: tuple[Infer, Infer] = (infer_broadcast, infer_broadcast)
    beside: tuple[kit.DType, ...] = ()
    quantised: kit.Quantised = kit.SCALED
    limits: tuple[str, str] = (BROADCAST, BROADCAST)
    scale: Callable[[np.random.Generator], float] = _sample_scale
    taken: Callable[[kit.Graph], bool] = _any
    sample: Callable[[np.random.Generator], kit.Graph] | None = None
    wide: Callable[[np.random.Generator, kit.Graph], kit.Graph] = _wide


def forms_of(rule: Quantised) -> tuple[kit.Form[Any], ...]:
    """The forms for int8, int16, float32 and integers without scales."""
    int8, int16 = (_form(rule, dtype) for dtype in _TYPES)
    return int8, int16, *plain_forms(int8, attributes_reader(rule.attributes))


def _form(rule: Quantised, dtype: kit.DType) -> kit.Form[Any]:
    wide = dtype is kit.DType.INT16
    types = (dtype, *rule.beside) if wide else (dtype,)

    def reference(op: kit.Operator[Any], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        a, b = (values.astype(np.int64) for values in inputs)
        return (rule.arithmetic(op).apply(a, b).astype(op.y.dtype.numpy),)

    def select(op: kit.Operator[Any], core: kit.Core) -> kit.Kernel:
        require_types(op, *types)
        arithmetic = rule.arithmetic(op)
        of_one = None if wide else constant_kernel(op, arithmetic.apply, arithmetic.line)
        return arithmetic.kernel(op, core) if of_one is None else of_one

    def cmsis_nn(op: kit.Operator[Any], core: kit.Core) -> kit.Kernel:
        require_types(op, *types)
        assert rule.cmsis_nn is not None
        return rule.cmsis_nn(op, core, rule.arithmetic(op))

    def sample(rng: np.random.Generator) -> kit.Graph:
        graph = (rule.sample or narrow)(rng)
        return rule.wide(rng, graph) if wide else graph

    def narrow(rng: np.random.Generator) -> kit.Graph:
        made: Callable[..., kit.Attributes] = rule.attributes
        fused = issubclass(rule.attributes, Fused)
        attributes = made(sample_activation(rng)) if fused else made()
        while True:
            graph = sample_binary(rng, rule.kind, attributes, rule.scale(rng))
            if rule.taken(graph):
                return graph

    row, read = BINARY[rule.kind], attributes_reader(rule.attributes)
    return kit.Form(
        kind=rule.kind,
        attributes=rule.attributes,
        infer=rule.infer[wide],
        reference=reference,
        select=select if rule.cmsis_nn is None else kit.Choice(select, cmsis_nn),
        sample=sample,
        axes=kit.elementwise_axes,
        tflite=binding(rule.kind, rule.versions[wide], read, lambda node: check_node(node, *types)),
        onnx=kit.OnnxBinding((row.onnx,), *rule.onnx) if rule.onnx and not wide else None,
        dtype=dtype,
        types=frozenset(types) if rule.beside and wide else frozenset(),
        quantised=rule.quantised,
        limits=f"{dtype.value}, {rule.limits[wide]}",
    )


def sample_activation(rng: np.random.Generator) -> kit.Activation:
    """Any fused activation."""
    activation: kit.Activation = rng.choice(np.array(list(kit.Activation), dtype=object))
    return activation


def with_output_scale(graph: kit.Graph, scale: float) -> kit.Graph:
    """An int16 sample whose results have another scale."""
    q = kit.Quantisation((float(np.float32(scale)),), (0,))
    y = replace(graph.tensors["y"], quantisation=q)
    return replace(graph, tensors={**graph.tensors, "y": y})


def zero_points_of(op: kit.AnyOperator) -> tuple[int, int, int]:
    """Zero points of both operands and of the result."""
    return op.x.q.zero_point, op.input(1).q.zero_point, op.y.q.zero_point


def scales_of(op: kit.AnyOperator) -> tuple[float, float, float]:
    """Scales of both operands and of the result."""
    return op.x.q.scale, op.input(1).q.scale, op.y.q.scale


def scaled_operands(
    scalings: Sequence[tuple[int, int]], zero_points: Sequence[int] = ()
) -> Mapping[str, int]:
    """The parameters of a kernel that scales each operand: `offset_1` where there are zero points,
    `multiplier_1`, `shift_1`, `offset_2` and so on.
    """
    params: dict[str, int] = {}
    for number, (multiplier, shift) in enumerate(scalings[:2], start=1):
        if zero_points:
            params[f"offset_{number}"] = -zero_points[number - 1]
        params |= {f"multiplier_{number}": multiplier, f"shift_{number}": shift}
    return params
