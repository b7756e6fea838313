"""What every operator kind needs, in one import: `from toolchain.ops import kit`.

Attributes and tensors are from `ir`, what a kind is from `forms` and `spec`, calls of C functions
from `kernel`, the bytes that they touch from `extents`, axes for splitting from `axes`.
"""

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.axes import resolve_axis
from toolchain.ops.extents import Extent, Extents, Pointer, joined, round_up, whole, widths
from toolchain.ops.forms import Choice, Form, OpSpec, Select, no_reductions
from toolchain.ops.kernel import (
    NULL,
    Argument,
    Call,
    Constant,
    Input,
    Items,
    Kernel,
    Loop,
    Nested,
    Output,
    Packed,
    Row,
    SafeOverlap,
    Scratch,
    Steps,
    Struct,
    Symbol,
    Terms,
    Touched,
    constant,
    numbers,
)
from toolchain.ops.operator import AnyOperator, Operator, operator_of
from toolchain.ops.preference import NoKernelError
from toolchain.ops.samples import sample_quantisation, sample_shape, sample_type
from toolchain.ops.spec import (
    ALIKE,
    SCALED,
    STORED,
    WEIGHTED,
    Alias,
    Array,
    Axis,
    OnnxBinding,
    OnnxData,
    OnnxNode,
    Part,
    Quantised,
    Reach,
    ReadOp,
    Reduction,
    StridedView,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
    int32_constant,
)
