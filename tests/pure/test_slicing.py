"""STRIDED_SLICE with every mask: what is read from the file selects what LiteRT selects."""

from __future__ import annotations

from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import pytest

from tests.support.litert import run_litert
from tests.support.tflite_writer import tflite_bytes
from toolchain.errors import InputError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import spec_of
from toolchain.ops.movement.slice import Slice
from toolchain.ops.movement.slicing import Masks, select

Q = Quantisation((0.5,), (0,))
Limits = tuple[list[int], list[int], list[int]]


def strided_slice_file(
    shape: tuple[int, ...], limits: Limits, masks: Masks, out: tuple[int, ...]
) -> bytes:
    """A file with one STRIDED_SLICE whose arguments are as given, masks included."""
    rank = len(shape)
    first = Slice((0,) * rank, (1,) * rank, (2,) * rank, ())
    tensors = [Tensor("x", shape, DType.INT8, Q), Tensor("y", (), DType.INT8, Q)]
    op = Op("slice", "slice", ("x",), ("y",), first)
    plain = tflite_bytes(Graph.build("g", tensors, [op], ["x"], ["y"]))
    model = schema.ModelT.InitFromPackedBuf(plain, 0)
    graph = model.subgraphs[0]
    written = graph.operators[0]
    for index, values in zip(written.inputs[1:], limits, strict=True):
        tensor = graph.tensors[index]
        tensor.shape = [len(values)]
        data = np.array(values, np.int32).tobytes()
        model.buffers[tensor.buffer].data = np.frombuffer(data, np.uint8)
    graph.tensors[written.outputs[0]].shape = list(out)
    options = written.builtinOptions
    options.beginMask, options.endMask = masks.begin, masks.end
    options.ellipsisMask, options.newAxisMask = masks.ellipsis, masks.new_axis
    options.shrinkAxisMask = masks.shrink_axis
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def random_case(
    rng: np.random.Generator,
) -> tuple[tuple[int, ...], Limits, Masks]:
    shape = tuple(int(d) for d in rng.integers(1, 6, int(rng.integers(1, 4))))
    count = int(rng.integers(1, len(shape) + 2))
    begin, end = ([int(v) for v in rng.integers(-7, 8, count)] for _ in range(2))
    strides = [int(v) for v in rng.choice([1, 1, 1, 2, 3, -1, -2], count)]
    bits = [int(rng.integers(0, 1 << count)) for _ in range(2)]
    ellipsis = 1 << int(rng.integers(count)) if rng.random() < 0.3 else 0
    rare = [int(rng.integers(0, 1 << count)) if rng.random() < 0.3 else 0 for _ in range(2)]
    return shape, (begin, end, strides), Masks(bits[0], bits[1], ellipsis, rare[0], rare[1])


@pytest.mark.slow
def test_random_masks_select_what_litert_selects() -> None:
    rng = np.random.default_rng(7)
    compared = 0
    while compared < 300:
        shape, limits, masks = random_case(rng)
        try:
            taken = select(shape, *limits, masks)
        except ValueError:
            continue
        if 0 in taken.shape:
            continue
        data = strided_slice_file(shape, limits, masks, taken.shape)
        graph = FRONT_END.read(data, Path("slice.tflite"))
        x = rng.integers(-128, 128, shape).astype(np.int8)
        (op,) = graph.ops
        (got,) = spec_of(op.kind).reference(op, graph, [x])
        (want,) = run_litert(data, [x])
        np.testing.assert_array_equal(got, want, err_msg=f"{shape} {limits} {masks}")
        compared += 1


@pytest.mark.parametrize(
    ("limits", "masks", "shape"),
    [
        (([1], [3], [1]), Masks(), (2, 5)),
        (([0], [0], [1]), Masks(shrink_axis=1), (5,)),
        (([-1], [0], [1]), Masks(shrink_axis=1), (5,)),
        (([0, 1], [0, 3], [1, 1]), Masks(ellipsis=1), (4, 2)),
        (([0, 0], [0, 0], [1, -1]), Masks(begin=3, end=3), (4, 5)),
        (([0], [0], [1]), Masks(new_axis=1), (1, 4, 5)),
    ],
)
def test_masks(limits: Limits, masks: Masks, shape: tuple[int, ...]) -> None:
    assert select((4, 5), *limits, masks).shape == shape


@pytest.mark.parametrize(
    ("limits", "masks", "why"),
    [
        (([0], [4], [0]), Masks(), "stride of 0"),
        (([4], [5], [1]), Masks(shrink_axis=1), "index 4"),
        (([0] * 3, [1] * 3, [1] * 3), Masks(), "more slices than the 2 dimensions"),
        (([3], [1], [1]), Masks(), "nothing is left"),
    ],
)
def test_bad_arguments_are_refused(limits: Limits, masks: Masks, why: str) -> None:
    data = strided_slice_file((4, 5), limits, masks, (1,))
    with pytest.raises(InputError, match=why):
        FRONT_END.read(data, Path("slice.tflite"))
