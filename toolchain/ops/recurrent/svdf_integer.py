"""SVDF of int8 with an int16 state, and with an int8 state, as converters of 2020 wrote it.

Arithmetic: LiteRT `reference_ops::EvalIntegerSVDF`, which clamps only to the types' ranges and
scales with two roundings, as CMSIS-NN's kernel does.

An int8 state has a zero point. LiteRT reads its bytes as int16, beyond the end, so the reference is
TFLM's `EvalIntegerSvdfReference<int8_t>` in the tflite-micro wheel: a new state is clamped before
its zero point is added, and wraps if the sum overflows int8. TFLM sources of late 2026 add before
they clamp; results differ only if a state saturates.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.hybrid.sums import SYMMETRIC
from toolchain.ops.recurrent import svdf_layer as layer
from toolchain.ops.recurrent.samples import random_q
from toolchain.ops.recurrent.sequence import check_types
from toolchain.ops.recurrent.svdf_layer import Sizes, Svdf

_FARTHEST = -31
"""The right shift for which CMSIS-NN computes 1 << 31; it takes every sum below 2**30 to 0."""
Int64 = NDArray[np.int64]
_OWN = {kit.DType.INT8: ("thimble_svdf_s8", 1), kit.DType.INT16: ("thimble_svdf_s16_s8", 2)}
"""Thimble's function by the type of the state, and the bytes of an element of state and time
filters."""

Factors = tuple[tuple[int, int], tuple[int, int]]


def _factors(op: kit.Operator[Svdf]) -> Factors:
    """The factors of state and output, in float32 as in LiteRT's `Prepare`."""
    x, features, time, state = (
        np.float32(op.input(i).q.scale)
        for i in (layer.INPUT, layer.FEATURES, layer.TIME, layer.STATE)
    )
    out = state * time / np.float32(op.y.q.scale)
    return kit.quantize_multiplier(float(x * features / state)), kit.quantize_multiplier(float(out))


def _checked_reach(op: kit.Operator[Svdf], factors: Factors) -> int:
    """The magnitude that no sum exceeds before it wraps, also on the way there. Raises ScaleError
    as `check_sums` does.
    """
    x, y = op.input(layer.INPUT), op.y
    features, time = (
        kit.constant_of(op.input(i)).astype(np.int64) for i in (layer.FEATURES, layer.TIME)
    )
    into = _reach(features, -128 - x.q.zero_point, 127 - x.q.zero_point)
    kit.check_sums(*into, *factors[0], 0)
    low, high = _kept(op, into, factors[0])
    units = (y.shape[1], -1)
    least, greatest = (end.reshape(units).sum(axis=1) for end in _reach(time, low, high))
    most = np.abs(time).reshape(units).sum(axis=1) * max(-low, high)
    if op.given(layer.BIAS):
        bias = kit.constant_of(op.input(layer.BIAS)).astype(np.int64)
        least, greatest, most = least + bias, greatest + bias, most + np.abs(bias)
    kit.check_sums(least, greatest, *factors[1], y.q.zero_point)
    largest_input = max(128 + x.q.zero_point, 127 - x.q.zero_point)
    return max(int(most.max()), largest_input * int(np.abs(features).sum(axis=1).max()))


def _reach(filters: Int64, low: int, high: int) -> tuple[Int64, Int64]:
    """The least and greatest sum of each filter's products with values from `low` to `high`."""
    ends = filters * low, filters * high
    return np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)


def _kept(
    op: kit.Operator[Svdf], sums: tuple[Int64, Int64], factor: tuple[int, int]
) -> tuple[int, int]:
    """The least and greatest value of the state, less its zero point: what it begins with, and what
    follows.
    """
    state = op.input(layer.STATE)
    info, zero_point = np.iinfo(state.dtype.value), state.q.zero_point
    begins = [kept.initial for kept in op.graph.states if kept.input == state.name]
    if not begins or zero_point:  # that of an int8 state is added with wrap
        return int(info.min) - zero_point, int(info.max) - zero_point
    ends = (kit.multiply_by_quantized_multiplier(end, *factor) for end in kit.held_in_int32(*sums))
    low, high = (end.clip(info.min, info.max) for end in ends)
    return min(int(low.min()), int(begins[0].min())), max(int(high.max()), int(begins[0].max()))


