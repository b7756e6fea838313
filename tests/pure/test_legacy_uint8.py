"""Legacy uint8 models: read as int8, they compute what LiteRT's uint8 reference kernels compute."""

from __future__ import annotations

import zlib
from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest

from tests.support.host import random_inputs
from tests.support.legacy import as_uint8
from tests.support.litert import run_litert
from tests.support.mutations import packed, unpacked
from tests.support.tflite_writer import tflite_bytes
from toolchain.errors import InputError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import DType
from toolchain.ops import forms, spec_of
from toolchain.ops.interpret import interpret
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
        graph = as_uint8(forms()[kind].sample(rng), rng)
        data = tflite_bytes(graph)
        values = random_inputs(graph, rng)
        got = interpret(FRONT_END.read(data, Path("legacy.tflite")), values)
        for want, have in zip(run_litert(data, values), got, strict=True):
            assert have.dtype == want.dtype
            np.testing.assert_array_equal(have, want, err_msg=f"run {run}: {graph.ops[0]}")


def test_only_the_ends_stay_uint8() -> None:
    rng = np.random.default_rng(0)
    graph = as_uint8(spec_of("conv2d").sample(rng), rng)
    prepared = prepare(FRONT_END.read(tflite_bytes(graph), Path("legacy.tflite")))
    assert [op.kind for op in prepared.graph.ops] == ["conv2d"]
    assert {t.dtype for t in prepared.graph.activations()} == {DType.INT8}
    assert [b.dtype for b in prepared.boundaries] == [DType.UINT8] * 2
    assert [prepared.graph.inputs, prepared.graph.outputs] == [("x",), ("y",)]


def test_uint8_beside_int8_is_refused() -> None:
    """Lowered, the two would look alike; LiteRT refuses them, tflite-micro reads one as other."""
    rng = np.random.default_rng(0)
    model = unpacked(tflite_bytes(as_uint8(spec_of("maximum").sample(rng), rng)))
    main = model.subgraphs[0]
    second = main.tensors[main.operators[0].inputs[1]]
    second.type, second.quantization.zeroPoint = schema.TensorType.INT8, [0]
    with pytest.raises(InputError, match=r"MAXIMUM \(operator 0\) takes uint8 .* and int8"):
        FRONT_END.read(packed(model), Path("legacy.tflite"))
