"""ONNX models that define functions of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from tests.support.onnx_models import model_of, run
from toolchain.errors import InputError
from toolchain.frontends import load_model, read_whole_model
from toolchain.passes import prepare

IMPORTS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def function(name: str, *nodes: tuple[str, str, str]) -> onnx.FunctionProto:
    """From `x` to `y`; `nodes` are operators with their inputs and output."""
    made = [
        helper.make_node(op, x.split(), [y], domain="own" if op[0].islower() else "")
        for op, x, y in nodes
    ]
    return helper.make_function("own", name, ["x"], ["y"], made, IMPORTS)


def saved(folder: Path, *functions: onnx.FunctionProto) -> Path:
    """A model that calls `gate` twice."""
    nodes = [
        helper.make_node("gate", ["x"], ["a"], domain="own"),
        helper.make_node("gate", ["a"], ["y"], domain="own"),
    ]
    model = model_of(nodes, {"x": (2, 9)}, ["y"], {})
    model.functions.extend(functions)
    model.opset_import.append(helper.make_opsetid("own", 1))
    file = folder / "model.onnx"
    file.write_bytes(model.SerializeToString())
    return file


def test_calls_are_written_out(tmp_path: Path) -> None:
    gate = function("gate", ("soft", "x", "s"), ("Mul", "x s", "y"))
    file = saved(tmp_path, gate, function("soft", ("Sigmoid", "x", "y")))
    prepared = prepare(load_model(file))
    assert [op.kind for op in prepared.graph.ops] == ["logistic", "mul"] * 2
    x = np.random.default_rng(0).standard_normal((2, 9)).astype(np.float32)
    (got,) = run(prepared, {"x": x})
    for data in (file.read_bytes(), read_whole_model(file)):
        (want,) = onnxruntime.InferenceSession(data).run(None, {"x": x})
        assert np.abs(got - want).max() < 1e-6


def test_functions_that_stand_for_too_much_are_refused(tmp_path: Path) -> None:
    doubling = [
        function(name, (after, "x", "a"), (after, "a", "y"))
        for name, after in [("gate", "f0"), *((f"f{n}", f"f{n + 1}") for n in range(60))]
    ]
    with pytest.raises(InputError, match="stand for more than 100,000 operators"):
        load_model(saved(tmp_path, *doubling, function("f60", ("Relu", "x", "y"))))
    circle = function("gate", ("soft", "x", "y")), function("soft", ("gate", "x", "y"))
    with pytest.raises(InputError, match=r"^model.onnx: .* in a circle: .*gate -> "):
        load_model(saved(tmp_path, *circle))