def _reference(op: kit.Operator[Svdf], inputs: kit.Inputs) -> kit.Arrays:
    x, y, state = op.input(layer.INPUT), op.y, op.input(layer.STATE)
    into, out = _factors(op)
    features, time = (inputs[i].astype(np.int64) for i in (layer.FEATURES, layer.TIME))
    sums = (inputs[layer.INPUT].astype(np.int64) - x.q.zero_point) @ features.T
    zero, info = state.q.zero_point, np.iinfo(state.dtype.value)
    newest = kit.multiply_by_quantized_multiplier(sums, *into).clip(info.min, info.max)
    newest = (newest + zero).astype(state.dtype.numpy).astype(np.int64)  # wraps in int8
    kept = layer.moved(inputs[layer.STATE].astype(np.int64), newest, time.shape[1])
    total = ((kept - zero) * time).sum(axis=2).reshape(*y.shape, op.attributes.rank).sum(axis=2)
    if op.given(layer.BIAS):
        total = total + inputs[layer.BIAS].astype(np.int64)
    result = kit.multiply_by_quantized_multiplier(total, *out) + y.q.zero_point
    return (
        result.clip(-128, 127).astype(np.int8),
        kept.reshape(state.shape).astype(state.dtype.numpy),
    )


def _select(op: kit.Operator[Svdf], core: kit.Core) -> kit.Kernel:
    """CMSIS-NN's kernel where it is defined, else Thimble's."""
    try:
        return _cmsis_nn(op, core)
    except kit.NoKernelError:
        return _own(op, core)


def _cmsis_nn(op: kit.Operator[Svdf], core: kit.Core) -> kit.Kernel:
    """CMSIS-NN's kernel, which does not read the dimensions of state, bias and output.

    Raises NoKernelError where its sums may wrap or a right shift of 31 matters (it computes 1 << 31
    for it, which is undefined, too).
    """
    x, y, time = op.input(layer.INPUT), op.y, op.input(layer.TIME)
    batches, filters, units = x.shape[0], op.input(layer.FEATURES).shape[0], y.shape[1]
    factors = _factors(op)
    largest = _checked_reach(op, factors)
    kit.require_int32(np.array([largest]))
    if largest >= 1 << 30 and any(shift == _FARTHEST for _, shift in factors):
        raise kit.NoKernelError(f"it does not shift sums of up to {largest:,} right by 31")
    into, out = ((0, 0) if shift == _FARTHEST else (factor, shift) for factor, shift in factors)
    feature_bytes, unit_bytes = 4 * batches * filters, 4 * batches * units
    params: dict[str, kit.Argument] = {
        "rank": op.attributes.rank,
        "input_offset": x.q.zero_point,
        "output_offset": y.q.zero_point,
        "input_activation": _range(kit.DType.INT16),
        "output_activation": _range(kit.DType.INT8),
    }
    arguments: dict[str, kit.Argument] = {
        "input_ctx": cmsis_structs.context(feature_bytes),
        "output_ctx": cmsis_structs.context(unit_bytes, feature_bytes),
        "svdf_params": kit.Struct("cmsis_nn_svdf_params", params),
        "input_quant_params": cmsis_structs.factor(*into),
        "output_quant_params": cmsis_structs.factor(*out),
        "input_dims": _dims(batches, x.shape[1]),
        "input_data": kit.Input(layer.INPUT),
        "state_dims": _dims(batches, filters * time.shape[1]),
        "state_data": kit.Output(1),
        "weights_feature_dims": _dims(filters, x.shape[1]),
        "weights_feature_data": kit.Input(layer.FEATURES),
        "weights_time_dims": _dims(filters, time.shape[1]),
        "weights_time_data": kit.Input(layer.TIME),
        "bias_dims": _dims(1, units),
        "bias_data": kit.Input(layer.BIAS),
        "output_dims": _dims(batches, units),
        "output_data": kit.Output(0),
    }
    together = 2 if core.dsp and not core.mve else 3
    return kit.Kernel(
        (kit.Call("arm_svdf_state_s16_s8", arguments, status=True),),
        _cmsis_nn_extents,
        scratch_bytes=feature_bytes + unit_bytes,
        find_terms=lambda: layer.sizes_of(op).terms(core, together),
    )


