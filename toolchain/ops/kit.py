"""The names that every operator kind needs, in one import: `from toolchain.ops import kit`.

Attributes and tensors are from `ir`, what a kind is from `forms` and `spec`, calls of C functions
from `kernel`, the bytes that they touch from `extents`, axes for splitting from `axes`, windows
over images from `window`, operands of products from `weighted`, and from `arithmetic` what most
kinds compute with.
"""

from toolchain.boards import Core
from toolchain.errors import InputError, UnsupportedError
from toolchain.ir import ArenaPlan, Attributes, DType, Graph, Op, Quantisation, State, Tensor
from toolchain.kernels.runtime_c import defined
from toolchain.ops.arithmetic.activation import Activation, clamp_range, read_activation
from toolchain.ops.arithmetic.fixed_point import (
    INT32_MAX,
    Int32,
    check_sums,
    held_in_int32,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    requantise,
    wrap_int32,
)
from toolchain.ops.arithmetic.float_math import Float32
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.axes import elementwise_axes, leading_axes, resolve_axis, window_axes
from toolchain.ops.extents import (
    Extent,
    Extents,
    Pointer,
    joined,
    round_up,
    whole,
)
from toolchain.ops.forms import Choice, Form, OpSpec, Select, kept, no_reductions
from toolchain.ops.kernel import (
    NULL,
    SUFFIXES,
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
    Struct,
    Symbol,
    Terms,
    Touched,
    constant,
    numbers,
)
from toolchain.ops.operator import AnyOperator, Operator, operator_of
from toolchain.ops.preference import NoKernelError, Preference, require_int32
from toolchain.ops.samples import (
    constant_sample,
    sample,
    sample_activation,
    sample_quantisation,
    sample_scale,
    sample_shape,
    sample_type,
    with_tensors,
)
from toolchain.ops.spec import (
    ALIKE,
    SCALED,
    STORED,
    WEIGHTED,
    Alias,
    Array,
    Arrays,
    Axis,
    Inputs,
    OnnxBinding,
    OnnxNode,
    Part,
    Quantised,
    Reach,
    ReadOp,
    Reduction,
    StridedView,
    TensorType,
    TensorTypes,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
    int32_constant,
)
from toolchain.ops.weighted import (
    BIAS,
    INPUT,
    WEIGHTS,
    added_sums,
    bias_of,
    constant_of,
    has_bias,
    is_narrow,
    present_inputs,
    slow_channels,
    sums_type,
)
from toolchain.ops.window import (
    UNPADDED,
    Along,
    Padding,
    Window,
    along,
    check_16_bits,
    image_patches,
    padding_scheme,
    reach_in,
    same_padding,
    shape_in,
    sized,
    walked,
    window_members,
    window_reach,
)
