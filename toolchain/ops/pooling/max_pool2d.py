"""Maximum over windows.

TFLite MAX_POOL_2D: of int8 and int16 `reference_integer_ops::MaxPool`, of float32
`reference_ops::MaxPool`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op
from toolchain.ops.arithmetic.activation import clamp_range
from toolchain.ops.forms import Choice, OldForm, OpSpec
from toolchain.ops.kernel import Kernel
from toolchain.ops.pooling.common import (
    Pool2D,
    infer_pool,
    pool_attributes,
    pool_axes,
    read_pool,
    sample_pool,
    windows,
    write_pool,
)
from toolchain.ops.pooling.kernels import thimble_max_pool_f32, thimble_max_pool_s8
from toolchain.ops.pooling.kernels.cmsis_nn import arm_max_pool_s8, arm_max_pool_s16
from toolchain.ops.readers.float32 import clamped, extreme, float32_form
from toolchain.ops.readers.int16 import int16_form
from toolchain.ops.readers.onnx_pooling import read_max_pool
from toolchain.ops.spec import Array, OnnxBinding, TfliteBinding


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    y = graph.output(op)
    result = np.empty(y.shape, y.dtype.numpy)
    for at in windows(op, graph):
        result[:, at.row, at.column] = inputs[0][:, at.rows, at.columns].max(axis=(1, 2))
    low, high = clamp_range(pool_attributes(op).activation, y)
    return (np.clip(result, low, high).astype(y.dtype.numpy),)


def _float_reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    result = np.empty(graph.output(op).shape, np.float32)
    for at in windows(op, graph):
        part = inputs[0].astype(np.float32)[:, at.rows, at.columns]
        taps = part.reshape(len(part), -1, part.shape[3])
        result[:, at.row, at.column] = extreme(taps.swapaxes(0, 1))
    return (clamped(result, pool_attributes(op).activation),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    """CMSIS-NN's kernel on Helium. Elsewhere CMSIS-NN compares single bytes; Thimble's compares
    words.
    """
    return _cmsis_nn(op, graph, core) if core.mve else _own(op, graph, core)


def _own(op: Op, graph: Graph, core: Core) -> Kernel:
    return thimble_max_pool_s8.kernel(op, graph)


def _cmsis_nn(op: Op, graph: Graph, core: Core) -> Kernel:
    return arm_max_pool_s8.kernel(op, graph, core)


def _select_int16(op: Op, graph: Graph, core: Core) -> Kernel:
    return arm_max_pool_s16.kernel(op, graph, core)


def _select_float32(op: Op, graph: Graph, core: Core) -> Kernel:
    return thimble_max_pool_f32.kernel(op, graph)


_INT8 = OldForm(
    kind="max_pool2d",
    attributes=Pool2D,
    infer=infer_pool,
    reference=_reference,
    select=Choice(_select, _cmsis_nn, _own),
    sample=lambda rng: sample_pool(rng, "max_pool2d"),
    tflite=TfliteBinding(
        ("MAX_POOL_2D",), read_pool, lambda op, graph: write_pool(op, graph, "MAX_POOL_2D")
    ),
    axes=pool_axes,
    onnx=OnnxBinding(("MaxPool", "GlobalMaxPool"), read_max_pool),
    dtype=DType.INT8,
    limits="int8, NHWC",
)
_INT16 = int16_form(_INT8, "int16, NHWC", _select_int16)
_FLOAT32 = float32_form(_INT8, "float32, NHWC", _float_reference, _select_float32)
SPEC = OpSpec((_INT8, _INT16, _FLOAT32))
