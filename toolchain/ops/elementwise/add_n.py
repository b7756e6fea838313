"""Sums of several tensors of one shape. TFLite ADD_N; int8 as tflite-micro has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import infer_unary, sample_quantisation, sample_shape
from toolchain.ops.reduction.fine_sums import parameters, settled

_FEWEST = 2


def _infer(op: kit.AnyOperator) -> tuple[kit.TensorType, ...]:
    first = op.x
    for other in op.inputs:
        if other is None or (other.shape, other.dtype) != (first.shape, first.dtype):
            raise ValueError(f"{other} is added to {first}")
    if len(op.inputs) < _FEWEST:
        raise ValueError("it has one operand alone")
    return infer_unary(op)


def _reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    with np.errstate(all="ignore"):
        return (reduce(np.add, inputs),)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    """One call for each operand but the first, which adds it to the sum so far."""
    x = op.x

    def added(number: int) -> kit.Call:
        arguments: dict[str, kit.Argument] = {
            "first": kit.Input(0) if number == 1 else kit.Output(0),
            "second": kit.Input(number),
            "output": kit.Output(0),
            "size": x.elements,
        }
        return kit.Call(f"thimble_add_values_{kit.SUFFIXES[x.dtype]}", arguments)

    calls = tuple(added(number) for number in range(1, len(op.inputs)))
    overlaps = (kit.SafeOverlap(0), *((kit.SafeOverlap(1),) if len(calls) == 1 else ()))
    return kit.Kernel(calls, _extents, find_overlaps=lambda: overlaps)


def _extents(touched: kit.Touched) -> kit.Extents:
    """Whole operands, of all calls, and the output, which calls behind the first read, too."""
    size = kit.whole(touched.calls[0]["size"], touched.outputs[0].element_bytes)
    arguments = [value for call in touched.calls for value in call.arguments.values()]
    operands = [value.index for value in arguments if isinstance(value, kit.Input)]
    return kit.Extents(dict.fromkeys(operands, size), {0: size})


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    return kit.ReadOp(kit.Attributes(), tuple(range(len(node.inputs))))


def _write(op: kit.AnyOperator) -> kit.WrittenOp:
    return kit.WrittenOp("ADD_N", "AddNOptions")


def _sampler(dtype: kit.DType) -> Callable[[np.random.Generator], kit.Graph]:
    def sample(rng: np.random.Generator) -> kit.Graph:
        x = kit.Tensor("x0", sample_shape(rng), dtype)
        tensors = [replace(x, name=f"x{index}") for index in range(int(rng.integers(2, 5)))]
        return kit.sample("add_n", kit.Attributes(), *tensors)

    return sample


def _plain_form(dtype: kit.DType) -> kit.Form[Any]:
    return kit.Form(
        kind="add_n",
        attributes=kit.Attributes,
        infer=_infer,
        reference=_reference,
        select=_select,
        sample=_sampler(dtype),
        axes=kit.elementwise_axes,
        tflite=kit.TfliteBinding(("ADD_N",), _read, _write),
        dtype=dtype,
        quantised=kit.STORED,
        limits=f"{dtype.value}, operands of one shape",
    )


def _reference_s8(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    zero_point = op.x.q.zero_point
    total = sum(values.astype(np.int64) - zero_point for values in inputs)
    return (settled(op, np.asarray(total)),)


def _infer_s8(op: kit.AnyOperator) -> tuple[kit.TensorType, ...]:
    first = op.x
    for other in op.inputs:
        if other is None or other.quantisation != first.quantisation:
            raise ValueError(f"{other} is added to {first}, which is quantised otherwise")
    return _infer(op)


def _select_s8(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    """One pass over all operands."""
    given = parameters(op)
    count = len(op.inputs)
    arguments: dict[str, kit.Argument] = {
        **{f"operand_{number}": kit.Input(number) for number in range(count)},
        "output": kit.Output(0),
        "size": op.x.elements,
        "start": -given["zero_point"] * (count + 1),
        **{name: given[name] for name in ("multiplier", "shift", "output_offset")},
    }
    call = kit.Call("thimble_fine_sum_s8", arguments, template="sum_s8", defined=True)
    overlaps = tuple(kit.SafeOverlap(number) for number in range(count))
    return kit.Kernel((call,), _extents, find_overlaps=lambda: overlaps)


def _sample_s8(rng: np.random.Generator) -> kit.Graph:
    graph = _sampler(kit.DType.INT8)(rng)
    q = sample_quantisation(rng)
    scale = float(np.float32(q.scale * 2.0 ** rng.uniform(-1, 3)))
    output = sample_quantisation(rng, scale=scale)
    return kit.with_tensors(
        graph, lambda tensor: replace(tensor, quantisation=output if tensor.name == "y" else q)
    )


_PLAIN = tuple(_plain_form(dtype) for dtype in (kit.DType.FLOAT32, kit.DType.INT32))
_INT8 = replace(
    _PLAIN[0],
    infer=_infer_s8,
    reference=_reference_s8,
    select=_select_s8,
    sample=_sample_s8,
    dtype=kit.DType.INT8,
    quantised=kit.Quantised(),
    limits="int8 as tflite-micro has it, operands of one shape and scale",
)
SPEC = kit.OpSpec((*_PLAIN, _INT8))
