"""Outputs declared as another type: refused, or LiteRT's bytes in that type.

Of every kind, with inputs that are computed, and with inputs that are constants, where reading
computes the output itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from tests.support.host import random_inputs, reference_outputs
from tests.support.litert import run_litert
from tests.support.tflite_writer import tflite_bytes
from toolchain.errors import ThimbleError
from toolchain.frontends import load_model
from toolchain.frontends.tflite import shapes
from toolchain.ir import DType, Graph
from toolchain.ops import forms
from toolchain.ops.spec import Array

TYPES = ("FLOAT32", "INT32", "UINT8", "INT64", "BOOL", "INT16", "INT8", "UINT32", "FLOAT16", "INT4")
KINDS = sorted(k for k, s in forms().items() if s.tflite is not None and not s.made_by_passes)
SAMPLES = 2


def redeclared(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The file with one output of its last operator declared as each other type."""
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    for place, output in enumerate(model.subgraphs[0].operators[-1].outputs):
        tensor = model.subgraphs[0].tensors[output]
        own = tensor.type
        for name in TYPES:
            tensor.type = getattr(schema.TensorType, name)
            if tensor.type == own:
                continue
            builder = flatbuffers.Builder(len(data))
            builder.Finish(model.Pack(builder), b"TFL3")
            yield f"output {place} {name}", bytes(builder.Output())
        tensor.type = own


def held(graph: Graph, rng: np.random.Generator) -> Graph:
    """The graph with constants for inputs, of int32 where they were int8: reading computes with
    those."""
    tensors = {
        name: replace(tensor, dtype=DType.INT32, quantisation=None)
        if tensor.dtype is DType.INT8
        else tensor
        for name, tensor in graph.tensors.items()
    }
    graph = replace(graph, tensors=MappingProxyType(tensors))
    for name in graph.inputs:
        data = np.abs(random_inputs(graph, rng)[graph.inputs.index(name)])
        tensors[name] = replace(tensors[name], constant=np.asarray(data))
    return replace(graph, tensors=MappingProxyType(tensors), inputs=())


def check(data: bytes, inputs: tuple[Array, ...], file: Path, what: str) -> bool:
    """Whether the file is refused. What is accepted has LiteRT's types and bytes."""
    file.write_bytes(data)
    try:
        graph = load_model(file)
    except ThimbleError:
        return True
    got = reference_outputs(graph, inputs)
    if graph.ops and graph.ops[-1].kind == "quantize":  # from int8 to int32 by tflite-micro alone
        return False
    want = run_litert(data, inputs)
    for one, other in zip(got, want, strict=True):
        assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes()), what
    return False


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_an_output_of_another_type_is_refused_or_litert_s(kind: str, tmp_path: Path) -> None:
    refused = 0
    for seed in range(SAMPLES):
        rng = np.random.default_rng(seed)
        graph = forms()[kind].sample(rng)
        inputs = random_inputs(graph, rng)
        for what, data in redeclared(tflite_bytes(graph)):
            refused += check(data, inputs, tmp_path / "model.tflite", what)
    assert refused or kind == "cast", "no type was refused"


FOLDED = sorted(
    kind
    for kind in KINDS
    if set(forms()[kind].tflite.builtins) & set(shapes.FOLDED)  # type: ignore[union-attr]
    and forms()[kind].dtypes & shapes.TYPES
)


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("kind", FOLDED)
def test_a_constant_of_another_type_is_refused_or_litert_s(kind: str, tmp_path: Path) -> None:
    for seed in range(SAMPLES):
        graph = held(forms()[kind].sample(np.random.default_rng(seed)), np.random.default_rng(seed))
        for what, data in redeclared(tflite_bytes(graph)):
            check(data, (), tmp_path / "model.tflite", what)
