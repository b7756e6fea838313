"""The parts of an operator kind: the `Form`s of an `OpSpec`.

Every `toolchain/ops/<family>/<kind>.py` holds one `SPEC`: a `Form`, or an `OpSpec` where there are
several. The file's presence registers the kind. A module that makes several kinds of a table holds
`SPECS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op
from toolchain.ops.kernel import Kernel
from toolchain.ops.operator import Operator, operator_of
from toolchain.ops.spec import (
    SCALED,
    Alias,
    Array,
    Axis,
    OnnxBinding,
    Quantised,
    Reduction,
    StridedView,
    TensorType,
    TfliteBinding,
)

A = TypeVar("A", bound=Attributes)


def _no_axes(op: Operator[Attributes]) -> tuple[Axis, ...]:
    return ()


def no_reductions(op: Operator[Attributes]) -> tuple[Reduction, ...]:
    return ()


def kept(*states: tuple[int, int]) -> Callable[[Operator[Attributes]], tuple[Alias, ...]]:
    """The aliases of states that are updated in place: the output and the input of each."""
    return lambda op: tuple(Alias(op.output(y).name, op.input(x).name) for y, x in states)


def _no_macs(op: Operator[Attributes]) -> int:
    return 0


def _no_aliases(op: Operator[Attributes]) -> tuple[Alias, ...]:
    return ()


def _no_strided_views(op: Operator[Attributes]) -> tuple[StridedView, ...]:
    return ()


def _all_bytes(op: Operator[Attributes]) -> tuple[tuple[int, int], ...]:
    return tuple((0, 0 if x is None else x.size_bytes) for x in op.inputs)


Select: TypeAlias = Callable[[Operator[Any], Core], Kernel]


@dataclass(frozen=True)
class Choice:
    """A `select` of a kind for which CMSIS-NN has a function: whose kernel an operator gets.

    `--kernels` decides, before anything is planned; a kernel's own forms (`Kernel.forms`) are taken
    later, by the memory that is free.

    quicker   the kernel that takes the least time, CMSIS-NN's or Thimble's. Calling the choice is
              calling this.
    cmsis_nn  CMSIS-NN's. Raises NoKernelError, with the reason, where none of its functions takes
              this operator.
    own       Thimble's, where `quicker` may be CMSIS-NN's although there is one.
    """

    quicker: Select
    cmsis_nn: Select
    own: Select | None = None

    def __call__(self, op: Operator[Any], core: Core) -> Kernel:
        return self.quicker(op, core)


@dataclass(frozen=True)
class Form(Generic[A]):
    """An operator kind, or how it is computed for one element type.

    attributes  the class of its operators' attributes. The fields below take an `Operator` of it.
    infer       types of the outputs, from the inputs and attributes. The verifier calls it. Raises
                ValueError with the reason where inputs and attributes contradict each other.
    reference   exact NumPy semantics: integers in and out, one array per output. Written from the
                arithmetic of TFLite's reference kernels, independently of the C.
    select      the kernel for one core, chosen once; a `Choice` where there are CMSIS-NN's and
                ours. Raises UnsupportedError where this operator exceeds a limit of the kernels.
    sample      a random single-operator Graph for differential tests, including odd shapes,
                strides, zero points and scales.
    macs        multiply-accumulates.
    aliases     tensors that are views of one another through this operator. If all its outputs are
                whole views, no C is emitted.
    strided_views  images that are strided views of one another through this operator: all of them,
                or none (then it copies).
    reads       the bytes [begin, end) of each input that the kernel reads.
    axes        the axes along which the operator can be split into blocks (MOTES's axis map).
    reductions  the axes that it sums over, in blocks that share int32 sums (MOTES's reduced axes).
    dtype       the element type of input `operand` that the form is for; None takes any.
    operand     the input whose type tells the forms apart: the first one, or the state of some.
    weights     the element type of input 1 that the form is for, where one of any does not do.
    name        what tells it from a form of the same `dtype`.
    types       element types that its activations may have, if others than `dtype` (or int8).
    quantised   how its tensors must be quantised.
    limits      one line for `thimble ops`: what is supported.
    onnx        how ONNX files are read. A kind has only that of its first form.
    made_by_passes  True where only rewrites make the kind and no front end reads it.
    """

    kind: str
    attributes: type[A]
    infer: Callable[[Operator[A]], tuple[TensorType, ...]]
    reference: Callable[[Operator[A], Sequence[Array]], tuple[Array, ...]]
    select: Callable[[Operator[A], Core], Kernel]
    sample: Callable[[np.random.Generator], Graph]
    tflite: TfliteBinding | None = None
    onnx: OnnxBinding | None = None
    macs: Callable[[Operator[A]], int] = _no_macs
    aliases: Callable[[Operator[A]], tuple[Alias, ...]] = _no_aliases
    strided_views: Callable[[Operator[A]], tuple[StridedView, ...]] = _no_strided_views
    reads: Callable[[Operator[A]], tuple[tuple[int, int], ...]] = _all_bytes
    axes: Callable[[Operator[A]], tuple[Axis, ...]] = _no_axes
    reductions: Callable[[Operator[A]], tuple[Reduction, ...]] = no_reductions
    dtype: DType | None = None
    operand: int = 0
    weights: DType | None = None
    name: str = ""
    types: frozenset[DType] = frozenset()
    quantised: Quantised = SCALED
    limits: str = ""
    made_by_passes: bool = False

    @property
    def dtypes(self) -> frozenset[DType]:
        """Element types that its activations may have; the front ends refuse others."""
        return self.types or frozenset({self.dtype or DType.INT8})

    def takes(self, types: Sequence[DType | None]) -> bool:
        """Whether it is for inputs of these element types; None for one that is absent."""
        taken = self.dtype is None or types[self.operand] is self.dtype
        return taken and (self.weights is None or self.takes_weights(types))

    def takes_weights(self, types: Sequence[DType | None]) -> bool:
        """Whether it is for the weights among inputs of these types, and not for any."""
        return self.weights is not None and self.weights in types[1:2]


@dataclass(frozen=True)
class OpSpec:
    """All that the toolchain knows about an operator kind: its forms, of which one answers for an
    operator.

    The methods that take an operator and its graph ask that form, and raise ValueError where there
    is none.
    """

    forms: tuple[Form[Any], ...]

    @property
    def kind(self) -> str:
        return self.forms[0].kind

    @property
    def onnx(self) -> OnnxBinding | None:
        return self.forms[0].onnx

    @property
    def made_by_passes(self) -> bool:
        return self.forms[0].made_by_passes

    @property
    def dtypes(self) -> frozenset[DType]:
        """Element types that activations of any form may have."""
        return frozenset().union(*(form.dtypes for form in self.forms))

    @cached_property
    def rearranges(self) -> bool:
        """Whether a form has aliases or strided views, for some operator."""
        return any(
            form.aliases is not _no_aliases or form.strided_views is not _no_strided_views
            for form in self.forms
        )

    @property
    def limits(self) -> str:
        """The supported types and attributes of all forms, in a line."""
        return "; ".join(dict.fromkeys(form.limits for form in self.forms))

    @property
    def attribute_classes(self) -> tuple[type[Attributes], ...]:
        """The classes of its operators' attributes."""
        return tuple(dict.fromkeys(form.attributes for form in self.forms))

    def plain_attributes(self) -> Attributes:
        """The attributes of the first form, with default values."""
        made: Callable[[], Attributes] = self.forms[0].attributes
        return made()

    def form(self, op: Op, graph: Graph) -> Form[Any]:
        """The form for the element types of the operator's inputs; one for its weights' type comes
        before one for any.

        Raises ValueError where the kind has none for it.
        """
        types = tuple(None if x is None else x.dtype for x in graph.input_tensors(op))
        taking = [form for form in self.forms if form.takes(types)]
        if not taking:
            dtype = graph.input(op, self.forms[0].operand).dtype
            known = dict.fromkeys(form.dtype.value for form in self.forms if form.dtype)
            raise ValueError(
                f"{self.kind} of {dtype.value} is not supported, only of {', '.join(known)}"
            )
        return next((form for form in taking if form.weights is not None), taking[0])

    def infer(self, op: Op, graph: Graph) -> tuple[TensorType, ...]:
        return self.form(op, graph).infer(operator_of(op, graph))

    def reference(self, op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.form(op, graph).reference(operator_of(op, graph), inputs)

    def macs(self, op: Op, graph: Graph) -> int:
        return self.form(op, graph).macs(operator_of(op, graph))

    def aliases(self, op: Op, graph: Graph) -> tuple[Alias, ...]:
        found: tuple[Alias, ...] = _once("aliases", op, graph, self._aliases)
        return found

    def _aliases(self, op: Op, graph: Graph) -> tuple[Alias, ...]:
        return self.form(op, graph).aliases(operator_of(op, graph))

    def strided_views(self, op: Op, graph: Graph) -> tuple[StridedView, ...]:
        found: tuple[StridedView, ...] = _once("strided", op, graph, self._strided_views)
        return found

    def _strided_views(self, op: Op, graph: Graph) -> tuple[StridedView, ...]:
        return self.form(op, graph).strided_views(operator_of(op, graph))

    def reads(self, op: Op, graph: Graph) -> tuple[tuple[int, int], ...]:
        return self.form(op, graph).reads(operator_of(op, graph))

    def axes(self, op: Op, graph: Graph) -> tuple[Axis, ...]:
        return self.form(op, graph).axes(operator_of(op, graph))

    def reductions(self, op: Op, graph: Graph) -> tuple[Reduction, ...]:
        return self.form(op, graph).reductions(operator_of(op, graph))


def _once(what: str, op: Op, graph: Graph, find: Callable[[Op, Graph], Any]) -> Any:
    """The result for an operator of a graph, computed when it is first asked for."""
    key = what, op.name
    known = graph.results.get(key)
    if known is None or known[0] is not op:
        known = graph.results[key] = op, find(op, graph)
    return known[1]
