"""The one place that says what an operator kind is: `OpSpec`, and the values it trades in.

Every `toolchain/ops/<kind>.py` holds one `SPEC`. Its presence registers it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.kernel import Kernel

Array = NDArray[np.generic]
Index = TypeVar("Index", int, NDArray[np.int64])


@dataclass(frozen=True)
class TensorType:
    """A shape and an element type: what the shape rule derives for each output."""

    shape: tuple[int, ...]
    dtype: DType


class TfliteNode(Protocol):
    """What the TFLite front end shows a reader of one operator in the file."""

    @property
    def options(self) -> Any:
        """The operator's builtin options in the flatbuffer object API, enums by their names.

        Raises InputError where the file has none."""

    @property
    def has_options(self) -> bool: ...

    @property
    def builtin(self) -> str:
        """The operator's name in the schema's BuiltinOperator enum."""

    @property
    def version(self) -> int: ...

    @property
    def legacy(self) -> bool:
        """Whether the file's tensors were uint8 and have been lowered to int8."""

    @property
    def inputs(self) -> tuple[Tensor | None, ...]: ...

    @property
    def outputs(self) -> tuple[Tensor, ...]: ...

    @property
    def intermediates(self) -> tuple[Tensor | None, ...]:
        """Tensors that only tell the scale of what a recurrent kernel computes inside."""

    def constant(self, index: int) -> Array:
        """The data of input `index`. Raises UnsupportedError where it is not constant."""

    def unsupported(self, why: str, remedy: str = "") -> Exception:
        """The error to raise for a form of the operator that has no kernel."""


@dataclass(frozen=True)
class ReadOp:
    """A reader's answer: attributes, and which of the file's inputs stay inputs, by index.

    Inputs that became attributes (a reshape's shape, a pad's paddings) are left out.
    `states`: the file's inputs, by index, that are variables which the operator updates; each gives
    it one more output, the next value, after the file's own.
    """

    attributes: Attributes
    inputs: tuple[int, ...]
    states: tuple[int, ...] = ()


@dataclass(frozen=True)
class WrittenOp:
    """The inverse, for tests that hand single operators to LiteRT.

    `options_type` names the member of the schema's BuiltinOptions union ('' for none), `options`
    are the fields to set; `extra_inputs` are constants to append after the operator's own inputs.
    `order` is the file's order of inputs, as indices into the own inputs followed by the extra
    ones, -1 for an absent one; () keeps that order. `intermediates` as in `TfliteNode`.
    """

    builtin: str
    options_type: str = ""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    extra_inputs: tuple[Tensor, ...] = ()
    version: int = 1
    order: tuple[int, ...] = ()
    intermediates: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class TfliteBinding:
    """`builtins`: names in the schema's BuiltinOperator enum that this kind reads."""

    builtins: tuple[str, ...]
    read: Callable[[TfliteNode], ReadOp]
    write: Callable[[Op, Graph], WrittenOp]


@dataclass(frozen=True)
class OnnxData:
    """A constant input of an ONNX operator.

    real = scale * (data - zero_point) where `quantisation` is set, else `data` itself.
    """

    data: Array
    quantisation: Quantisation | None = None

    @property
    def real(self) -> NDArray[np.float64]:
        values = self.data.astype(np.float64)
        if self.quantisation is None:
            return values
        shape = [1] * values.ndim
        if self.quantisation.axis is not None:
            shape[self.quantisation.axis] = -1
        scales = np.array(self.quantisation.scales).reshape(shape)
        zeros = np.array(self.quantisation.zero_points).reshape(shape)
        real: NDArray[np.float64] = (values - zeros) * scales
        return real