def _own(op: kit.Operator[Svdf], core: kit.Core) -> kit.Kernel:
    """Thimble's kernel, whose sums wrap. Raises ScaleError as `check_sums` does."""
    (into_multiplier, into_shift), (out_multiplier, out_shift) = factors = _factors(op)
    _checked_reach(op, factors)
    state = op.input(layer.STATE)
    members: dict[str, kit.Argument] = {
        **vars(layer.sizes_of(op)),
        "input_zero_point": op.input(layer.INPUT).q.zero_point,
        "state_zero_point": state.q.zero_point,
        "output_zero_point": op.y.q.zero_point,
        "into_multiplier": into_multiplier,
        "into_shift": into_shift,
        "out_multiplier": out_multiplier,
        "out_shift": out_shift,
    }
    function, state_bytes = _OWN[state.dtype]
    params = kit.Struct("thimble_svdf_params", members)
    call = kit.Call(function, {"params": params, **layer.OPERANDS})
    return kit.Kernel(
        (call,),
        lambda touched: layer.extents(touched, 1, state_bytes, state_bytes),
        find_terms=lambda: layer.sizes_of(op).terms(core),
    )


def _no_cmsis_nn(op: kit.Operator[Svdf], core: kit.Core) -> kit.Kernel:
    raise kit.NoKernelError("arm_svdf_s8 is not called: it knows no zero point of the state")


def _range(dtype: kit.DType) -> kit.Struct:
    info = np.iinfo(dtype.value)
    return cmsis_structs.limits(int(info.min), int(info.max))


def _dims(rows: int, columns: int) -> kit.Struct:
    return cmsis_structs.dims(n=rows, h=columns)


def _cmsis_nn_extents(touched: kit.Touched) -> kit.Extents:
    """The units follow from filters and rank; both sums lie in scratch."""
    call = touched.call
    batches, depth = call["input_dims.n"], call["input_dims.h"]
    filters, memory = call["weights_feature_dims.n"], call["weights_time_dims.h"]
    rank = call["svdf_params.rank"]
    units = filters // rank if rank else 0
    sizes = Sizes(batches, depth, units, rank, memory)
    second = call.find("output_ctx.buf")
    assert isinstance(second, kit.Scratch)
    return replace(
        sizes.extents(touched, 1, 2, 2),
        scratch=max(4 * batches * filters, second.at_bytes + 4 * batches * units),
    )


def _read_s16(node: kit.TfliteNode) -> kit.ReadOp:
    state = node.inputs[layer.STATE] if len(node.inputs) == 5 else None
    if state is not None and (state.dtype is not kit.DType.INT16 or state.q.zero_point):
        raise node.unsupported(
            f"its state is {state.dtype.value}, and LiteRT computes with a symmetric int16 state",
            "convert the float model with converter.optimizations = [tf.lite.Optimize.DEFAULT] and "
            "a representative_dataset, which makes the state a symmetric int16",
        )
    return _read(node, kit.DType.INT16)


def _read_s8(node: kit.TfliteNode) -> kit.ReadOp:
    state = node.inputs[layer.STATE] if len(node.inputs) == 5 else None
    if state is not None and state.q.per_channel:
        raise node.unsupported(
            f"tensor {state.name!r} has not one scale and zero point", "quantise it per tensor"
        )
    return _read(node, kit.DType.INT8)


def _read(node: kit.TfliteNode, time_dtype: kit.DType) -> kit.ReadOp:
    """A layer whose time filters and state have this type."""
    layer.check_present(node)
    bytes_of = dict.fromkeys((layer.INPUT, layer.FEATURES), kit.DType.INT8)
    check_types(node, {**bytes_of, layer.TIME: time_dtype, layer.BIAS: kit.DType.INT32})
    layer.check_constant(node)
    filters = [
        tensor for i in (layer.FEATURES, layer.TIME) if (tensor := node.inputs[i]) is not None
    ]
    if any(t.q.per_channel or t.q.zero_point for t in filters):
        raise node.unsupported("its filters are not per tensor and symmetric", SYMMETRIC)
    if node.options.fusedActivationFunction != "RELU":
        raise node.unsupported(
            f"its activation is {node.options.fusedActivationFunction}, and LiteRT computes RELU "
            "whatever the file says",
            "train it with ReLU, or leave the model in float",
        )
    return kit.ReadOp(Svdf(int(node.options.rank)), (0, 1, 2, 3, 4), states=(layer.STATE,))


def _write(op: kit.Operator[Svdf]) -> kit.WrittenOp:
    options = {"rank": op.attributes.rank, "fusedActivationFunction": "RELU"}
    return kit.WrittenOp("SVDF", "SVDFOptions", options)


