"""SVDF of floats with any activation that is a clamp: with float filters (LiteRT `EvalFloatSVDF`)
or int8 ones (`EvalHybridSVDF`).

Where filters are int8, the inputs of each image are quantised, products with the feature filters
are scaled in float32, and time filters are dequantised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.arithmetic.lane_sums import lane_sum
from toolchain.ops.hybrid.kernels import Images, images_call, images_extents, product_constants
from toolchain.ops.hybrid.sums import (
    SYMMETRIC,
    centred,
    check_floats,
    in_float32,
    random_range,
    range_asked,
)
from toolchain.ops.readers.float32 import check_float_node, larger, range_of, smaller
from toolchain.ops.recurrent import svdf_layer as layer
from toolchain.ops.recurrent.samples import in_float, with_attributes, with_int8_weights
from toolchain.ops.recurrent.svdf_integer import sample_s16
from toolchain.ops.recurrent.svdf_layer import Sizes, Svdf

_ACTIVATIONS = (
    kit.Activation.RELU,
    kit.Activation.NONE,
    kit.Activation.RELU6,
    kit.Activation.RELU_N1_TO_1,
)


@dataclass(frozen=True)
class FloatSvdf(Svdf):
    """`range`: how inputs are quantised where filters are int8, SYMMETRIC or ASYMMETRIC; None where
    they are float32.
    """

    activation: kit.Activation = kit.Activation.RELU
    range: Range | None = None


def _filtered(op: kit.Operator[FloatSvdf], inputs: kit.Inputs) -> tuple[kit.Float32, kit.Float32]:
    """The newest value of each filter's state, [batches, filters], and the time filters."""
    x, features, time = (
        inputs[i].astype(np.float32) for i in (layer.INPUT, layer.FEATURES, layer.TIME)
    )
    chosen = op.attributes.range
    if chosen is None:
        return lane_sum(features * x[:, None, :]), time
    stored, steps = centred(x, chosen)
    sums = in_float32(stored @ inputs[layer.FEATURES].astype(np.int64).T)
    scale, time_scale = (np.float32(op.input(i).q.scale) for i in (layer.FEATURES, layer.TIME))
    return sums * (scale * steps[:, None]), time * time_scale


def _reference(op: kit.Operator[FloatSvdf], inputs: kit.Inputs) -> kit.Arrays:
    newest, time = _filtered(op, inputs)
    kept = layer.moved(inputs[layer.STATE].astype(np.float32), newest, time.shape[1])
    total = lane_sum(lane_sum(time * kept).reshape(*op.y.shape, op.attributes.rank))
    if op.given(layer.BIAS):
        total = total + inputs[layer.BIAS].astype(np.float32)
    if op.attributes.activation is not kit.Activation.NONE:  # NaN becomes the lower bound
        low, high = (np.float32(bound) for bound in range_of(op.attributes.activation))
        total = smaller(larger(total, low), high)
    return total, kept.reshape(inputs[layer.STATE].shape)


def _select(op: kit.Operator[FloatSvdf], core: kit.Core) -> kit.Kernel:
    low, high = range_of(op.attributes.activation)
    clamp: dict[str, kit.Argument] = {
        "clamped": int(op.attributes.activation is not kit.Activation.NONE),
        "min": low,
        "max": high,
    }
    chosen, sizes = op.attributes.range, layer.sizes_of(op)
    if chosen is not None:
        return _hybrid_kernel(op, core, chosen, clamp)
    params = kit.Struct("thimble_svdf_f32_params", {**vars(sizes), **clamp})
    call = kit.Call("thimble_svdf_f32", {"params": params, **layer.OPERANDS})
    return kit.Kernel((call,), lambda touched: layer.extents(touched, 4, 4, 4))


def _hybrid_kernel(
    op: kit.Operator[FloatSvdf], core: kit.Core, chosen: Range, clamp: dict[str, kit.Argument]
) -> kit.Kernel:
    """A call for the newest values, which lie in scratch, and one for the rest."""
    features, sizes = op.input(layer.FEATURES), layer.sizes_of(op)
    newest_bytes = 4 * sizes.batches * sizes.filters
    newest, stored = kit.Scratch(element="float"), kit.Scratch(newest_bytes)
    images = Images(sizes.batches, chosen, newest, kit.Input(layer.INPUT), stored)
    params: dict[str, kit.Argument] = {
        "batches": sizes.batches,
        "units": sizes.units,
        "rank": sizes.rank,
        "memory": sizes.memory,
        **clamp,
        "time_scale": op.input(layer.TIME).q.scale,
    }
    arguments: dict[str, kit.Argument] = {
        "params": kit.Struct("thimble_svdf_hybrid_params", params),
        "newest": newest,
        "time": kit.Input(layer.TIME),
        "bias": kit.Input(layer.BIAS),
        "state": kit.Output(1),
        "output": kit.Output(0),
    }
    return kit.Kernel(
        (images_call(op, features, core, images), kit.Call("thimble_svdf_hybrid_s8", arguments)),
        _hybrid_extents,
        product_constants(features, core),
        scratch_bytes=newest_bytes + sizes.depth,
    )


