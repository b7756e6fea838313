"""The values that the callbacks of an operator kind (`forms`) take and return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import Attributes, DType, Op, Quantisation, Tensor
from toolchain.ops.operator import Operator

Array = NDArray[np.generic]
Inputs: TypeAlias = Sequence[Array]
"""The inputs of a reference, an array for each."""
Arrays: TypeAlias = tuple[Array, ...]
"""The outputs of a reference, an array for each."""
Index = TypeVar("Index", int, NDArray[np.int64])
A = TypeVar("A", bound=Attributes)


@dataclass(frozen=True)
class TensorType:
    """A shape and an element type: what a shape rule derives for each output."""

    shape: tuple[int, ...]
    dtype: DType


TensorTypes: TypeAlias = tuple[TensorType, ...]
"""The result of a shape rule: the type of each output."""


class TfliteNode(Protocol):
    """One operator of a TFLite file, as its reader sees it."""

    @property
    def options(self) -> Any:
        """The operator's builtin options in the flatbuffer object API, enums by their names.

        Raises InputError where the file has none.
        """

    @property
    def has_options(self) -> bool: ...

    @property
    def builtin(self) -> str:
        """The operator's name in the schema's BuiltinOperator enum."""

    @property
    def version(self) -> int: ...

    @property
    def legacy(self) -> bool:
        """Whether the operator's tensors were uint8 and have been lowered to int8."""

    @property
    def inputs(self) -> tuple[Tensor | None, ...]: ...

    @property
    def outputs(self) -> tuple[Tensor, ...]: ...

    @property
    def intermediates(self) -> tuple[Tensor | None, ...]:
        """Tensors that only give the scales of values inside a recurrent kernel."""

    def constant(self, index: int) -> Array:
        """The data of input `index`. Raises UnsupportedError where it is not constant."""

    def integers(self, index: int) -> tuple[int, ...]:
        """The integers of constant input `index`, flattened."""

    def unsupported(self, why: str, remedy: str = "") -> Exception:
        """The error to raise for a form of the operator that has no kernel."""


@dataclass(frozen=True)
class ReadOp:
    """The result of a TFLite reader: the attributes, and the inputs that stay inputs.

    `inputs` are indices into the file's inputs. Inputs that became attributes (a reshape's shape, a
    pad's paddings) are left out. Example: a PAD with constant paddings gives `inputs=(0,)`.
    `states` are indices of the file's inputs that are variables which the operator updates. Each
    adds one output, the variable's next value, after the file's own outputs. `memories` are the
    first values of what the operator keeps without the file's mentioning it: each adds an input and
    an output at the end. `ignored` are inputs that the file may give, and LiteRT does not look at;
    all others must be in `inputs`, or their constants asked for.
    """

    attributes: Attributes
    inputs: tuple[int, ...]
    states: tuple[int, ...] = ()
    memories: tuple[Array, ...] = ()
    ignored: tuple[int, ...] = ()


@dataclass(frozen=True)
class WrittenOp:
    """The inverse of `ReadOp`, for tests that give single operators to LiteRT.

    `options_type` names the member of the schema's BuiltinOptions union ('' for none), and
    `options` are the fields to set. `extra_inputs` are constants to append after the operator's own
    inputs. `order` is the file's order of inputs, as indices into the own inputs followed by the
    extra ones, -1 for an absent one; () keeps the order. `intermediates` are as in `TfliteNode`.
    `behind`: the operator that takes the inputs instead, and passes this one a tensor of the
    schema's type `between`, in the shape of the output.
    """

    builtin: str
    options_type: str = ""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    extra_inputs: tuple[Tensor, ...] = ()
    version: int = 1
    order: tuple[int, ...] = ()
    intermediates: tuple[Tensor, ...] = ()
    behind: WrittenOp | None = None
    between: str = ""


def int32_constant(name: str, values: Sequence[int] | Array) -> Tensor:
    """An int32 constant input of a TFLite operator that is written: a shape, axes, paddings."""
    data = np.asarray(values, dtype=np.int32)
    return Tensor(name, data.shape, DType.INT32, None, data)


