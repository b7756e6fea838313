"""What caches are keyed by: equal for the same thing under other names, other in each one field."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from tests.support.varied import varied, varied_operators
from toolchain.boards import board
from toolchain.cost.key import _code_digest, operator_key
from toolchain.cost.predicted import predicted_model
from toolchain.device.compiler import Unit, _key, find_host_compiler
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ir.identity import operator_identity
from toolchain.ir.values import identity_of
from toolchain.ops import forms
from toolchain.ops.control.body import Body
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.lowering import lower
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.pad import Pad
from toolchain.ops.window import Padding
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.resources import RUNTIME_C
from toolchain.sweep import cases
from toolchain.sweep.cases import Case, tool_of

M4 = board("netduinoplus2")


@pytest.mark.parametrize("kind", forms())
def test_operators_that_differ_in_one_field_are_told_apart(kind: str) -> None:
    graph = forms()[kind].sample(np.random.default_rng(7))
    op = graph.ops[0]
    own = operator_identity(op, graph)
    tried = set()
    for what, other, there in varied_operators(op, graph):
        assert operator_identity(other, there) != own, what
        tried.add(what)
    assert len(tried) >= 8


@pytest.mark.parametrize("kind", forms())
def test_operators_that_differ_in_names_are_the_same(kind: str) -> None:
    """Their constants are equal, and not the same arrays."""
    graph = forms()[kind].sample(np.random.default_rng(7))
    op = graph.ops[0]

    def named(name: str) -> str:
        return name and f"other {name}"

    table = {
        named(t.name): replace(
            t, name=named(t.name), constant=None if t.constant is None else t.constant.copy()
        )
        for t in graph.tensors.values()
    }
    inputs, outputs = (tuple(map(named, names)) for names in (op.inputs, op.outputs))
    renamed = replace(op, name="other", part_of="whole", inputs=inputs, outputs=outputs)
    there = replace(graph, tensors=MappingProxyType(table))
    assert operator_identity(renamed, there) == operator_identity(op, graph)


def test_values_are_told_apart_that_python_takes_for_equal() -> None:
    for one, other in ((0.0, -0.0), (1, True), (1, 1.0), ((1,), (True,))):
        assert one == other and identity_of(one) != identity_of(other)
    assert identity_of(np.float32(0)) != identity_of(np.float32(-0.0))
    assert identity_of(float("nan")) == identity_of(float("nan"))


def two_convolutions(second: Quantisation) -> Graph:
    """Of one input and of another of the quantisation `second`, with the same weights: large ones,
    whose sums leave less room the lower the zero point is. There is room for scratch at the end.
    """
    rng, shape = np.random.default_rng(1), (1, 24, 24, 32)
    weights = rng.integers(80, 120, (32, 3, 3, 32)).astype(np.int8)
    bias = np.full(32, 29_000_000, np.int32)
    result = Quantisation((40.96,), (0,))
    tensors = [
        Tensor("weights", weights.shape, DType.INT8, Quantisation((0.01,), (0,)), weights),
        Tensor("bias", (32,), DType.INT32, Quantisation((0.00015625,), (0,)), bias),
        Tensor("both", (*shape[:3], 64), DType.INT8, result),
        Tensor("y", (1, 40, 40, 64), DType.INT8, result),
    ]
    ops = []
    for number, own in enumerate((Quantisation((0.015625,), (0,)), second)):
        tensors += [
            Tensor(f"x{number}", shape, DType.INT8, own),
            Tensor(f"y{number}", shape, DType.INT8, result),
        ]
        inputs = (f"x{number}", "weights", "bias")
        attributes = Conv2D(padding=Padding(1, 1, 1, 1))
        ops.append(Op("conv2d", f"conv{number}", inputs, (f"y{number}",), attributes))
    ops.append(Op("concat", "both", ("y0", "y1"), ("both",), Concat(3)))
    ops.append(Op("pad", "y", ("both",), ("y",), Pad(((0, 0), (8, 8), (8, 8), (0, 0)))))
    return Graph.build("two", tensors, ops, ["x0", "x1"], ["y"])


def test_convolutions_that_share_weights_keep_the_forms_of_their_own() -> None:
    graph = two_convolutions(Quantisation((0.015625,), (-128,)))
    titles = [{one.title for one in kernel.forms()} for kernel in lower(graph, M4.core).kernels[:2]]
    assert titles[1] < titles[0]
    plan = plan_graph(graph, M4, PlanOptions(nearly_free=False))
    for op, kernel in zip(plan.graph.ops, plan.lowered.kernels, strict=True):
        if op.kind == "conv2d":
            assert kernel.title in titles[int(op.name[-1])], op.name
            assert len(kernel.title.partition("winograd")[1]) > 0


def test_bodies_are_equal_by_all_digits_of_scales_and_all_bytes() -> None:
    graph = two_convolutions(Quantisation((0.5,), (4,)))
    assert Body(graph) == Body(two_convolutions(Quantisation((0.5,), (4,))))
    for scale in (0.50000006, 0.5000001):
        assert Body(graph) != Body(two_convolutions(Quantisation((scale,), (4,))))
    for what, other in varied(graph.tensors["weights"].constant, "weights"):
        if other.shape == graph.tensors["weights"].shape:
            made = replace(graph.tensors["weights"], constant=other)
            table = MappingProxyType({**graph.tensors, "weights": made})
            assert Body(graph) != Body(replace(graph, tensors=table)), what
    assert Body(graph) != Body(graph, results_outside=True)


def test_a_measured_kernel_is_another_where_a_header_or_a_function_that_it_calls_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`thimble_pow_f32` calls `thimble_floor_f32`; both read `thimble_exact_float.h`."""
    graph = forms()["pow"].sample(np.random.default_rng(3))
    found = {}
    for change in ("", "thimble_floor_f32.c", "thimble_exact_float.h", "thimble_abs_f32.c"):
        tree = tmp_path / (change or "same") / "runtime_c"
        for file in (p for p in RUNTIME_C.rglob("*") if p.suffix in (".c", ".h")):
            target = tree / file.relative_to(RUNTIME_C)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes() + b"/* */" * (file.name == change))
        monkeypatch.setattr("toolchain.cost.key.RUNTIME_C", tree)
        monkeypatch.setattr("toolchain.kernels.runtime_c.RUNTIME_C", tree)
        monkeypatch.setattr("toolchain.kernels.runtime_c.INCLUDE", tree / "include")
        _code_digest.cache_clear()
        found[change] = operator_key(lower(graph, M4.core), 0).kernel
    _code_digest.cache_clear()
    assert found[""] == found["thimble_abs_f32.c"]
    assert len({found[""], found["thimble_floor_f32.c"], found["thimble_exact_float.h"]}) == 3