def _hybrid_extents(touched: kit.Touched) -> kit.Extents:
    products, call = touched.calls
    first = images_extents(replace(touched, calls=(products,)))
    batches, units, rank, memory = call.params("batches", "units", "rank", "memory")
    sizes = Sizes(batches, 0, units, rank, memory)
    rest = sizes.extents(touched, 4, 1, 4)
    read = {
        index: extent for index, extent in rest.inputs.items() if index in (layer.TIME, layer.BIAS)
    }
    scratch = max(first.scratch, 4 * batches * sizes.filters)
    return replace(first, inputs={**first.inputs, **read}, outputs=rest.outputs, scratch=scratch)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    layer.check_present(node)
    features, chosen = node.inputs[layer.FEATURES], None
    assert features is not None
    if features.dtype is kit.DType.INT8:
        _check_int8_filters(node)
        chosen = range_asked(node)
    else:
        check_float_node(node)
        layer.check_constant(node)
    name = node.options.fusedActivationFunction
    if name not in {activation.name for activation in _ACTIVATIONS}:
        raise node.unsupported(f"its activation is {name}", "apply it in an operator of its own")
    attributes = FloatSvdf(int(node.options.rank), kit.Activation[name], chosen)
    return kit.ReadOp(attributes, (0, 1, 2, 3, 4), states=(layer.STATE,))


def _check_int8_filters(node: kit.TfliteNode) -> None:
    check_floats(node, (layer.INPUT, layer.BIAS, layer.STATE))
    layer.check_constant(node)
    for filters in (node.inputs[layer.FEATURES], node.inputs[layer.TIME]):
        assert filters is not None
        if filters.dtype is not kit.DType.INT8 or filters.quantisation is None:
            raise node.unsupported(
                f"its filters {filters.name!r} are not int8 with a scale, beside int8 ones",
                SYMMETRIC,
            )
        if filters.q.per_channel or filters.q.zero_point:
            raise node.unsupported("its filters are not per tensor and symmetric", SYMMETRIC)


def _write(op: kit.Operator[FloatSvdf]) -> kit.WrittenOp:
    options = {"rank": op.attributes.rank, "fusedActivationFunction": op.attributes.activation.name}
    if op.attributes.range is None:
        return kit.WrittenOp("SVDF", "SVDFOptions", options)
    asymmetric = op.attributes.range is Range.ASYMMETRIC
    options |= {"asymmetricQuantizeInputs": asymmetric}
    return kit.WrittenOp("SVDF", "SVDFOptions", options, version=4)


def _drawn(rng: np.random.Generator) -> tuple[kit.Graph, FloatSvdf]:
    """A layer with float filters but for its attributes, and these."""
    graph = in_float(sample_s16(rng), rng)
    attributes = graph.ops[0].attributes
    assert isinstance(attributes, Svdf)
    activation = _ACTIVATIONS[int(rng.integers(len(_ACTIVATIONS)))]
    return graph, FloatSvdf(attributes.rank, activation)


def _sample(rng: np.random.Generator) -> kit.Graph:
    return with_attributes(*_drawn(rng))


def _hybrid_sample(rng: np.random.Generator) -> kit.Graph:
    graph, attributes = _drawn(rng)
    filters = [graph.ops[0].inputs[index] for index in (layer.FEATURES, layer.TIME)]
    graph = with_int8_weights(graph, filters, 0.02, rng)
    return with_attributes(graph, replace(attributes, range=random_range(rng)))


SVDF_F32 = kit.Form(
    kind="svdf",
    attributes=FloatSvdf,
    infer=layer.infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=layer.macs,
    tflite=kit.TfliteBinding(("SVDF",), _read, _write),
    dtype=kit.DType.FLOAT32,
    operand=layer.STATE,
    limits="float32; RELU, RELU6, [-1, 1] or none; state is kept from run to run",
)
SVDF_HYBRID = replace(
    SVDF_F32,
    sample=_hybrid_sample,
    weights=kit.DType.INT8,
    name="hybrid",
    limits="float32 with constant int8 filters, as LiteRT's hybrid kernel",
)