class OnnxNode(Protocol):
    """What the ONNX front end shows a reader of one operator, and how the reader answers.

    The front end has already removed QuantizeLinear, DequantizeLinear and the QLinear forms: every
    activation is a real-valued tensor with a known int8 quantisation. `shape`s are ONNX's. How a
    tensor lies in memory is the front end's business: `axes[i]` says which ONNX dimension is the
    i-th of the tensor in the graph (a picture NCHW that lies as NHWC has axes 0, 2, 3, 1), and
    `operand` gives the tensor in the order of axes that the reader's kernel needs.
    """

    @property
    def operator(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def opset(self) -> int: ...

    @property
    def inputs(self) -> int:
        """How many inputs the operator has, absent ones at the end left out."""

    @property
    def outputs(self) -> int: ...

    @property
    def in_float(self) -> bool:
        """Whether the model computes in float32: quantisations only seem to be, with scale 1."""

    @property
    def holds_integers(self) -> bool:
        """Whether the file applies it to stored integers: a constant operand is stored, too."""

    def attribute(self, name: str, default: Any = None) -> Any: ...

    def has(self, index: int) -> bool:
        """Whether input `index` is present."""

    def is_constant(self, index: int) -> bool: ...

    def constant(self, index: int) -> OnnxData:
        """Input `index` as data. Raises UnsupportedError where it is not constant."""

    def integers(self, index: int) -> tuple[int, ...]:
        """The constant integers of input `index`."""

    def shape(self, index: int) -> tuple[int, ...]: ...

    def output_shape(self, index: int = 0) -> tuple[int, ...]: ...

    def quantisation(self, index: int) -> Quantisation: ...

    def output_quantisation(self, default: Quantisation | None = None) -> Quantisation:
        """What the following QuantizeLinear says; `default` where there is none.

        Raises UnsupportedError where there is neither.
        """

    def axes(self, *indices: int) -> tuple[int, ...]:
        """The order in which the largest of the inputs lies: the one to ask of the others."""

    def operand(
        self,
        index: int,
        axes: tuple[int, ...],
        shape: tuple[int, ...] | None = None,
        quantisation: Quantisation | None = None,
    ) -> str:
        """Name of the tensor that holds input `index` with its dimensions in the order `axes`.

        `shape`: the tensor's own shape where it differs from the ONNX shape in that order.
        `quantisation`: requantise to this. Dimensions that the input lacks come first, as 1.
        """

    def row_operand(self, index: int) -> tuple[str, NDArray[np.intp]]:
        """Input `index` as a matrix: its last dimension is a row, in whatever order it lies.

        Returns the tensor and, for each place in the row, the ONNX index that lies there.
        """

    def add_constant(self, stem: str, data: Array, quantisation: Quantisation | None) -> str: ...

    def following_bias(self, axis: int) -> NDArray[np.float64] | None:
        """The constant that the model adds right after this operator along output dimension
        `axis`, one value per index; takes that Add. None where there is none."""

    def fused_activation(self) -> str:
        """Name in `Activation` of the Relu or Clip that follows; takes it if it has such a name.

        One that the output's quantisation makes idle is taken as NONE.
        """

    def intermediate(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[str],
        shape: tuple[int, ...],
        quantisation: Quantisation,
    ) -> str:
        """Add an operator before the one that answers; returns its output."""

    def emit(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[str],
        quantisation: Quantisation | None,
        axes: tuple[int, ...],
        shape: tuple[int, ...] | None = None,
        dtype: DType = DType.INT8,
    ) -> None:
        """Add the operator that gives all outputs of the node. `shape` as in `operand`."""

    def emit_like(
        self, index: int, kind: str, attributes: Attributes, quantisation: Quantisation
    ) -> None:
        """Add a one-input elementwise operator whose output lies as input `index` does."""

    def unsupported(self, why: str, remedy: str = "") -> Exception:
        """The error to raise for a form of the operator that has no kernel."""


@dataclass(frozen=True)
class OnnxBinding:
    """`operators`: names of the standard ONNX operators that this kind reads."""

    operators: tuple[str, ...]
    read: Callable[[OnnxNode], None]


@dataclass(frozen=True)
class Alias:
    """Tensor `view` is bytes [offset, offset + size) of tensor `base`: it owns none of its own."""

    view: str
    base: str
    offset_bytes: int = 0


@dataclass(frozen=True)
class StridedView:
    """Image `view` may lie in the wider image `base`, with gaps between its lines.

    Its first line is at `offset_bytes`, the next ones `pitch_bytes` apart. All else is as for an
    `Alias`, but that every kernel which touches the image must be able to step over the gaps.
    """

    view: str
    base: str
    offset_bytes: int
    pitch_bytes: int


@dataclass(frozen=True)
class Part:
    """A block of an operator: `length` indices of its output from `begin` on.

    What it reaches for begins `before` parts of an index (`Reach.divisor` are one) ahead of what it
    is given of its first operand, and ends `after` indices behind that.
    """

    length: int
    before: int = 0
    after: int = 0
    begin: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Reach:
    """What an operand contributes to a run of output indices, along one axis of each.

    Output indices [begin, end) read input indices [(begin * stride - before) // divisor,
    ((end - 1) * stride - before + extent) // divisor) of the operand's axis `axis`, as far as there
    are any. A divisor above 1 is for operators that enlarge. `whole`: such an operator makes
    `divisor` outputs at once, so that runs begin and end at multiples of it.
    """

    axis: int
    stride: int = 1
    extent: int = 1
    before: int = 0
    divisor: int = 1
    whole: bool = False

    def first(self, begin: Index) -> Index:
        """The first input index of a run; below 0 for one that reaches for padding."""
        return (begin * self.stride - self.before) // self.divisor

    def last(self, end: Index) -> Index:
        """One past the last input index of a run; above the operand's size for padding."""
        return ((end - 1) * self.stride - self.before + self.extent) // self.divisor

    def possible(self, there: Index) -> Index:
        """How many output indices read nothing from input index `there` on; may be below 0."""
        return ((there + 1) * self.divisor - 1 + self.before - self.extent) // self.stride + 1

    def needs(self, begin: int, end: int, size: int) -> tuple[int, int]:
        """The input indices [first, last) that exist, of `size`; empty where none does."""
        return max(self.first(begin), 0), min(self.last(end), size)

    def part(self, begin: int, end: int, size: int) -> Part:
        """Where the run lies to the input indices, of `size`, that it reads."""
        first = max(self.first(begin), 0)
        before = first * self.divisor - (begin * self.stride - self.before)
        return Part(end - begin, before, max(self.last(end) - size, 0), begin)

    def splits(self, begin: Index, end: Index) -> Any:
        """Whether the run begins or ends between outputs that are made at once."""
        return ((begin % self.divisor) + (end % self.divisor) > 0) & self.whole


@dataclass(frozen=True)
class Axis:
    """An axis of an operator's only output along which blocks can be computed one by one.

    `reaches`: one per operand; None where every block reads the operand whole. `attributes` gives
    those of a block: the padding of a window, mostly.
    """

    axis: int
    reaches: tuple[Reach | None, ...]
    attributes: Callable[[Part], Attributes]


@dataclass(frozen=True)
class Reduction:
    """An axis of its operands over which an operator sums, index by index, in int32.

    A block of its `size` indices is an operator `kind` with `attributes`. It reads its run of each
    operand and then, last, the sums of the blocks before it (or ''), and gives int32 sums of the
    output's shape. `ending` gives the attributes of the `requantise_sums` that makes the output of
    them. `reaches`: one per operand of `kind`, which may have more than the operator itself; None
    where the first block alone reads it (a bias).
    """

    size: int
    reaches: tuple[Reach | None, ...]
    kind: str
    attributes: Attributes
    ending: Callable[[], Attributes]


@dataclass(frozen=True)
class Quantised:
    """How a kind's tensors must be quantised for its kernel to compute what the reference does.

    `stored`: it moves or compares stored values, so that no scale or zero point enters; of the
    other kinds int16, int32 and int64 tensors must have the zero point `wide_zero`, which TFLite's
    kernels take for granted; None where they mind any. `alike`: operands of the output's type must
    be quantised as the output is. `per_channel`: inputs that may have a scale for each channel; of
    `stored` kinds all may. `ops.check` refuses anything else by name.
    """

    stored: bool = False
    alike: bool = False
    wide_zero: int | None = 0
    per_channel: tuple[int, ...] = ()


WEIGHTED = Quantised(per_channel=(1, 2))
STORED, ALIKE = Quantised(stored=True), Quantised(stored=True, alike=True)


def _no_axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    return ()


def no_reductions(op: Op, graph: Graph) -> tuple[Reduction, ...]:
    return ()


def _no_macs(op: Op, graph: Graph) -> int:
    return 0


def _no_aliases(op: Op, graph: Graph) -> tuple[Alias, ...]:
    return ()


def _no_strided_views(op: Op, graph: Graph) -> tuple[StridedView, ...]:
    return ()


def _all_bytes(op: Op, graph: Graph) -> tuple[tuple[int, int], ...]:
    return tuple((0, 0 if x is None else x.size_bytes) for x in graph.input_tensors(op))


@dataclass(frozen=True)
class OpSpec:
    """All that the toolchain knows of an operator kind.

    infer      output types from the op's inputs and attributes; raises ValueError with the reason
               where they contradict each other (the verifier calls it).
    reference  exact NumPy semantics, integers in and out, one array per output; written from the
               TFLite reference kernels' arithmetic, independent of the C.
    select     the kernel for one core, chosen once; raises UnsupportedError where the kernels have
               a limit that this op exceeds.
    macs       multiply-accumulates.
    aliases    tensors that are views of one another through this op (then it emits no C where all
               its outputs are whole views).
    strided_views  images that are parts of one another through this op, with gaps between lines:
               all of them lie so, or none (then it copies).
    reads      of each input the half-open run of bytes that the kernel reads.
    axes       the axes along which the operator can be split into blocks (MOTES, axis map).
    reductions the axes that it sums over, in blocks that share int32 sums (MOTES, reduced axes).
    sample     a random single-operator Graph, for differential tests: odd shapes, strides,
               zero points and scales included.
    dtypes     element types that its activations may have; the front ends refuse others.
    quantised  how its tensors must be quantised.
    limits     one line for `thimble ops`: what is supported.
    made_by_passes  no front end reads it: only a rewrite makes it.
    variants   the specs of a kind by the element type of its input `typed_by` (`by_type`), where
               they differ.
    typed_by   the input whose type tells them apart: the first one, or the state of some.
    """

    kind: str
    attributes: type[Attributes] | tuple[type[Attributes], ...]
    infer: Callable[[Op, Graph], tuple[TensorType, ...]]
    reference: Callable[[Op, Graph, Sequence[Array]], tuple[Array, ...]]
    select: Callable[[Op, Graph, Core], Kernel]
    sample: Callable[[np.random.Generator], Graph]
    tflite: TfliteBinding | None = None
    onnx: OnnxBinding | None = None
    macs: Callable[[Op, Graph], int] = _no_macs
    aliases: Callable[[Op, Graph], tuple[Alias, ...]] = _no_aliases
    strided_views: Callable[[Op, Graph], tuple[StridedView, ...]] = _no_strided_views
    reads: Callable[[Op, Graph], tuple[tuple[int, int], ...]] = _all_bytes
    axes: Callable[[Op, Graph], tuple[Axis, ...]] = _no_axes
    reductions: Callable[[Op, Graph], tuple[Reduction, ...]] = no_reductions
    dtypes: frozenset[DType] = frozenset({DType.INT8})
    limits: str = ""
    made_by_passes: bool = False
    quantised: Quantised = Quantised()
    variants: Mapping[DType, OpSpec] = field(default_factory=lambda: MappingProxyType({}))
    typed_by: int = 0

    def plain_attributes(self) -> Attributes:
        """Attributes of the first element type, all with their defaults."""
        kinds = self.attributes if isinstance(self.attributes, tuple) else (self.attributes,)
        return kinds[0]()

    @property
    def forms(self) -> tuple[OpSpec, ...]:
        """The spec of each element type; the spec itself where there is one for all of them."""
        return tuple(self.variants.values()) or (self,)

    def form(self, op: Op, graph: Graph) -> OpSpec:
        """The spec for the element type of the operator's input `typed_by`.

        Raises ValueError where the kind has none for it."""
        if not self.variants:
            return self
        dtype = graph.input(op, self.typed_by).dtype
        if dtype not in self.variants:
            known = ", ".join(known.value for known in self.variants)
            raise ValueError(f"{self.kind} of {dtype.value} is not supported, only of {known}")
        return self.variants[dtype]


def by_type(variants: Mapping[DType, OpSpec], operand: int = 0) -> OpSpec:
    """One kind of several element types, told apart by the type of the operator's input `operand`.

    The specs have the same kind. What takes an operator asks the spec of its type; the rest is the
    first one's: `sample`, `limits` and the readers of a type are found in `variants`.
    """
    specs = tuple(variants.values())
    first = specs[0]

    def ask(name: str) -> Callable[..., Any]:
        def answer(op: Op, graph: Graph, *rest: Any) -> Any:
            return getattr(whole.form(op, graph), name)(op, graph, *rest)

        return answer

    attributes: dict[type[Attributes], None] = {}
    for spec in specs:
        own = spec.attributes if isinstance(spec.attributes, tuple) else (spec.attributes,)
        attributes |= dict.fromkeys(own)
    asked = {name: ask(name) for name in _OF_AN_OPERATOR}
    fields: dict[str, Any] = asked
    whole = replace(
        first,
        attributes=tuple(attributes),
        dtypes=frozenset().union(*(spec.dtypes for spec in specs)),
        limits="; ".join(dict.fromkeys(spec.limits for spec in specs)),
        variants=MappingProxyType(dict(variants)),
        typed_by=operand,
        **fields,
    )
    return whole


_OF_AN_OPERATOR = (
    "infer",
    "reference",
    "select",
    "macs",
    "aliases",
    "strided_views",
    "reads",
    "axes",
    "reductions",
)
"""The fields of `OpSpec` that take an operator and its graph."""