def test_objects_are_kept_by_all_that_a_compiler_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`_key` alone: the digests of folders are tested in `host_c/test_object_cache.py`."""
    gcc = find_host_compiler()
    for name in ("one.c", "two.c"):
        (tmp_path / name).write_text("const char *name = __FILE__;\n")
    unit = Unit(tmp_path / "one.c", ("-O1", "-g"), (tmp_path,))
    digests = ["0" * 64, "1" * 64]
    keys = {"": _key(gcc, unit, digests)}
    for suffix in (".o", ".s"):
        made = replace(unit, suffix=suffix)
        keys[suffix] = _key(gcc, made, digests)
    keys["name"] = _key(gcc, replace(unit, source=tmp_path / "two.c"), digests)
    keys["order of flags"] = _key(gcc, replace(unit, flags=("-g", "-O1")), digests)
    keys["flag less"] = _key(gcc, replace(unit, flags=("-O1",)), digests)
    keys["order of headers"] = _key(gcc, unit, digests[::-1])
    keys["system folder"] = _key(gcc, replace(unit, includes=()), digests)
    monkeypatch.setenv("CPATH", str(tmp_path))
    keys["CPATH"] = _key(gcc, unit, digests)
    monkeypatch.delenv("CPATH")
    monkeypatch.setattr("toolchain.device.compiler._machine", lambda gcc: "other")
    keys["machine"] = _key(gcc, unit, digests)
    assert keys.pop("") == keys.pop(".o")
    assert len(set(keys.values())) == len(keys)


def test_a_row_of_a_sweep_is_found_again_by_all_that_it_depends_on() -> None:
    options = PlanOptions(labels=("a",), input_shapes=(("x", (1, 2)),))
    case = Case("verify", "a/m.tflite", "00", "host", options, (), 2, 3, (("ortools", "9"),))
    keys = {}
    for what, other in varied(case, "case"):
        if ".words" in what or "input_shapes[0][1]" in what:  # words say what options hold
            continue
        try:
            keys[what] = other.key
        except TypeError:
            continue
    assert case.key == replace(case, file="b/m.tflite").key
    assert case.key not in keys.values()
    assert len(set(keys.values())) == len(keys) > 25


def test_what_a_sweep_depends_on_names_every_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    judges = {"ai-edge-litert", "onnxruntime", "tflite-micro"}
    assert judges <= set(tool_of("host", "verify"))
    before = tool_of("host", "verify")
    monkeypatch.setattr(cases, "_version", lambda package: "other" if package in judges else "")
    assert all(tool_of("host", "verify")[name] != before[name] for name in judges)


def test_a_users_board_that_changes_makes_another_key(tmp_path: Path) -> None:
    file = tmp_path / "mine" / "board.toml"
    file.parent.mkdir()
    own = (RUNTIME_C.parent / "boards" / "netduinoplus2" / "board.toml").read_text()
    file.write_text(own)
    before = tool_of(str(file), "plan")
    file.write_text(own + "\n# another\n")
    assert tool_of(str(file), "plan") != before


def test_costs_are_those_of_the_kernel_that_was_chosen() -> None:
    """Forms of one operator have keys of their own in the database of measured times."""
    graph = two_convolutions(Quantisation((0.5,), (4,)))
    lowered, costs = lower(graph, M4.core), predicted_model(M4)
    keys = {}
    for kernel in lowered.kernels[0].forms():
        other = replace(lowered, kernels=(kernel, *lowered.kernels[1:]))
        keys[operator_key(other, 0)] = costs.cost(other, 0).count
    assert len(keys) == len(lowered.kernels[0].forms()) > 2