def sample_s16(rng: np.random.Generator) -> kit.Graph:
    """A random layer with an int16 state, and its state."""
    batches, depth, units, rank, memory = (int(n) for n in rng.integers(1, (3, 40, 8, 3, 11)))
    filters = units * rank

    features = rng.integers(-127, 128, (filters, depth)).astype(np.int8)
    time = rng.integers(-3000, 3001, (filters, memory)).astype(np.int16)
    bias = rng.integers(-5000, 5000, units).astype(np.int32)
    state_q, time_q = random_q(rng, -11, -8), random_q(rng, -14, -11)
    state = kit.Tensor("state", (batches, memory * filters), kit.DType.INT16, state_q)
    y_q = random_q(rng, -4, 0, int(rng.integers(-128, 128)))
    bias_q = kit.Quantisation((float(np.float32(state_q.scale) * np.float32(time_q.scale)),), (0,))
    x_q = random_q(rng, -7, -4, int(rng.integers(-128, 128)))
    inputs = [
        kit.Tensor("x", (batches, depth), kit.DType.INT8, x_q),
        kit.constant_sample("features", features, random_q(rng, -9, -6)),
        kit.constant_sample("time", time, time_q),
        kit.constant_sample("bias", bias, bias_q) if rng.random() < 0.8 else None,
        state,
    ]
    first = kit.State("state", "state_next", np.zeros(state.shape, np.int16))
    outputs = ("y", "state_next")
    return kit.sample("svdf", Svdf(rank), *inputs, q=y_q, outputs=outputs, states=[first])


def _sample_s8(rng: np.random.Generator) -> kit.Graph:
    """An int16 layer with scales of its time filters and of its state to match int8."""
    wide = sample_s16(rng)
    (op,) = wide.ops
    x, features = wide.input(op, layer.INPUT), wide.input(op, layer.FEATURES)
    newest = x.q.scale * features.q.scale * 4000.0 * 2.0 ** rng.uniform(-2, 1)
    state_q = _quantisation(newest / 128, int(rng.integers(-128, 128)))
    time_q = _quantisation(wide.input(op, layer.TIME).q.scale * 64, 0)
    tensors = []
    for tensor in wide.tensors.values():
        if tensor.name in ("state", "state_next"):
            tensor = replace(tensor, dtype=kit.DType.INT8, quantisation=state_q)
        if tensor.name == "time":
            data: kit.Array = rng.integers(-127, 128, tensor.shape).astype(np.int8)
            tensor = replace(tensor, dtype=kit.DType.INT8, quantisation=time_q, constant=data)
        if tensor.name == "bias":
            tensor = replace(tensor, quantisation=_quantisation(state_q.scale * time_q.scale, 0))
        if tensor.name == "y":
            memory = wide.input(op, layer.TIME).shape[1]
            scale = state_q.scale * time_q.scale * 30 * memory * 2.0 ** rng.uniform(-2, 1)
            tensor = replace(tensor, quantisation=_quantisation(scale, tensor.q.zero_point))
        tensors.append(tensor)
    initial = np.full(wide.states[0].initial.shape, state_q.zero_point, np.int8)
    kept = kit.State(wide.states[0].input, wide.states[0].output, initial)
    return kit.Graph.build("sample", tensors, [op], wide.inputs, wide.outputs, [kept])


def _quantisation(scale: float, zero_point: int) -> kit.Quantisation:
    return kit.Quantisation((float(np.float32(scale)),), (zero_point,))


SVDF_S16 = kit.Form(
    kind="svdf",
    attributes=Svdf,
    infer=layer.infer,
    reference=_reference,
    select=kit.Choice(_select, _cmsis_nn, _own),
    sample=sample_s16,
    macs=layer.macs,
    tflite=kit.TfliteBinding(("SVDF",), _read_s16, _write),
    dtype=kit.DType.INT16,
    operand=layer.STATE,
    types=frozenset({kit.DType.INT8, kit.DType.INT16}),
    limits="int8 with an int16 state; RELU; state is kept from run to run",
)
SVDF_S8 = replace(
    SVDF_S16,
    select=kit.Choice(_own, _no_cmsis_nn),
    sample=_sample_s8,
    tflite=kit.TfliteBinding(("SVDF",), _read_s8, _write),
    dtype=kit.DType.INT8,
    types=frozenset(),
    limits="int8 with an int8 state of any zero point; RELU; state is kept from run to run",
)
