"""Legacy uint8 models: read as int8, they compute what LiteRT's uint8 reference kernels compute."""

from __future__ import annotations

import zlib
from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest

from tests.support.host import random_inputs
from tests.support.legacy import as_uint8, joined, legacy_sample
from tests.support.litert import run_litert
from tests.support.mutations import packed, unpacked
from tests.support.tflite_writer import tflite_bytes
from toolchain.errors import InputError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import forms
from toolchain.ops.interpret import interpret
from toolchain.ops.pooling.common import Pool2D
from toolchain.passes import prepare

KINDS = (
    "add",
    "arg_max",
    "average_pool2d",
    "conv2d",
    "depthwise_conv2d",
    "fully_connected",
    "hard_swish",
    "leaky_relu",
    "logistic",
    "max_pool2d",
    "maximum",
    "mean",
    "mul",
    "prelu",
    "reduce_max",
    "relu",
    "resize_bilinear",
    "softmax",
    "sub",
    "tanh",
)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_litert(kind: str, litert_runs: int) -> None:
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    for run in range(litert_runs):
        graph = legacy_sample(kind, rng)
        data = tflite_bytes(graph)
        values = random_inputs(graph, rng)
        got = interpret(FRONT_END.read(data, Path("legacy.tflite")), values)
        for want, have in zip(run_litert(data, values), got, strict=True):
            assert have.dtype == want.dtype
            np.testing.assert_array_equal(have, want, err_msg=f"run {run}: {graph.ops[0]}")


def test_only_the_ends_stay_uint8() -> None:
    rng = np.random.default_rng(0)
    graph = as_uint8(forms()["conv2d"].sample(rng), rng)
    prepared = prepare(FRONT_END.read(tflite_bytes(graph), Path("legacy.tflite")))
    assert [op.kind for op in prepared.graph.ops] == ["conv2d"]
    assert {t.dtype for t in prepared.graph.activations()} == {DType.INT8}
    assert [b.dtype for b in prepared.boundaries] == [DType.UINT8] * 2
    assert [prepared.graph.inputs, prepared.graph.outputs] == [("x",), ("y",)]


def test_uint8_beside_int8_is_refused() -> None:
    """Lowered, the two would look alike; LiteRT refuses them, tflite-micro reads one as other."""
    rng = np.random.default_rng(0)
    model = unpacked(tflite_bytes(as_uint8(forms()["maximum"].sample(rng), rng)))
    main = model.subgraphs[0]
    second = main.tensors[main.operators[0].inputs[1]]
    second.type, second.quantization.zeroPoint = schema.TensorType.INT8, [0]
    with pytest.raises(InputError, match=r"MAXIMUM \(operator 0\) takes uint8 .* and int8"):
        FRONT_END.read(packed(model), Path("legacy.tflite"))


@pytest.mark.parametrize(
    "kind", ["conv2d.int16", "depthwise_conv2d.int16", "fully_connected.int16"]
)
def test_uint8_weights_beside_int16_are_refused(kind: str) -> None:
    """Lowered, they would have a zero point, which kernels of int16 do not look at."""
    model = unpacked(tflite_bytes(forms()[kind].sample(np.random.default_rng(0))))
    main = model.subgraphs[0]
    main.tensors[main.operators[0].inputs[1]].type = schema.TensorType.UINT8
    with pytest.raises(InputError, match=r"takes uint8 .* and int16 .* at once"):
        FRONT_END.read(packed(model), Path("legacy.tflite"))


def test_int8_operators_of_a_uint8_file_are_those_of_int8() -> None:
    """A uint8 maximum, of whose result an int8 average is taken: LiteRT rounds it as int8."""
    rng = np.random.default_rng(0)
    u, q = Quantisation((0.05,), (128,)), Quantisation((0.05,), (0,))
    shape = (1, 6, 6, 3)
    tensors = [
        *(Tensor(name, shape, DType.UINT8, u) for name in ("a", "b", "m")),
        Tensor("x", shape, DType.INT8, q),
        Tensor("y", (1, 3, 3, 3), DType.INT8, q),
    ]
    ops = [
        Op("maximum", "largest", ("a", "b"), ("m",), Attributes()),
        Op("quantize", "signed", ("m",), ("x",), Attributes()),
        Op("average_pool2d", "average", ("x",), ("y",), Pool2D(2, 2, 2, 2)),
    ]
    data = tflite_bytes(Graph.build("mixed", tensors, ops, ["a", "b"], ["y"]))
    values = [rng.integers(0, 256, shape).astype(np.uint8) for _ in range(2)]
    got = interpret(FRONT_END.read(data, Path("mixed.tflite")), values)
    np.testing.assert_array_equal(got[0], run_litert(data, values)[0])


def test_concatenation_rescales_as_litert(litert_runs: int) -> None:
    rng = np.random.default_rng(22)
    differing = 0
    for run in range(litert_runs):
        graph = joined(rng)
        data, values = tflite_bytes(graph), random_inputs(graph, rng)
        read = FRONT_END.read(data, Path("joined.tflite"))
        (want,), (have,) = run_litert(data, values), interpret(read, values)
        assert have.dtype == want.dtype
        np.testing.assert_array_equal(have, want, err_msg=f"run {run}")
        differing += any(op.kind == "quantize" and op.attributes.in_float for op in read.ops)
    assert differing > litert_runs // 3


@pytest.mark.parametrize("kind", ["conv2d", "depthwise_conv2d", "concat", "add"])
def test_ends_that_are_left_out_are_refused(kind: str) -> None:
    """The records are rewritten before an operator's reader counts its inputs and outputs."""
    data = tflite_bytes(legacy_sample(kind, np.random.default_rng(2)))
    op = unpacked(data).subgraphs[0].operators[-1]
    inputs, outputs = list(op.inputs), list(op.outputs)
    absent = [[*inputs[:at], -1, *inputs[at + 1 :]] for at in range(min(2, len(inputs)))]
    cases = [
        (inputs, []),
        ([], outputs),
        (inputs[:1], outputs),
        *((some, outputs) for some in absent),
    ]
    for some, others in cases:
        model = unpacked(data)
        damaged = model.subgraphs[0].operators[-1]
        damaged.inputs, damaged.outputs = np.array(some, np.int32), np.array(others, np.int32)
        if kind == "concat" and some == inputs[:1]:
            continue
        with pytest.raises(InputError):
            FRONT_END.read(packed(model), Path("legacy.tflite"))