@dataclass(frozen=True)
class TfliteBinding:
    """How a kind is read from TFLite and written to it.

    `builtins` are the names that the kind reads: of the schema's BuiltinOperator enum, or of custom
    operators, whose options are a FlexBuffer.
    """

    builtins: tuple[str, ...]
    read: Callable[[TfliteNode], ReadOp]
    write: Callable[[Operator[Any]], WrittenOp]


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
    """One operator of an ONNX model, as its reader sees it; the reader answers through it.

    The front end has already removed QuantizeLinear, DequantizeLinear and the QLinear forms: every
    activation is a real-valued tensor with a known int8 quantisation. Shapes are ONNX's. The front
    end decides how a tensor lies in memory: `axes[i]` is the ONNX dimension that is the i-th of the
    tensor in the graph. Example: an NCHW image that is stored as NHWC has axes (0, 2, 3, 1).
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
        """The number of inputs, without absent ones at the end."""

    @property
    def outputs(self) -> int: ...

    @property
    def in_float(self) -> bool:
        """Whether the model computes in float32. Quantisations then have scale 1 and no meaning."""

    @property
    def holds_integers(self) -> bool:
        """Whether the file applies the operator to stored integers, so that a constant operand is
        stored integers too.
        """

    @property
    def plain(self) -> bool:
        """Whether all operands are bools and integers without a scale."""

    def plain_dtype(self, index: int) -> DType:
        """The element type of input `index`, a bool or an integer without a scale."""

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
        """The quantisation that the following QuantizeLinear gives, or `default`.

        Raises UnsupportedError where there is neither.
        """

    def axes(self, *indices: int) -> tuple[int, ...]:
        """The order of axes of the largest of the inputs, to request for the others too."""

    def operand(
        self,
        index: int,
        axes: tuple[int, ...],
        shape: tuple[int, ...] | None = None,
        quantisation: Quantisation | None = None,
    ) -> str:
        """Name of the tensor that holds input `index` with its dimensions in the order `axes`.

        `shape` is the tensor's own shape where it differs from the ONNX shape in that order.
        `quantisation` asks for a requantised tensor. Dimensions that the input lacks come first, as
        1.
        """

    def row_operand(self, index: int) -> tuple[str, NDArray[np.intp]]:
        """Input `index` as a matrix whose rows are its last dimension, in stored order.

        Returns the tensor and, for each place in the row, the ONNX index stored there.
        """

    def add_constant(self, stem: str, data: Array, quantisation: Quantisation | None) -> str: ...

    def following_bias(self, axis: int) -> NDArray[np.float64] | None:
        """The constant that an Add right after this operator adds along output dimension `axis`.

        Returns one value per index and consumes the Add; None where there is none.
        """

    def fused_activation(self) -> str:
        """Name in `Activation` of the Relu or Clip that follows; consumes it if it has one.

        NONE where none follows, or where the output's quantisation already clamps as much.
        """

    def intermediate(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[str],
        shape: tuple[int, ...],
        quantisation: Quantisation,
    ) -> str:
        """Add an operator before the node's own; returns the name of its output."""

    def is_read(self, index: int) -> bool:
        """Whether an operator, or the model's caller, reads output `index`."""

    def results(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[str],
        shapes: Sequence[tuple[int, ...]],
    ) -> tuple[str, ...]:
        """Add an operator with outputs of these shapes, all in float32; returns their names."""

    def define(self, index: int, tensor: str, axes: tuple[int, ...]) -> None:
        """Output `index` is the float32 tensor `tensor`; its dimensions lie in the order `axes`."""

    def emit(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[str],
        quantisation: Quantisation | None,
        axes: tuple[int, ...],
        shape: tuple[int, ...] | None = None,
        dtype: DType = DType.INT8,
        indices: DType | None = None,
    ) -> None:
        """Add the operator that computes all outputs of the node. `shape` is as in `operand`.

        `indices`: the element type of the outputs behind the first, where it is another one.
        """

    def emit_like(
        self, index: int, kind: str, attributes: Attributes, quantisation: Quantisation
    ) -> None:
        """Add a one-input elementwise operator whose output has the axes of input `index`."""

    def unsupported(self, why: str, remedy: str = "") -> Exception:
        """The error to raise for a form of the operator that has no kernel."""

    def left_in_float(self, why: str, remedy: str = "") -> Exception:
        """The error to raise where the operator has no int8 form, or the file left it in float.

        The operator is then read again, with `in_float`.
        """


@dataclass(frozen=True)
class OnnxBinding:
    """How a kind is read from ONNX. `operators` are names of standard ONNX operators.

    read     the operator on quantised values, and on float32 values where no row of
             `frontends.onnx.operators` reads these.
    plain    the operator on bools, int32 and int64 without a scale; None where it is not read so.
    """

    operators: tuple[str, ...]
    read: Callable[[OnnxNode], None]
    plain: Callable[[OnnxNode], None] | None = None


@dataclass(frozen=True)
class Alias:
    """Tensor `view` is the bytes of tensor `base` from `offset_bytes` on, and owns none itself.

    Example: a reshape makes its output an alias of its input, at offset 0.
    """

    view: str
    base: str
    offset_bytes: int = 0


@dataclass(frozen=True)
class StridedView:
    """Image `view` may be a part of the rows and columns of image `base`, with gaps between its
    lines.

    Its first line begins at `offset_bytes`, and its lines are `pitch_bytes` apart. Example: columns
    8 to 15 of an int8 image of 32x32x4 begin at byte 32, with lines 128 bytes apart. It is an
    `Alias` with gaps: every kernel that touches the image must be able to step over them.
    """

    view: str
    base: str
    offset_bytes: int
    pitch_bytes: int


