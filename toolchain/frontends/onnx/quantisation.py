"""The scales and zero points of QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.onnx.model import Array, Node, dtype_name
from toolchain.ir import Quantisation
from toolchain.ir.tensor import is_scale
from toolchain.ops.spec import OnnxData

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
DYNAMIC = "DynamicQuantizeLinear"
"""The operators that say how real values are stored."""
UNIT = Quantisation((1.0,), (0,))
"""Stored values equal the real ones: the quantisation that readers see for float32 tensors."""


@dataclass(frozen=True)
class Parameters:
    """`quantisation` is of the int8 form: uint8 is stored 128 lower. `dtype` is the file's."""

    quantisation: Quantisation
    dtype: str


def stored_type(node: Node, constants: Mapping[str, Array]) -> str:
    """The element type that a QuantizeLinear gives: its zero point's, or that of `output_dtype`."""
    zero_name = node.inputs[2] if len(node.inputs) > 2 else ""
    if zero_name in constants:
        return str(np.asarray(constants[zero_name]).dtype)
    code = int(node.attributes.get("output_dtype", 0))
    return dtype_name(code) if code else "uint8"


_NIBBLES = ("int4", "uint4")
"""Types of constants that are read as int8, which holds all their values."""


def parameters(
    node: Node, constants: Mapping[str, Array], dtype: str, *, constant: bool = False
) -> Parameters:
    """The parameters of a QuantizeLinear or DequantizeLinear; `dtype` if it names no zero point.
    A `constant` may have integers of 4 bits.

    Raises RefusedError for types other than 8 bits and int32, InputError for impossible scales.
    """
    scale_name = node.inputs[1] if len(node.inputs) > 1 else ""
    zero_name = node.inputs[2] if len(node.inputs) > 2 else ""
    if scale_name not in constants or (zero_name and zero_name not in constants):
        raise RefusedError(
            "its scale or zero point is computed while the model runs",
            "quantise the model statically (quantize_static)",
        )
    if node.attributes.get("block_size"):
        raise RefusedError(
            "blocked quantisation, of which a sum has several scales",
            "quantise per tensor or per channel",
        )
    scales = np.asarray(constants[scale_name])
    given = str(constants[zero_name].dtype) if zero_name else dtype
    narrow = constant and given in _NIBBLES
    if given not in ("int8", "uint8", "int32") and not narrow:
        of = "activations quantised" if given in _NIBBLES else "quantisation"
        raise RefusedError(f"{of} to {given}", "quantise to int8 or uint8")
    held = "int8" if narrow else given
    zeros = constants[zero_name].astype(held) if zero_name else np.zeros(scales.shape, dtype=held)
    if scales.ndim > 1 or scales.size == 0 or zeros.size not in (1, scales.size):
        raise InputError(f"{node} has {scales.size} scales and {zeros.size} zero points")
    reals = scales.astype(np.float32).reshape(-1)
    if not all(map(is_scale, reals.tolist())):
        raise InputError(f"{node} has a scale that is not a positive number")
    shift = 128 if zeros.dtype == np.uint8 else 0
    whole = np.broadcast_to(zeros.reshape(-1).astype(np.int64), reals.shape)
    quantisation = Quantisation(
        tuple(float(s) for s in reals),
        tuple(int(z) - shift for z in whole),
        int(node.attributes.get("axis", 1)) if reals.size > 1 else None,
    )
    return Parameters(quantisation, str(zeros.dtype))


def dequantised_constant(node: Node, data: Array, constants: Mapping[str, Array]) -> OnnxData:
    """The constant that a DequantizeLinear of `data` stands for, uint8 and integers of 4 bits
    turned into int8."""
    given = parameters(node, constants, str(data.dtype), constant=True)
    zero_name = node.inputs[2] if len(node.inputs) > 2 else ""
    if zero_name and constants[zero_name].dtype != data.dtype:
        zero_type = constants[zero_name].dtype
        raise InputError(f"{node} has {data.dtype} data and a {zero_type} zero point")
    if str(data.dtype) in _NIBBLES:
        data = data.astype(np.int8)
    q = given.quantisation
    if q.axis is not None:
        axis = q.axis + data.ndim if q.axis < 0 else q.axis
        if not 0 <= axis < data.ndim or data.shape[axis] != len(q.scales):
            raise InputError(f"{node} has {len(q.scales)} scales for the shape {list(data.shape)}")
        q = Quantisation(q.scales, q.zero_points, axis)
    if data.dtype == np.uint8:
        data = (data.astype(np.int16) - 128).astype(np.int8)
    return OnnxData(data, q)


def transposed_constant(value: OnnxData, permutation: Sequence[int]) -> OnnxData:
    """`value` transposed; the axis of its scales moves along."""
    q = value.quantisation
    if q is not None and q.axis is not None:
        q = Quantisation(q.scales, q.zero_points, list(permutation).index(q.axis))
    return OnnxData(value.data.transpose(permutation), q)


def reshaped_constant(value: OnnxData, shape: Sequence[int]) -> OnnxData:
    """`value` as `shape`. Raises RefusedError if that splits the quantised dimension."""
    q, old = value.quantisation, value.data.shape
    if q is not None and q.axis is not None:
        before = int(np.prod(old[: q.axis], dtype=np.int64))
        starts = np.cumprod([1, *shape])[: len(shape)]
        axes = [i for i, size in enumerate(shape) if size == old[q.axis] and starts[i] == before]
        if not axes:
            raise RefusedError(
                "a reshape of a constant across its quantised dimension", "quantise it per tensor"
            )
        q = Quantisation(q.scales, q.zero_points, axes[0])
    return OnnxData(value.data.reshape(shape), q)
