"""Kernels of operators with one or two operands: their calls, the bytes these touch, cost terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op
from toolchain.ops.arithmetic.affine_form import INT8_LEVELS, affine_form
from toolchain.ops.elementwise.common import (
    Int64,
    Line,
    broadcast,
    overlaps_same_shape,
    table_of,
)
from toolchain.ops.extents import Extent, Extents, joined, whole, widths
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Loop,
    Output,
    Packed,
    SafeOverlap,
    Struct,
    Symbol,
    Terms,
    Touched,
    constant,
)
from toolchain.ops.preference import NoKernelError
from toolchain.ops.terms import runs_of_four


def unary_kernel(
    op: Op,
    graph: Graph,
    function: Callable[[Int64], Int64],
    line: Line | None = None,
    operand: int = 0,
) -> Kernel:
    """The kernel of a function of one 8-bit operand: a straight line if it is one, else a table.

    `line` is the line that an int8 function may equal; equality is proved for all 256 inputs. The
    kernel reads input `operand` and may write in place. A table is in flash.
    """
    x, y = graph.input(op, operand), graph.output(op)
    if line is not None and x.dtype is y.dtype is DType.INT8:
        low, high = line.low, line.high
        form = affine_form(function(INT8_LEVELS), (line.slope,), line.offset, low, high)
        if form is not None:
            params = Struct(
                "thimble_rescale_params",
                {
                    "factor": form.factors[0],
                    "bias": form.bias,
                    "shift": form.shift,
                    "min": low,
                    "max": high,
                },
            )
            arguments: dict[str, Argument] = {
                "input": Input(operand),
                "output": Output(0),
                "size": x.elements,
                "params": params,
            }
            call = Call("thimble_rescale_s8", arguments)
            clamped = (low, high) != (-128, 127)
            return Kernel(
                (call,),
                _unary_extents,
                find_overlaps=lambda: (SafeOverlap(operand),),
                find_terms=lambda: _unary_terms(x.elements, clamped),
            )
    call = Call(
        "thimble_lookup_s8",
        {
            "input": Input(operand, element="int8_t"),
            "output": Output(0, element="int8_t"),
            "size": x.elements,
            "table": Packed("table"),
        },
    )
    table = table_of(function, x.dtype, y.dtype)
    return Kernel(
        (call,),
        _unary_extents,
        constants=(constant("table", table, f"{op.kind} of every byte"),),
        find_overlaps=lambda: (SafeOverlap(operand),),
        find_terms=lambda: _unary_terms(x.elements, clamped=False),
    )


def _unary_terms(size: int, clamped: bool) -> Terms:
    """`thimble_lookup_s8` and `thimble_rescale_s8`."""
    return {"call": 1.0, "clamped": size} if clamped else {"call": 1.0, **runs_of_four(size)}


def _unary_extents(touched: Touched) -> Extents:
    """One element in, one out; a table is of all bytes."""
    call = touched.call
    source = call.arguments["input"]
    assert isinstance(source, Input)
    table = {"table": 256} if call.function == "thimble_lookup_s8" else {}
    return Extents({source.index: whole(call["size"])}, {0: whole(call["size"])}, table)


def sized_kernel(
    op: Op,
    graph: Graph,
    function: str,
    arguments: Mapping[str, Argument] = MappingProxyType({}),
    table: Constant | None = None,
    lead_bytes: int = 0,
) -> Kernel:
    """A call of `function` that takes an input, an output, their size and `arguments`.

    `table` is a constant that the kernel also reads, its last argument. `lead_bytes`: see
    `SafeOverlap`.
    """
    tables: dict[str, Argument] = {} if table is None else {"table": Packed(table.key)}
    call = Call(
        function,
        {
            "input": Input(0),
            "output": Output(0),
            "size": graph.input(op, 0).elements,
            **arguments,
            **tables,
        },
    )
    return Kernel(
        (call,),
        _sized_extents,
        constants=() if table is None else (table,),
        find_overlaps=lambda: (SafeOverlap(0, lead_bytes=lead_bytes),),
    )


_TABLE_BYTES = MappingProxyType(
    {
        "thimble_lookup_s16": 2 * 513,  # 512 steps, and the end of the last one
        "thimble_logistic_table_s16": 2 * 256,
        "thimble_tanh_table_s16": 2 * 256,
    }
)


def _sized_extents(touched: Touched) -> Extents:
    """One element in, one out, and a whole table."""
    call, source = touched.call, touched.inputs[0]
    assert source is not None
    size, target = call["size"], touched.outputs[0]
    table = call.arguments.get("table")
    return Extents(
        {0: whole(size, source.element_bytes)},
        {0: whole(size, target.element_bytes)},
        {table.key: _TABLE_BYTES[call.function]} if isinstance(table, Packed) else {},
    )


def expressed(
    kernel: Kernel,
    template: str,
    expression: str,
    function: str,
    numbers: Mapping[str, float] = MappingProxyType({}),
) -> Kernel:
    """The kernel with a float32 expression in place of its call, inside the same loops.

    `template` prints `expression`. `function` is the C function that occurs in it, '' for none.
    `numbers` are further values that the template needs.
    """
    (call,) = kernel.calls
    arguments = {**call.arguments, "expression": Symbol(expression), **numbers}
    own = replace(
        call,
        function=function or expression,
        arguments=arguments,
        template=template,
        defined=bool(function),
    )
    return replace(kernel, calls=(own,))


_OPERANDS = ("input_1", "step_1", "input_2", "step_2")


def broadcast_kernel(
    op: Op,
    graph: Graph,
    core: Core,
    function: str,
    params: Struct | None = None,
    names: tuple[str, str, str, str] = _OPERANDS,
) -> Kernel:
    """The kernel of two operands that broadcast: loops around runs of elements.

    Along a run each operand moves on or stands still. `function` takes both operands with their
    steps (named by `names`), the output, the size of a run, and `params`.
    """
    last = len(op.inputs) - 1  # an operator with one operand reads it as both
    shape = broadcast(graph.input(op, 0).shape, graph.input(op, last).shape)
    steps = {
        name: tuple((x.variable, getattr(x, name)) for x in shape.loops if getattr(x, name))
        for name in ("stride_1", "stride_2", "stride_output")
    }
    arguments: dict[str, Argument] = {
        names[0]: Input(0, steps=steps["stride_1"]),
        names[1]: shape.step_1,
        names[2]: Input(last, steps=steps["stride_2"]),
        names[3]: shape.step_2,
        "output": Output(0, steps=steps["stride_output"]),
        "size": shape.size,
    }
    if params is not None:
        arguments["params"] = params
    loops = tuple(Loop(x.variable, x.count) for x in shape.loops)
    call = Call(function, arguments, loops)
    return Kernel(
        (call,),
        broadcast_extents,
        find_overlaps=lambda: overlaps_same_shape(op, graph, core),
        find_terms=lambda: _broadcast_terms(call, core, shape.step_1 == shape.step_2 == 1),
    )


def same_shape_kernel(
    op: Op,
    graph: Graph,
    core: Core,
    function: str,
    scaling: Mapping[str, Argument],
    ending: Mapping[str, Argument],
) -> Kernel:
    """A call of `function`, one of CMSIS-NN's, which takes two runs of as many elements.

    `scaling` and `ending` are its arguments before and after the output. Raises NoKernelError for
    operands that broadcast.
    """
    shape = broadcast(graph.input(op, 0).shape, graph.input(op, 1).shape)
    if shape.loops or (shape.step_1, shape.step_2) != (1, 1):
        raise NoKernelError(f"{function} takes operands of one shape")
    arguments: dict[str, Argument] = {
        "input_1_vect": Input(0),
        "input_2_vect": Input(1),
        **scaling,
        "output": Output(0),
        **ending,
        "block_size": shape.size,
    }
    # On Helium and with DSP, four elements at a time.
    words = runs_of_four(shape.size)
    return Kernel(
        (Call(function, arguments, status=True),),
        _same_shape_extents,
        find_overlaps=lambda: overlaps_same_shape(op, graph, core),
        find_terms=lambda: {"call": 1.0, **words},
    )


def _same_shape_extents(touched: Touched) -> Extents:
    run = whole(touched.call["block_size"], widths(touched.call.function)[0])
    return Extents({0: run, 1: run}, {0: run})


def broadcast_extents(touched: Touched) -> Extents:
    """The bytes that a call of `broadcast_kernel` touches."""
    call = touched.call
    output = call.arguments["output"]
    assert isinstance(output, Output)
    read = []
    names = tuple(call.arguments)
    for name, step in zip(names[:4:2], names[1:4:2], strict=True):
        operand = call.arguments[name]
        assert isinstance(operand, Input)
        pointer = touched.inputs[operand.index]
        assert pointer is not None
        read.append((operand.index, _stepped(call, operand, call[step], pointer.element_bytes)))
    width = touched.outputs[0].element_bytes
    return Extents(joined(read), {0: _stepped(call, output, 1, width)})


def _stepped(call: Call, pointer: Input | Output, step: int, width: int) -> Extent:
    """An operand whose pointer the loops move on, and the kernel by `step` elements."""
    steps = dict(pointer.steps)
    last, count = (call["size"] - 1) * step, call["size"] if step else 1
    for loop in call.loops:
        last += (loop.count - 1) * steps.get(loop.variable, 0)
        count *= loop.count if steps.get(loop.variable) else 1
    return Extent(0, (last + 1) * width, touched=count * width)


def _broadcast_terms(call: Call, core: Core, dense: bool) -> Terms:
    """A call for each run that both operands walk."""
    calls, size = math.prod(loop.count for loop in call.loops), call["size"]
    terms: Terms = {"call": 1.0, "run": calls}
    if not dense or call.find("params.negative_bias") is None:
        return {**terms, "element": calls * size}
    if core.mve:
        return {**terms, "vector": calls * -(-size // 4)}
    if (call["params.min"], call["params.max"]) != (-128, 127):
        return {**terms, "element": calls * size}
    one_bias = call["params.negative_bias"] == 0 and call.get("params.rounding") == 0
    return {**terms, **runs_of_four(size, calls, " of one bias" if one_bias else "")}