@dataclass(frozen=True)
class Part:
    """A block of an operator: output indices [begin, begin + length) along the split axis.

    `before` and `after` say how far the block reads beyond the input that it gets: that is its
    padding. It begins `before` / `Reach.divisor` indices before the first given index of its first
    operand, and ends `after` indices behind the last. Example: the first block of a 3x3 convolution
    with padding 1 has `before` 1 and `after` 0; an inner block has 0 and 0.
    """

    length: int
    before: int = 0
    after: int = 0
    begin: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Reach:
    """Which indices of an operand a run of output indices reads, along one axis of each.

    Output indices [begin, end) read the indices

        [(begin * stride - before) // divisor, ((end - 1) * stride - before + extent) // divisor)

    of the operand's axis `axis`, as far as they exist. Example: a convolution with a window of 3,
    stride 2 and padding 1 has `Reach(axis=1, stride=2, extent=3, before=1)`, so its output rows 4
    to 7 read input rows 7 to 15. `divisor` is above 1 for operators that enlarge: a resize to twice
    the size has 2. `whole` says that such an operator makes `divisor` outputs at once, so that runs
    begin and end at multiples of it.
    """

    axis: int
    stride: int = 1
    extent: int = 1
    before: int = 0
    divisor: int = 1
    whole: bool = False

    def first(self, begin: Index) -> Index:
        """The first input index of a run; below 0 where the run reads padding."""
        return (begin * self.stride - self.before) // self.divisor

    def last(self, end: Index) -> Index:
        """One past the last input index of a run; above the operand's size for padding."""
        return ((end - 1) * self.stride - self.before + self.extent) // self.divisor

    def possible(self, there: Index) -> Index:
        """How many output indices can be computed from input indices below `there`; may be
        below 0.
        """
        return ((there + 1) * self.divisor - 1 + self.before - self.extent) // self.stride + 1

    def needs(self, begin: int, end: int, size: int) -> tuple[int, int]:
        """The input indices [first, last) that exist, in an operand of `size`; empty if none
        does.
        """
        return max(self.first(begin), 0), min(self.last(end), size)

    def part(self, begin: int, end: int, size: int) -> Part:
        """The run as a `Part`, with the padding it has where it reads beyond an operand of
        `size`.
        """
        first = max(self.first(begin), 0)
        before = first * self.divisor - (begin * self.stride - self.before)
        return Part(end - begin, before, max(self.last(end) - size, 0), begin)

    def splits(self, begin: Index, end: Index) -> Any:
        """Whether the run begins or ends inside a group of outputs that are made at once."""
        return ((begin % self.divisor) + (end % self.divisor) > 0) & self.whole


@dataclass(frozen=True)
class Axis:
    """An axis of an operator's only output along which blocks can be computed one by one.

    `reaches` has one entry per operand; None where every block reads the whole operand, as a
    convolution's blocks of rows read its weights. `attributes` gives the attributes of a block, for
    example its own padding; None where they are the operator's. `once`: what a block computes
    cannot be computed again, and blocks run in the order of their indices.
    """

    axis: int
    reaches: tuple[Reach | None, ...]
    attributes: Callable[[Part], Attributes] | None = None
    once: bool = False

    def of_block(self, op: Op, part: Part) -> Attributes:
        """The attributes of a block of the operator."""
        return op.attributes if self.attributes is None else self.attributes(part)


@dataclass(frozen=True)
class Reduction:
    """An axis of its operands over which an operator sums in int32, so that blocks can add up.

    Example: a 1x1 convolution can sum 64 input channels in four blocks of 16. A block is an
    operator `kind` with `attributes`. It reads its run of each operand and, as its last input, the
    sums of the blocks before it ('' for the first block), and returns int32 sums of the output's
    shape. `size` is the number of indices to sum over. `ending` gives the attributes of the
    `requantise_sums` that makes the output from the sums. `reaches` has one entry per operand of
    `kind`, which may have more operands than the operator itself; None where only the first block
    reads the operand (a bias).
    """

    size: int
    reaches: tuple[Reach | None, ...]
    kind: str
    attributes: Attributes
    ending: Callable[[], Attributes]


@dataclass(frozen=True)
class Quantised:
    """How the tensors of a kind must be quantised for its kernel to compute what the reference
    does.

    `stored`: the kind moves or compares stored integers, so scales and zero points do not matter.
    `alike`: operands of the output's type must be quantised as the output is. `wide_zero`: the zero
    point that int16, int32 and int64 tensors must have, which TFLite's kernels assume; None allows
    any. It does not apply to `stored` kinds. `per_channel`: indices of inputs that may have a scale
    for each channel; all inputs of `stored` kinds may. `ops.check` refuses anything else by name.
    """

    stored: bool = False
    alike: bool = False
    wide_zero: int | None = 0
    per_channel: tuple[int, ...] = ()


SCALED, WEIGHTED = Quantised(), Quantised(per_channel=(1, 2))
STORED, ALIKE = Quantised(stored=True), Quantised(stored=True, alike=True)
