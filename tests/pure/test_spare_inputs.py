"""An operator with one input more than its kind has is refused, or LiteRT does not look at it."""

from __future__ import annotations

from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import pytest

from tests.support.tflite_writer import tflite_bytes
from toolchain.errors import InputError
from toolchain.frontends import load_model
from toolchain.ops import forms
from toolchain.reference.process import Runtime, RuntimeProcess, open_model

KINDS = sorted(kind for kind, spec in forms().items() if spec.tflite is not None)


@pytest.fixture(scope="module")
def process() -> RuntimeProcess:
    return RuntimeProcess()


def with_one_more(data: bytes) -> bytes:
    """The file, each of whose operators has its first input once more, at the end."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    for op in model.subgraphs[0].operators:
        op.inputs = np.append(op.inputs, op.inputs[0]).astype(np.int32)
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@pytest.mark.parametrize("kind", KINDS)
def test_an_input_too_many(kind: str, tmp_path: Path, process: RuntimeProcess) -> None:
    graph = forms()[kind].sample(np.random.default_rng(3))
    try:
        data = with_one_more(tflite_bytes(graph))
    except ValueError:
        pytest.skip("the writer does not know this form")
    path = tmp_path / "more.tflite"
    path.write_bytes(data)
    try:
        load_model(path)
    except InputError:
        return
    open_model(process, Runtime.LITERT_REFERENCE, data, len(graph.outputs))
