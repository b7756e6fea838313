"""Softmax over the last dimension of int16. TFLite SOFTMAX, output scale 1/32768.

Arithmetic: LiteRT `SoftmaxInt16`: exponentials and a reciprocal by interpolation in tables of 513
entries, which are made here as `gen_lut` makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.elementwise import common as elementwise
from toolchain.ops.elementwise.common import Int64
from toolchain.ops.normalisation.rows import row_extents
from toolchain.ops.normalisation.softmax_s8 import SOFTMAX_S8, Softmax

_STEPS = 512
_OUTPUT_SCALE = 1 / 32768
_MOST_COLUMNS = 1 << 16
"""The kernel, and LiteRT's, sum that many exponentials of at most 2**15 - 1 in 32 bits."""
Int16 = NDArray[np.int16]


def _table(function: Callable[[float], float], low: float, high: float) -> Int16:
    """`function` from -1 to 1 in Q0.15; entries lean so that interpolation errs least midway."""

    def nearest(value: float) -> float:
        return float(np.copysign(np.floor(abs(value) + 0.5), value))

    step = (high - low) / _STEPS
    scale = 65536 / 2.0
    entries = []
    for i in range(_STEPS):
        here = nearest(function(low + i * step) * scale)
        midway = nearest((function(low + (i + 1) * step) * scale + here) / 2)
        error = midway - nearest(function(low + i * step + step / 2) * scale)
        entries.append(here - nearest(error / 2))
    entries.append(nearest(function(high) * scale))
    return np.clip(entries, -32768, 32767).astype(np.int16)


@cache
def _exponentials() -> Int16:
    """exp(x) for x from -10 to 0."""
    return _table(lambda x: float(np.exp(x)), -10.0, 0.0)


@cache
def _reciprocals() -> Int16:
    """1 / (1 + x) for x from 0 to 1."""
    return _table(lambda x: 1 / (1 + x), 0.0, 1.0)


def _looked_up(table: Int16, value: Int64) -> Int64:
    """Linear interpolation; 7 bits lie between entries."""
    index = 256 + (value >> 7)
    base = table[index].astype(np.int64)
    slope = table[index + 1].astype(np.int64) - base
    result: Int64 = base + ((slope * (value & 0x7F) + 64) >> 7)
    return result


def _scaling(op: kit.Operator[Softmax]) -> tuple[int, int]:
    """The product of scale and beta is a float32 in LiteRT's `Prepare`, all else a double."""
    scale = np.float32(op.x.q.scale) * np.float32(op.attributes.beta)
    return kit.quantize_multiplier(float(scale) / (10.0 / 65535.0))


def _reference(op: kit.Operator[Softmax], inputs: kit.Inputs) -> kit.Arrays:
    shape = op.y.shape
    rows = inputs[0].reshape(-1, shape[-1]).astype(np.int64)
    diff = rows - rows.max(axis=1, keepdims=True)
    scaled = kit.wrap_int32(kit.multiply_by_quantized_multiplier(diff, *_scaling(op)) + 32767)
    exps = _looked_up(_exponentials(), np.clip(scaled, -32768, 32767))
    total = exps.sum(axis=1, keepdims=True)
    headroom = 32 - np.array([[int(value).bit_length()] for value in total[:, 0]], dtype=np.int64)
    shifted = ((total << (headroom - 1)) + (1 << 13)) >> 14
    wanted = np.clip(shifted - 98304, -32768, 32767)
    reciprocal = _looked_up(_reciprocals(), wanted)
    result = (exps * reciprocal) >> (30 - headroom)
    output = np.clip((result + 1) >> 1, 0, 32767)
    return (output.astype(np.int16).reshape(shape),)


def _select(op: kit.Operator[Softmax], core: kit.Core) -> kit.Kernel:
    elementwise.require_types(op, kit.DType.INT16)
    x, y = op.x, op.y
    if not x.shape:
        raise op.refused("the input is a scalar")
    if y.q.zero_point or abs(y.q.scale / _OUTPUT_SCALE - 1) > 1e-3:
        raise op.refused(
            f"the output has scale {y.q.scale:g} and zero point "
            f"{y.q.zero_point}, not 1/32768 and 0; convert with TFLite's 16x8 quantiser"
        )
    multiplier, shift = _scaling(op)
    columns = x.shape[-1]
    if columns > _MOST_COLUMNS:
        raise op.refused(f"rows of {columns} elements, at most {_MOST_COLUMNS} are supported")
    call = kit.Call(
        "thimble_softmax_s16",
        {
            "input": kit.Input(0),
            "output": kit.Output(0),
            "rows": x.elements // columns,
            "columns": columns,
            "multiplier": multiplier,
            "shift": shift,
            "exponentials": kit.Packed("exponentials"),
            "reciprocals": kit.Packed("reciprocals"),
        },
    )
    return kit.Kernel(
        (call,),
        row_extents("rows", "columns", lambda t: dict.fromkeys(_TABLES, 2 * 513)),
        constants=(
            kit.Constant("exponentials", _exponentials, "exp(x), x from -10 to 0, Q0.15"),
            kit.Constant("reciprocals", _reciprocals, "1 / (1 + x), x from 0 to 1, Q0.15"),
        ),
        find_overlaps=lambda: elementwise.overlaps_same_shape(op, core),
    )


_TABLES = ("exponentials", "reciprocals")
"""512 steps each, and the end of the last one."""


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    elementwise.check_node(node, kit.DType.INT16)
    return kit.ReadOp(Softmax(float(node.options.beta)), (0,))


def _write(op: kit.Operator[Softmax]) -> kit.WrittenOp:
    return kit.WrittenOp("SOFTMAX", "SoftmaxOptions", {"beta": op.attributes.beta}, version=3)


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = (*elementwise.sample_shape(rng, 3, 6), int(rng.integers(1, 40)))
    q = kit.Quantisation((kit.sample_scale(rng, -16, -5),), (0,))
    x = kit.Tensor("x", shape, kit.DType.INT16, q)
    beta = 1.0 if rng.random() < 0.6 else kit.sample_scale(rng, -2, 2)
    return kit.sample("softmax", Softmax(beta), x, q=kit.Quantisation((_OUTPUT_SCALE,), (0,)))


def _cmsis_nn(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    raise kit.NoKernelError("arm_softmax_s16 wraps where a quotient rounds up to a power of two")


SOFTMAX_S16 = replace(
    SOFTMAX_S8,
    kind="softmax",
    reference=_reference,
    select=kit.Choice(_select, _cmsis_nn),
    sample=_sample,
    tflite=kit.TfliteBinding(("SOFTMAX",), _read, _write),
    onnx=None,
    dtype=kit.DType.INT16,
    types=frozenset(),
    limits="int16, last dimension, output scale 1/32768",
    quantised=kit.Quantised(),
)
