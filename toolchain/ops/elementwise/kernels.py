"""Kernels of operators with one or two operands: their calls, the bytes these touch, cost terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.affine_form import INT8_LEVELS, affine_form
from toolchain.ops.elementwise.common import (
    Int64,
    Line,
    broadcast,
    overlaps_same_shape,
    scalar_constant,
    table_of,
)


def unary_kernel(
    op: kit.AnyOperator,
    function: Callable[[Int64], Int64],
    line: Line | None = None,
    operand: int = 0,
) -> kit.Kernel:
    """The kernel of a function of one 8-bit operand: a straight line if it is one, else a table.

    `line` is the line that an int8 function may equal; equality is proved for all 256 inputs. The
    kernel reads input `operand` and may write in place. A table is in flash.
    """
    x, y = op.input(operand), op.y
    if line is not None and x.dtype is y.dtype is kit.DType.INT8:
        low, high = line.low, line.high
        form = affine_form(function(INT8_LEVELS), (line.slope,), line.offset, low, high)
        if form is not None:
            params = {
                "factor": form.factors[0],
                "bias": form.bias,
                "shift": form.shift,
                "min": low,
                "max": high,
            }
            arguments = {"params": kit.Struct("thimble_rescale_params", params)}
            kernel = sized_kernel(op, "thimble_rescale_s8", arguments, operand=operand)
            clamped = (low, high) != (-128, 127)
            return replace(kernel, find_terms=lambda: _unary_terms(x.elements, clamped))
    data = table_of(function, x.dtype, y.dtype)
    table = kit.constant("table", data, f"{op.kind} of every byte")
    kernel = sized_kernel(op, "thimble_lookup_s8", {}, table, operand, "int8_t")
    return replace(kernel, find_terms=lambda: _unary_terms(x.elements, clamped=False))


def byte_kernel(
    op: kit.AnyOperator,
    apply: Callable[..., Int64],
    line: Callable[..., Line | None] = lambda *constant: None,
) -> kit.Kernel | None:
    """The kernel of a function of one int8 operand, or of two of which one is a constant scalar;
    None where both vary.

    `line` gives the straight line that the function may equal; of two operands, that of operand
    `operand`, the other being `value`.
    """
    if len(op.inputs) == 1:
        return unary_kernel(op, apply, line())
    scalar = scalar_constant(op)
    if scalar is None:
        return None
    operand, value = scalar

    def of_one(stored: Int64) -> Int64:
        other = np.full_like(stored, value)
        return apply(*((stored, other) if operand == 0 else (other, stored)))

    return unary_kernel(op, of_one, line(operand, value), operand)


def _runs_of_four(size: int, times: int = 1, path: str = "") -> kit.Terms:
    """Terms of a loop that takes four elements at a time, and of the loop over the rest.

    `size` elements are walked `times` times; `path` is appended to the names.
    """
    return {f"four{path}": times * (size // 4), f"rest{path}": times * (size % 4)}


def _unary_terms(size: int, clamped: bool) -> kit.Terms:
    """`thimble_lookup_s8` and `thimble_rescale_s8`."""
    return {"call": 1.0, "clamped": size} if clamped else {"call": 1.0, **_runs_of_four(size)}


def sized_kernel(
    op: kit.AnyOperator,
    function: str,
    arguments: Mapping[str, kit.Argument] = MappingProxyType({}),
    table: kit.Constant | None = None,
    operand: int = 0,
    element: str = "",
) -> kit.Kernel:
    """A call of `function` that takes input `operand`, an output, their size and `arguments`.

    `table` is a constant that the kernel also reads, its last argument; `element` the C type of
    elements, where it is not the tensors'. Where elements grow, the input must lie above the
    output: all of them but the last are read before they are written over.
    """
    x, y = op.input(operand), op.y
    lead_bytes = max(y.dtype.size_bytes - x.dtype.size_bytes, 0) * (x.elements - 1)
    tables: dict[str, kit.Argument] = {} if table is None else {"table": kit.Packed(table.key)}
    call = kit.Call(
        function,
        {
            "input": kit.Input(operand, element=element),
            "output": kit.Output(0, element=element),
            "size": x.elements,
            **arguments,
            **tables,
        },
    )
    return kit.Kernel(
        (call,),
        sized_extents,
        constants=() if table is None else (table,),
        find_overlaps=lambda: (kit.SafeOverlap(operand, lead_bytes=lead_bytes),),
    )


_TABLE_BYTES = MappingProxyType(
    {
        "thimble_lookup_s8": 256,
        "thimble_lookup_s16": 2 * 513,  # 512 steps, and the end of the last one
        "thimble_logistic_table_s16": 2 * 256,
        "thimble_tanh_table_s16": 2 * 256,
    }
)


def sized_extents(touched: kit.Touched) -> kit.Extents:
    """The bytes of a call from `input` to `output`: `size` elements, and a whole `table`."""
    call = touched.call
    operand, table = call.arguments["input"], call.arguments.get("table")
    assert isinstance(operand, kit.Input)
    source, size = touched.inputs[operand.index], call["size"]
    assert source is not None
    return kit.Extents(
        {operand.index: kit.whole(size, source.element_bytes)},
        {0: kit.whole(size, touched.outputs[0].element_bytes)},
        {table.key: _TABLE_BYTES[call.function]} if isinstance(table, kit.Packed) else {},
    )


def requantizing(op: kit.AnyOperator, scaling: tuple[int, int], low: int, high: int) -> kit.Kernel:
    """The kernel that scales elements of one type to another, within bounds."""
    params = {
        "input_offset": -op.x.q.zero_point,
        "multiplier": scaling[0],
        "shift": scaling[1],
        "output_offset": op.y.q.zero_point,
        "min": low,
        "max": high,
    }
    function = f"thimble_requantize_{kit.SUFFIXES[op.x.dtype]}_{kit.SUFFIXES[op.y.dtype]}"
    return sized_kernel(op, function, {"params": kit.Struct("thimble_requantize_params", params)})


def broadcast_kernel(
    op: kit.AnyOperator,
    core: kit.Core,
    function: str,
    params: kit.Struct | None = None,
) -> kit.Kernel:
    """The kernel of two operands that broadcast: loops around runs of elements.

    Along a run each operand moves on or stands still. `function` takes both operands with their
    steps, the output, the size of a run, and `params`.
    """
    last = len(op.inputs) - 1  # an operator with one operand reads it as both
    shape = broadcast(op.x.shape, op.input(last).shape, variables="ijk")
    first, second, output = (shape.moves(place) for place in range(3))
    arguments: dict[str, kit.Argument] = {
        "input_1": kit.Input(0, steps=first),
        "step_1": shape.steps[0],
        "input_2": kit.Input(last, steps=second),
        "step_2": shape.steps[1],
        "output": kit.Output(0, steps=output),
        "size": shape.size,
    }
    if params is not None:
        arguments["params"] = params
    call = kit.Call(function, arguments, shape.around)
    return kit.Kernel(
        (call,),
        broadcast_extents,
        find_overlaps=lambda: overlaps_same_shape(op, core),
        find_terms=lambda: _broadcast_terms(call, core, shape.steps == (1, 1)),
    )


def expressed_kernel(
    op: kit.AnyOperator,
    core: kit.Core,
    expression: str,
    function: str,
    numbers: Mapping[str, float] = MappingProxyType({}),
) -> kit.Kernel:
    """The kernel of one operand, or of two that broadcast: an expression in loops.

    The template `unary_f32`, `binary_s32` and so on prints `expression`. `function` is the C
    function that occurs in it, '' for none. `numbers` are further values that the template needs.
    """
    alone = len(op.inputs) == 1
    kernel = sized_kernel(op, "") if alone else broadcast_kernel(op, core, "")
    (call,) = kernel.calls
    arguments = {**call.arguments, "expression": kit.Symbol(expression), **numbers}
    own = replace(
        call,
        function=function or expression,
        arguments=arguments,
        template=f"{'unary' if alone else 'binary'}_{kit.SUFFIXES[op.y.dtype]}",
        defined=bool(function),
    )
    return replace(kernel, calls=(own,))


_RESULTS = ("out_offset", "out_mult", "out_shift", "out_activation_min", "out_activation_max")


def same_shape_kernel(
    op: kit.AnyOperator,
    core: kit.Core,
    function: str,
    scaling: Mapping[str, kit.Argument],
    results: tuple[int, int, int, int, int],
) -> kit.Kernel:
    """A call of `function`, one of CMSIS-NN's, which takes two runs of as many elements.

    `scaling` are its arguments for the operands; `results` the results' zero point, multiplier,
    shift and bounds. Raises NoKernelError for operands that broadcast.
    """
    shape = broadcast(op.x.shape, op.input(1).shape)
    if shape.loops or shape.steps != (1, 1):
        raise kit.NoKernelError(f"{function} takes operands of one shape")
    arguments: dict[str, kit.Argument] = {
        "input_1_vect": kit.Input(0),
        "input_2_vect": kit.Input(1),
        **scaling,
        "output": kit.Output(0),
        **dict(zip(_RESULTS, results, strict=True)),
        "block_size": shape.size,
    }
    # On Helium and with DSP, four elements at a time.
    words = _runs_of_four(shape.size)
    return kit.Kernel(
        (kit.Call(function, arguments, status=True),),
        _same_shape_extents,
        find_overlaps=lambda: overlaps_same_shape(op, core),
        find_terms=lambda: {"call": 1.0, **words},
    )


def _same_shape_extents(touched: kit.Touched) -> kit.Extents:
    run = kit.whole(touched.call["block_size"], touched.outputs[0].element_bytes)
    return kit.Extents({0: run, 1: run}, {0: run})


def broadcast_extents(touched: kit.Touched) -> kit.Extents:
    """The bytes that a call of `broadcast_kernel` touches."""
    call = touched.call
    output = call.arguments["output"]
    assert isinstance(output, kit.Output)
    read = []
    for number in (1, 2):
        operand, step = call.arguments[f"input_{number}"], call[f"step_{number}"]
        assert isinstance(operand, kit.Input)
        pointer = touched.inputs[operand.index]
        assert pointer is not None
        read.append((operand.index, _stepped(call, operand, step, pointer.element_bytes)))
    width = touched.outputs[0].element_bytes
    return kit.Extents(kit.joined(read), {0: _stepped(call, output, 1, width)})


def _stepped(call: kit.Call, pointer: kit.Input | kit.Output, step: int, width: int) -> kit.Extent:
    """An operand whose pointer the loops move on, and the kernel by `step` elements."""
    steps = dict(pointer.steps)
    last, count = (call["size"] - 1) * step, call["size"] if step else 1
    for loop in call.loops:
        last += (loop.count - 1) * steps.get(loop.variable, 0)
        count *= loop.count if steps.get(loop.variable) else 1
    return kit.Extent(0, (last + 1) * width, touched=count * width)


def _broadcast_terms(call: kit.Call, core: kit.Core, dense: bool) -> kit.Terms:
    """A call for each run that both operands walk."""
    calls, size = math.prod(loop.count for loop in call.loops), call["size"]
    terms: kit.Terms = {"call": 1.0, "run": calls}
    if not dense or call.find("params.negative_bias") is None:
        return {**terms, "element": calls * size}
    if core.mve:
        return {**terms, "vector": calls * -(-size // 4)}
    if (call["params.min"], call["params.max"]) != (-128, 127):
        return {**terms, "element": calls * size}
    one_bias = call["params.negative_bias"] == 0 and call.get("params.rounding") == 0
    return {**terms, **_runs_of_four(size, calls, " of one bias" if one_bias else "")}
