"""Places that a runtime leaves unwritten are 0 in what `verify` compares with, in every run."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest

from tests.support.mutations import packed, unpacked
from tests.support.tflite_writer import tflite_bytes
from toolchain.frontends import load_model
from toolchain.frontends.tflite.file import read_file
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops import forms
from toolchain.ops.detection.detection_postprocess import DetectionPostprocess
from toolchain.ops.interpret import interpret
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.signal.signal_energy import SignalEnergy
from toolchain.reference import TfliteReference, open_reference, tflite
from toolchain.reference.cut import part_of
from toolchain.reference.unwritten import filled


def test_energies_of_two_parts_of_a_spectrum(tmp_path: Path) -> None:
    """Both outputs lie where others lay before: what is left there is not 0."""
    pytest.importorskip("tflite_micro")
    parts = (SignalEnergy(end_index=9, start_index=2), SignalEnergy(end_index=21, start_index=20))
    tensors = [Tensor("spectrum", (46,), DType.INT16)]
    tensors += [Tensor(f"energy{n}", (23,), DType.UINT32) for n in range(len(parts))]
    ops = [
        Op("signal_energy", f"part{n}", ("spectrum",), (f"energy{n}",), part)
        for n, part in enumerate(parts)
    ]
    graph = Graph.build("parts", tensors, ops, ["spectrum"], ["energy0", "energy1"])
    path = tmp_path / "parts.tflite"
    path.write_bytes(tflite_bytes(graph))
    reference = open_reference(path)
    assert isinstance(reference, TfliteReference)
    rng = np.random.default_rng(3)
    for _ in range(3):
        inputs = [rng.integers(-(2**15), 2**15, 46, dtype=np.int16)]
        for want, got in zip(reference.run(inputs), interpret(graph, inputs, {}), strict=True):
            np.testing.assert_array_equal(got, want.reshape(got.shape))
            assert np.count_nonzero(got) <= 7


def _detector(ends: tuple[str, ...]) -> Graph:
    """Of twelve boxes, most with scores below the least one, and a RESHAPE of the boxes."""
    rng = np.random.default_rng(5)
    anchors = rng.uniform(0.1, 0.9, (12, 4)).astype(np.float32)
    shapes = {"boxes": (1, 8, 4), "labels": (1, 8), "found_scores": (1, 8), "count": (1,)}
    tensors = [
        Tensor("encodings", (1, 12, 4), DType.FLOAT32),
        Tensor("scores", (1, 12, 3), DType.FLOAT32),
        Tensor("anchors", anchors.shape, DType.FLOAT32, None, anchors),
        *(Tensor(name, shape, DType.FLOAT32) for name, shape in shapes.items()),
        Tensor("rows", (8, 4), DType.FLOAT32),
    ]
    found = DetectionPostprocess(8, 1, 3, 0, 0.9, 0.5)
    ops = [
        Op("detection_postprocess", "d", ("encodings", "scores", "anchors"), tuple(shapes), found)
    ]
    if "rows" in ends:
        ops.append(Op("reshape", "r", ("boxes",), ("rows",), Reshape((8, 4))))
    else:
        tensors.pop()
    return Graph.build("detector", tensors, ops, ["encodings", "scores"], ends)


@pytest.mark.parametrize(
    "ends", [("boxes", "labels"), ("rows", "found_scores"), ("boxes", "count")]
)
def test_boxes_of_a_detector_whose_count_is_returned_or_not(
    ends: tuple[str, ...], tmp_path: Path
) -> None:
    """LiteRT leaves those behind the last one as they were, which the count alone tells."""
    graph = _detector(ends)
    path = tmp_path / "detector.tflite"
    path.write_bytes(tflite_bytes(graph))
    reference = open_reference(path)
    assert isinstance(reference, TfliteReference) and not reference.not_independent
    rng = np.random.default_rng(6)
    for share in (1.0, 0.3, 0.0):
        encodings = rng.standard_normal((1, 12, 4)).astype(np.float32)
        scores = (rng.random((1, 12, 3)) < share).astype(np.float32)
        given = [encodings, scores]
        for want, got in zip(reference.run(given), interpret(graph, given), strict=True):
            np.testing.assert_array_equal(got, want.reshape(got.shape))


def test_nobody_judges_a_detector_without_its_count_in_a_file_that_runs_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one with a graph that it calls: then nothing but what the file returns is to be had."""
    monkeypatch.setattr(tflite, "can_be_cut", lambda model: False)
    path = tmp_path / "detector.tflite"
    path.write_bytes(tflite_bytes(_detector(("boxes", "count"))))
    assert not open_reference(path).not_independent
    path.write_bytes(tflite_bytes(_detector(("boxes",))))
    assert "does not return what tells which places" in open_reference(path).not_independent


def _called(data: bytes) -> bytes:
    """The file's only graph, called by one that does nothing else."""
    model = unpacked(data)
    (body,) = model.subgraphs
    code, call, main = schema.OperatorCodeT(), schema.OperatorT(), copy.deepcopy(body)
    code.builtinCode = schema.BuiltinOperator.CALL
    code.deprecatedBuiltinCode = schema.BuiltinOperator.CALL
    call.opcodeIndex, call.inputs, call.outputs = (
        len(model.operatorCodes),
        body.inputs,
        body.outputs,
    )
    call.builtinOptionsType, call.builtinOptions = (
        schema.BuiltinOptions.CallOptions,
        schema.CallOptionsT(),
    )
    call.builtinOptions.subgraph = 1
    main.operators = [call]
    model.operatorCodes.append(code)
    model.subgraphs = [main, body]
    return packed(model)


def test_nobody_judges_places_that_a_called_graph_leaves_unwritten(tmp_path: Path) -> None:
    graph = forms()["signal_energy"].sample(np.random.default_rng(1))
    path = tmp_path / "called.tflite"
    path.write_bytes(_called(tflite_bytes(graph)))
    assert [op.kind for op in load_model(path).ops][:1] == ["signal_energy"]
    assert "leaves places as they were, which other" in open_reference(path).not_independent


@pytest.mark.parametrize("kind", ["signal_framer", "signal_stacker", "detection_postprocess"])
def test_what_tells_which_places_are_written_is_written_too(kind: str) -> None:
    """Even where the file returns the first output alone."""
    graph = forms()[kind].sample(np.random.default_rng(1))
    (op,) = graph.ops
    model = read_file(tflite_bytes(replace(graph, outputs=op.outputs[:1])))
    (found,) = model.ops
    written = part_of(model, [0]).writes
    values = {i: np.ones(model.tensors[i].tensor.shape) for i in written}
    values |= {i: np.zeros_like(values[i]) for i in written if i != found.outputs[0]}
    settled = filled(found, values)
    assert not settled[found.outputs[0]].any()
