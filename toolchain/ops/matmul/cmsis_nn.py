"""CMSIS-NN's fully connected layers: their calls, the bytes these touch, and cost terms."""

from __future__ import annotations

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.arithmetic.fixed_point import check_sums, quantize_multiplier
from toolchain.ops.cmsis_structs import context, dims, factor, limits
from toolchain.ops.convolution.packing import folded_bias, sums_of
from toolchain.ops.extents import Extents, whole, widths
from toolchain.ops.kernel import (
    NULL,
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    Packed,
    Struct,
    Terms,
    Touched,
    constant,
)
from toolchain.ops.preference import NoKernelError, require_int32
from toolchain.ops.readers import int16
from toolchain.ops.weighted import BIAS, INPUT, WEIGHTS, bias_of, constant_of

_IN_SUMS = "The buffer holds bias and input offset of each unit, which the kernel adds once."
_TWICE = "rounds each sum twice; LiteRT once, in double precision"


def fully_connected(op: Op, graph: Graph, activation: Activation, core: Core) -> Kernel:
    """`arm_fully_connected_s8`. On Helium it adds a sum for each unit times the input's offset.

    Since 7.0.0 it adds that sum as it is, and reads no bias. With an offset of 1, no bias, and the
    bias and offset in the sums, all releases compute the same.

    Raises NoKernelError for a scale of each unit, and for weights that are computed at run time or
    have a zero point.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    if not weights.is_constant or any(weights.q.zero_points):
        raise NoKernelError("arm_fully_connected_s8 takes constant weights with zero point 0")
    if len(weights.q.scales) > 1:
        raise NoKernelError("arm_fully_connected_s8 takes one scale for all units")
    filters = constant_of(weights).astype(np.int8, copy=False)
    units = len(filters)
    multiplier, shift = quantize_multiplier(x.q.scale * weights.q.scale / y.q.scale)
    bias = bias_of(op, graph, units)
    sums = sums_of(bias, filters, x.q.zero_point, partial=True)
    check_sums(sums.lowest, sums.highest, multiplier, shift, y.q.zero_point)
    require_int32(sums.largest)
    folded = folded_bias(bias, filters, x.q.zero_point)
    has_bias = len(op.inputs) > BIAS and not core.mve
    arguments = _arguments(
        op,
        graph,
        activation,
        buffer=context(4 * units, kept="sums") if core.mve else context(0),
        input_offset=1 if core.mve else -x.q.zero_point,
        factor=factor(multiplier, shift),
        bias=Input(BIAS) if has_bias else NULL,
    )
    note = _IN_SUMS if core.mve else ""
    call = Call("arm_fully_connected_s8", arguments, status=True, note=note)
    return Kernel(
        (call,),
        _extents,
        constants=(constant("sums", folded, "bias and offset of each unit"),) if core.mve else (),
        find_terms=lambda: _terms(call, core),
        inexact=_TWICE,
    )


def fully_connected_s16(op: Op, graph: Graph, activation: Activation, core: Core) -> Kernel:
    """`arm_fully_connected_s16`.

    Raises NoKernelError for a scale of each unit, and where a sum might overrun it.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    if len(weights.q.scales) > 1:
        raise NoKernelError("arm_fully_connected_s16 takes one scale for all units")
    filters, real = constant_of(weights), x.q.scale * weights.q.scale / y.q.scale
    bias = int16.bias_of(op, graph, BIAS, len(filters))
    largest = int16.largest_sums(filters.astype(np.int64), bias)
    if not int16.held_by_cmsis_nn(largest, np.full(len(filters), real)):
        raise NoKernelError("arm_fully_connected_s16 does not hold the sums")
    arguments = _arguments(
        op,
        graph,
        activation,
        buffer=context(0),
        input_offset=0,
        factor=factor(*quantize_multiplier(real)),
        bias=Packed("bias"),
    )
    call = Call("arm_fully_connected_s16", arguments, status=True)
    return Kernel(
        (call,),
        _extents,
        constants=(constant("bias", bias, "int64"),),
        inexact="keeps 16 bits of the factor of the sums, LiteRT all",
    )


def _arguments(
    op: Op,
    graph: Graph,
    activation: Activation,
    *,
    buffer: Struct,
    input_offset: int,
    factor: Struct,
    bias: Argument,
) -> dict[str, Argument]:
    x, y = graph.input(op, INPUT), graph.output(op)
    units, depth = graph.input(op, WEIGHTS).shape
    rows = x.elements // depth
    params: dict[str, Argument] = {
        "input_offset": input_offset,
        "filter_offset": 0,
        "output_offset": y.q.zero_point,
        "activation": limits(*clamp_range(activation, y)),
    }
    return {
        "ctx": buffer,
        "fc_params": Struct("cmsis_nn_fc_params", params),
        "quant_params": factor,
        "input_dims": dims(n=rows, c=depth),
        "input": Input(INPUT),
        "filter_dims": dims(n=depth, c=units),
        "kernel": Input(WEIGHTS),
        "bias_dims": dims(c=units),
        "bias": bias,
        "output_dims": dims(n=rows, c=units),
        "output": Output(0),
    }


def _extents(touched: Touched) -> Extents:
    call, (width, _) = touched.call, widths(touched.call.function)
    rows, depth, units = call["input_dims.n"], call["filter_dims.n"], call["output_dims.c"]
    read = {INPUT: whole(rows * depth, width), WEIGHTS: whole(units * depth)}
    if isinstance(call.find("bias"), Input):
        read[BIAS] = whole(units, 4)
    sums = {"sums": 4 * units} if isinstance(call.find("ctx.buf"), Packed) else {}
    bias = {"bias": 8 * units} if isinstance(call.find("bias"), Packed) else {}
    return Extents(read, {0: whole(rows * units, width)}, sums | bias)


def _terms(call: Call, core: Core) -> Terms:
    """`arm_nn_vec_mat_mult_t_s8` for each row: four units at a time on Helium, two with DSP, three
    elsewhere."""
    rows, depth, units = call["input_dims.n"], call["filter_dims.n"], call["output_dims.c"]
    together, width = (4, 16) if core.mve else (2, 4) if core.dsp else (3, 1)
    blocks, lone = rows * (units // together), rows * (units % together)
    runs = -(-depth // width) if core.mve else depth // width
    rest = 0 if core.mve else depth % width
    return {
        "call": 1.0,
        "row": rows,
        "block": blocks,
        "block run": blocks * runs,
        "block rest": blocks * rest,
        "lone unit": lone,
        "lone run": lone * runs,
        "lone rest": lone * rest,
    }
