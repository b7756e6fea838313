"""8-bit integers to float: scale * (x - zero_point). TFLite DEQUANTIZE (`Dequantize`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops._axes import elementwise_axes
from toolchain.ops._elementwise import sample_quantisation, sample_shape
from toolchain.ops.spec import (
    Array,
    Lowering,
    OpSpec,
    ReadOp,
    SafeOverlap,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_BYTES = (DType.INT8, DType.UINT8)


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    return (TensorType(graph.input(op, 0).shape, DType.FLOAT32),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    q = graph.input(op, 0).q
    centred = (inputs[0].astype(np.int32) - q.zero_point).astype(np.float32)
    return ((centred * np.float32(q.scale)).reshape(graph.output(op).shape),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    x = graph.input(op, 0)
    if x.dtype not in _BYTES or x.quantisation is None or x.quantisation.per_channel:
        raise UnsupportedError(
            f"dequantize {op.name!r}: tensor {x} is not int8 or uint8 with one scale"
        )
    function = f"thimble_dequantize_{'s8' if x.dtype is DType.INT8 else 'u8'}_f32"
    return Lowering(
        functions=(function,),
        fields={
            "function": function,
            "size": x.elements,
            "scale": np.float32(x.q.scale).item().hex(),
            "zero_point": x.q.zero_point,
        },
    )


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    """Element i is read at byte i and written at bytes 4i..4i+3, ascending.

    So byte i must not lie below 4i - 3(n-1) before the write: the input starts 3 (n - 1) bytes or
    more above the output.
    """
    return (SafeOverlap(0, lead_bytes=3 * (graph.input(op, 0).elements - 1)),)


def _read(node: TfliteNode) -> ReadOp:
    x = node.inputs[0]
    if x is None or x.dtype not in _BYTES:
        kind = "nothing" if x is None else x.dtype.value
        raise node.unsupported(f"conversion of {kind} to float", "quantise the model to int8")
    if x.quantisation is None or x.quantisation.per_channel:
        raise node.unsupported(f"tensor {x.name!r} has not one scale and zero point")
    return ReadOp(Attributes(), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    return WrittenOp("DEQUANTIZE", "DequantizeOptions", version=2)


def _sample(rng: np.random.Generator) -> Graph:
    dtype = _BYTES[int(rng.integers(2))]
    shape = sample_shape(rng)
    x = Tensor("x", shape, dtype, sample_quantisation(rng, dtype))
    op = Op("dequantize", "dequantize", ("x",), ("y",))
    return Graph.build("sample", [x, Tensor("y", shape, DType.FLOAT32)], [op], ["x"], ["y"])


SPEC = OpSpec(
    kind="dequantize",
    attributes=Attributes,
    infer=_infer,
    reference=_reference,
    lower=_lower,
    sample=_sample,
    overlaps=_overlaps,
    axes=elementwise_axes,
    dtypes=frozenset({DType.FLOAT32, *_BYTES}),
    tflite=TfliteBinding(("DEQUANTIZE",), _read, _write),
    limits="int8 or uint8 to float32, per tensor",
)
