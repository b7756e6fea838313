"""Float to integers of 8 or 16 bits, and integers to another scale or type. TFLite QUANTIZE.

From float32: `AffineQuantize`. Between integers: `Requantize`; with int32 as in TFLM. Before a
CONCATENATION of uint8 tensors: `ConcatenationWithScaling`, which computes in float32. A quotient
that overflows int32 saturates, and NaN becomes the zero point; TFLite leaves both undefined (LiteRT
on x86 gives the smallest integer).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.fixed_point import (
    check_reach,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    round_half_away,
)
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Int64,
    check_node,
    reference_unary,
    require_types,
    rescaling,
    sample_quantisation,
    sample_shape,
)
from toolchain.ops.elementwise.kernels import sized_kernel, unary_kernel
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Kernel, Struct
from toolchain.ops.spec import (
    Alias,
    Array,
    Quantised,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_BYTES = (DType.INT8, DType.UINT8)
_WIDE = (DType.INT16, DType.INT32)
_INTEGERS = (*_BYTES, *_WIDE)
_SUFFIXES = {DType.INT8: "s8", DType.UINT8: "u8", DType.INT16: "s16", DType.INT32: "s32"}


@dataclass(frozen=True)
class Quantize(Attributes):
    """`to` is the output's type. `halves_to_even`: ONNX's rounding of float32 to int8. `in_float`:
    int8 that stands for uint8 is rescaled in float32.
    """

    to: DType = DType.INT8
    halves_to_even: bool = False
    in_float: bool = False


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    assert isinstance(op.attributes, Quantize)
    return (TensorType(graph.input(op, 0).shape, op.attributes.to),)


def _requantisation(op: Op, graph: Graph) -> tuple[int, int]:
    return quantize_multiplier(graph.input(op, 0).q.scale / graph.output(op).q.scale)


def _wrapped(sums: Int64) -> Int64:
    """As sums of int32 wrap."""
    return sums.astype(np.int32).astype(np.int64)


def _requantize(op: Op, graph: Graph, stored: Int64) -> Int64:
    x, y = graph.input(op, 0), graph.output(op)
    assert isinstance(op.attributes, Quantize)
    if op.attributes.in_float:
        return _rescaled_in_float(stored, x.q, y.q)
    centred = _wrapped(stored - x.q.zero_point)
    scaled = multiply_by_quantized_multiplier(centred, *_requantisation(op, graph))
    info = np.iinfo(y.dtype.value)
    clamped: Int64 = np.clip(_wrapped(scaled + y.q.zero_point), int(info.min), int(info.max))
    return clamped


def _rescaled_in_float(stored: Int64, x: Quantisation, y: Quantisation) -> Int64:
    """As `ConcatenationWithScaling`: in float32, of the uint8 values that lie 128 higher."""
    scale = np.float32(x.scale) * (np.float32(1) / np.float32(y.scale))
    bias = np.float32(-(x.zero_point + 128)) * scale
    real = ((stored + 128).astype(np.float32) * scale + bias).astype(np.float64)
    near = np.clip(real, -(2.0**31), 2.0**31 - 1)
    clamped: Int64 = np.clip(round_half_away(near) + y.zero_point, -128, 127)
    return clamped


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, y = graph.input(op, 0), graph.output(op)
    if x.dtype is not DType.FLOAT32:
        return reference_unary(op, graph, inputs, lambda stored: _requantize(op, graph, stored))
    info = np.iinfo(y.dtype.value)
    with np.errstate(over="ignore", invalid="ignore"):
        quotient = (inputs[0].astype(np.float32) / np.float32(y.q.scale)).astype(np.float64)
    assert isinstance(op.attributes, Quantize)
    rounded = np.copysign(np.floor(np.abs(quotient) + 0.5), quotient)
    if op.attributes.halves_to_even:
        rounded = np.rint(quotient)
    shifted = np.nan_to_num(rounded, nan=0.0) + y.q.zero_point
    clipped = np.clip(shifted, int(info.min), int(info.max))
    return (clipped.astype(y.dtype.numpy).reshape(y.shape),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x, y = graph.input(op, 0), graph.output(op)
    if x.dtype is not DType.FLOAT32:
        require_types(op, graph, *_INTEGERS)
        if _wide(x, y):
            return _other_widths_kernel(op, graph)
        return unary_kernel(op, graph, lambda v: _requantize(op, graph, v), rescaling(x, y))
    check_reach(1 / y.q.scale, 1)  # even 1.0 would overrun, which TFLite leaves undefined
    assert isinstance(op.attributes, Quantize)
    function = f"thimble_quantize_f32_{_SUFFIXES[y.dtype]}"
    if op.attributes.halves_to_even:
        if y.dtype is not DType.INT8:
            raise UnsupportedError(f"quantize {op.name!r}: halves go to even for int8 only")
        function += "_even"
    arguments = {"scale": np.float32(y.q.scale).item(), "zero_point": y.q.zero_point}
    return sized_kernel(op, graph, function, arguments)


def _wide(x: Tensor, y: Tensor) -> bool:
    return x.dtype in _WIDE or y.dtype in _WIDE


def _has_no_kernel(x: Tensor, y: Tensor) -> bool:
    """What neither LiteRT nor TFLM has."""
    pair = x.dtype, y.dtype
    return DType.UINT8 in pair and _wide(x, y) and pair != (DType.UINT8, DType.INT16)


def _other_widths_kernel(op: Op, graph: Graph) -> Kernel:
    """To or from int16 or int32."""
    x, y = graph.input(op, 0), graph.output(op)
    if _has_no_kernel(x, y):
        raise UnsupportedError(f"quantize {op.name!r}: {x} to {y}; convert with int8 or int16")
    multiplier, shift = _requantisation(op, graph)
    info = np.iinfo(y.dtype.value)
    function = f"thimble_requantize_{_SUFFIXES[x.dtype]}_{_SUFFIXES[y.dtype]}"
    params = {
        "input_offset": -x.q.zero_point,
        "multiplier": multiplier,
        "shift": shift,
        "output_offset": y.q.zero_point,
        "min": int(info.min),
        "max": int(info.max),
    }
    arguments = {"params": Struct("thimble_requantize_params", params)}
    return sized_kernel(op, graph, function, arguments, lead_bytes=_lead_bytes(x, y))


def _lead_bytes(x: Tensor, y: Tensor) -> int:
    """Ascending: where elements grow to twice their size, all but the last must lie ahead."""
    return max(y.dtype.size_bytes - x.dtype.size_bytes, 0) * (x.elements - 1)


def _aliases(op: Op, graph: Graph) -> tuple[Alias, ...]:
    """If scale and zero point stay the same, so does every byte: the output is a view."""
    x, y = graph.input(op, 0), graph.output(op)
    same = x.dtype is y.dtype and x.q.scale == y.q.scale and x.q.zero_point == y.q.zero_point
    return (Alias(op.outputs[0], op.inputs[0]),) if x.dtype in _INTEGERS and same else ()


def _read(node: TfliteNode) -> ReadOp:
    x, y = node.inputs[0], node.outputs[0]
    if x is not None and x.dtype is not DType.FLOAT32:
        check_node(node, *_INTEGERS)
        if _has_no_kernel(x, y):
            raise node.unsupported(
                f"conversion of {x.dtype.value} to {y.dtype.value}", "convert with int8"
            )
    elif y.dtype not in (*_BYTES, DType.INT16):
        raise node.unsupported(f"float32 to {y.dtype.value}", "quantise the model to int8")
    elif y.quantisation is None or y.quantisation.per_channel:
        raise node.unsupported(f"tensor {y.name!r} has not one scale and zero point")
    in_float = node.has_options and getattr(node.options, "inFloat", False)
    return ReadOp(Quantize(y.dtype, in_float=in_float), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    return WrittenOp("QUANTIZE", "QuantizeOptions", version=2)


_SAMPLED = tuple(
    (source, target)
    for source, targets in (
        (DType.FLOAT32, (*_BYTES, DType.INT16)),
        (DType.INT8, (*_BYTES, DType.INT16)),
        (DType.UINT8, (*_BYTES, DType.INT16)),
        (DType.INT16, (DType.INT8, *_WIDE)),
        (DType.INT32, (DType.INT8, DType.INT16)),
    )
    for target in targets
)
"""What LiteRT has; TFLM has int8 to int32 besides."""


def _sample(rng: np.random.Generator) -> Graph:
    shape = sample_shape(rng)
    source, target = _SAMPLED[int(rng.integers(len(_SAMPLED)))]
    q_in: Quantisation | None = None
    if source is DType.FLOAT32:
        q_out = sample_quantisation(rng, target)
    else:
        q_in = sample_quantisation(rng, source)
        factor = 1.0 if rng.random() < 0.3 else 2.0 ** rng.uniform(-4, 4)
        factor = 2.0 ** rng.uniform(0, 20) if source is DType.INT32 else factor
        q_out = sample_quantisation(rng, target, q_in.scale * factor)
    x, y = Tensor("x", shape, source, q_in), Tensor("y", shape, target, q_out)
    op = Op("quantize", "quantize", ("x",), ("y",), Quantize(target))
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])


SPEC = OldForm(
    kind="quantize",
    attributes=Quantize,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    aliases=_aliases,
    axes=elementwise_axes,
    types=frozenset({DType.FLOAT32, *_INTEGERS}),
    quantised=Quantised(wide_zero=None),
    tflite=TfliteBinding(("QUANTIZE",), _read, _write),
    limits="float32 or uint8 to int8, uint8 or int16; int8 to all; between int8, int16 and int32; "
    "per tensor",
)
