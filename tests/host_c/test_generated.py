"""What generated C promises as a whole: names, warnings, side by side, conversions, determinism."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.graphs import activation, dense_chain, reshape
from tests.support.host import (
    host_model,
    plan_of,
    random_inputs,
    reference_outputs,
    run_graph_on_host,
    run_graphs_on_host,
)
from toolchain.boards import HOST
from toolchain.codegen import generate
from toolchain.device.host import HostProgram, build
from toolchain.errors import LinkError
from toolchain.ir import Boundary, DType, Graph, Op, Quantisation, Sources, Tensor
from toolchain.ir.boundary import End
from toolchain.kernels import cmsis_nn, runtime_c
from toolchain.ops import forms
from toolchain.ops.check import check
from toolchain.ops.movement.gather import Gather
from toolchain.resources import RUNTIME_C

PROGRAMS = Path(__file__).parent / "programs"
CHECKS = ["-O1", "-Wall", "-Wextra", "-Wconversion", "-Wundef", "-Wcast-align=strict", "-Werror"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
HOSTILE = (
    "*/ int x;",
    "/* nested",
    "int",
    "",
    "日本語のテンソル",
    "line\nbreak\\",
    '"quote" \\',
    "??/",
    "%s%n",
    "1st",
    "a" * 300,
    "\ud800 lone surrogate",
    "arena",
    "Arena",
    "x_quantize",
    "__FILE__",
)


def generated(graph: Graph, name: str = "", boundaries: tuple[Boundary, ...] = ()) -> Sources:
    plan = replace(plan_of(graph), boundaries=boundaries)
    return generate(plan, HOST, cmsis_nn.find(), name=name)


def compile_with(
    main: str, models: list[Sources], folder: Path, flags: list[str] | None = None
) -> Path:
    """`programs/<main>` linked with the models, our C with warnings as errors."""
    for sources in models:
        for name, text in sources.files.items():
            (folder / name).write_text(text, encoding="utf-8")
    root = cmsis_nn.find()
    own = [str(PROGRAMS / main), *(str(folder / f"{s.name}.c") for s in models)]
    own += sorted({str(RUNTIME_C / path) for s in models for path in s.runtime})
    theirs = sorted({str(root / path) for s in models for path in s.cmsis_nn})
    include = [f"-I{path}" for path in (folder, *runtime_c.KERNEL_INCLUDES)]
    include += ["-isystem", f"{root}/Include"]
    program = folder / "program"
    command = ["gcc", "-std=gnu99", *CHECKS, *SANITIZERS, *(flags or []), *include, *own, *theirs]
    done = subprocess.run(
        [*command, "-pthread", "-o", str(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return program


def test_hostile_names_give_correct_code() -> None:
    cases = []
    for index, name in enumerate(HOSTILE):
        names = [name or "?", f"{name}*/", f"{name}2"]  # "" stands for an absent input
        graph = dense_chain(name, (5, 4, 3), index, names, [name, f"{name}'"])
        cases.append((graph, random_inputs(graph, np.random.default_rng(index))))
    for (graph, inputs), got in zip(cases, run_graphs_on_host(cases), strict=True):
        np.testing.assert_array_equal(got[0], reference_outputs(graph, inputs)[0], graph.name)


def test_hostile_model_names_can_be_linked_together(tmp_path: Path) -> None:
    graphs = [dense_chain(name, (4, 3), i) for i, name in enumerate((*HOSTILE[:4], "string"))]
    models = [host_model(graph) for graph in graphs]
    assert len({m.sources.name for m in models}) == len(models)
    with HostProgram(build(models, cmsis_nn.find(), tmp_path), models) as program:
        for index, graph in enumerate(graphs):
            inputs = random_inputs(graph, np.random.default_rng(index))
            np.testing.assert_array_equal(
                program.run(inputs, index)[0], reference_outputs(graph, inputs)[0]
            )


def test_tensors_whose_names_differ_in_case_alone() -> None:
    graph = dense_chain("case", (4, 4, 4), tensors=["In", "mid", "OUT"])
    two = Graph.build("case", graph.tensors.values(), graph.ops, graph.inputs, ["OUT", "mid", "In"])
    twice = Graph.build(
        "case",
        [*graph.tensors.values(), activation("out", (4,))],
        [*graph.ops, reshape("mid", "out", (4,))],
        graph.inputs,
        ["OUT", "out"],
    )
    for made in (two, twice):
        inputs = random_inputs(made, np.random.default_rng(0))
        for got, want in zip(
            run_graph_on_host(made, inputs), reference_outputs(made, inputs), strict=True
        ):
            np.testing.assert_array_equal(got, want)
    assert generated(twice).outputs == ("out", "out_2")


def test_models_without_operators_and_constant_outputs() -> None:
    data = np.arange(-4, 4, dtype=np.int8)
    constant = replace(activation("c", (8,)), constant=data)
    empty = Graph.build("empty", [activation("x", (8,)), constant], [], ["x"], ["x", "c"])
    inputs = random_inputs(empty, np.random.default_rng(0))
    same, flash = run_graph_on_host(empty, inputs, sanitize=True)
    np.testing.assert_array_equal(same, inputs[0])
    np.testing.assert_array_equal(flash, data)


def test_a_view_of_a_constant_or_an_input_that_is_an_output_too() -> None:
    constant = replace(activation("c", (2, 4)), constant=np.arange(8, dtype=np.int8).reshape(2, 4))
    table = [activation("x", (2, 4)), activation("y", (8,)), constant, activation("z", (4, 2))]
    ops = [reshape("x", "y", (8,)), reshape("c", "z", (4, 2))]
    graph = Graph.build("views", table, ops, ["x"], ["y", "z", "x"])
    inputs = random_inputs(graph, np.random.default_rng(0))
    for got, want in zip(
        run_graph_on_host(graph, inputs, sanitize=True),
        reference_outputs(graph, inputs),
        strict=True,
    ):
        np.testing.assert_array_equal(got, want)
    assert generated(graph).calls == (1,), "the reshape of the input is a pure view"


@pytest.mark.parametrize("start", [0, 4, 16])
def test_a_copy_between_overlapping_places(tmp_path: Path, start: int) -> None:
    graph = Graph.build(
        "moved",
        [activation("x", (2, 8)), activation("y", (16,))],
        [reshape("x", "y", (16,))],
        ["x"],
        ["y"],
    )
    plan = plan_of(graph)
    apart = replace(plan.arena, size_bytes=32, offsets={"x": start, "y": 0})
    sources = generate(replace(plan, arena=apart), HOST, cmsis_nn.find())
    model = replace(host_model(graph), sources=sources)
    inputs = random_inputs(graph, np.random.default_rng(0))
    program = build([model], cmsis_nn.find(), tmp_path, sanitize=True)
    with HostProgram(program, [model]) as running:
        np.testing.assert_array_equal(running.run(inputs)[0], inputs[0].reshape(16))
    assert len(sources.calls) == (start != 0)


def pattern(graph: Graph, seed: int) -> tuple[np.ndarray, ...]:
    shape = graph.tensors[graph.inputs[0]].shape
    data = (np.arange(np.prod(shape)) * 7 + seed) % 256 - 128
    return (data.astype(np.int8).reshape(shape),)


def test_two_models_and_two_arenas_at_once(tmp_path: Path) -> None:
    alpha = dense_chain("alpha", (24, 17, 9), seed=1)
    beta = dense_chain("beta", (11, 6), seed=2, ops=['first "layer"?'])
    flags = ["-DBETA_STATIC_ARENA", "-DBETA_OPERATOR_NAMES"]
    models = [generated(alpha), generated(beta)]
    program = compile_with("side_by_side.c", models, tmp_path, flags)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    expected = [(alpha, 1), (alpha, 2), (beta, 3)]
    for line, (graph, seed) in zip(lines, expected, strict=False):
        want = reference_outputs(graph, pattern(graph, seed))[0].reshape(-1)
        assert [int(word) for word in line.split()] == want.tolist()
    assert lines[3] == 'first "layer"?'


def test_hooks_surround_each_operator(tmp_path: Path) -> None:
    graph = dense_chain("hooked", (4, 3, 2))
    flags = ["-DHOOKED_STATIC_ARENA", '-DTHIMBLE_HOOKS_H="hooks.h"', "-I", str(PROGRAMS)]
    program = compile_with("hooks.c", [generated(graph)], tmp_path, flags)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["+1", "-1", "+2", "-2", "0", "2"]


@pytest.mark.parametrize("halves_to_even", [False, True])
def test_conversions_in_the_header(tmp_path: Path, halves_to_even: bool) -> None:
    graph = dense_chain("converted", (3, 2))
    boundary = Boundary("x", DType.FLOAT32, halves_to_even=halves_to_even)
    program = compile_with(
        "convert.c", [generated(graph, boundaries=(boundary,))], tmp_path, ["-Wno-unused-result"]
    )
    scale = np.float32(0.05)
    steps = np.arange(-300, 301, dtype=np.float32)
    halves = (steps + np.float32(0.5)) * scale
    near = np.concatenate([np.nextafter(halves, np.float32(d)) for d in (-np.inf, np.inf)])
    huge = np.array([1e30, -1e30, np.inf, -np.inf, 0.0, -0.0], np.float32)
    reals = np.concatenate([steps * scale, halves, near, huge]).astype(np.float32)
    done = subprocess.run([str(program)], input=reals.tobytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    stored = np.frombuffer(done.stdout[: len(reals)], np.int8)
    np.testing.assert_array_equal(stored, End(graph.tensors["x"], boundary).to_graph(reals))
    back = np.frombuffer(done.stdout[len(reals) :], np.float32)
    every = np.arange(-128, 128, dtype=np.int8)
    expected = End(graph.tensors["y"], Boundary("y", DType.FLOAT32)).to_model(every)
    np.testing.assert_array_equal(back, expected)


def test_uint8_conversions_in_the_header(tmp_path: Path) -> None:
    graph = dense_chain("converted", (3, 2))
    ends = tuple(Boundary(n, DType.UINT8, Quantisation((0.05,), (125,))) for n in ("x", "y"))
    sources = generated(graph, boundaries=ends)
    program = compile_with("convert.c", [sources], tmp_path, ["-DWITH_UINT8", "-Wno-unused-result"])
    done = subprocess.run([str(program)], input=b"", capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    pairs = np.frombuffer(done.stdout[4 * 256 :], np.uint8).reshape(-1, 2)
    every = np.arange(256).astype(np.uint8)
    np.testing.assert_array_equal(pairs[:, 1], every)
    want = End(graph.tensors["x"], ends[0]).to_graph(every)
    np.testing.assert_array_equal(pairs[:, 0].astype(np.int8), want)
    assert "uint8 [1x3]" in sources.files["converted.h"]


def test_the_header_is_also_cpp(tmp_path: Path) -> None:
    sources = generated(dense_chain("model", (3, 2)))
    header = tmp_path / "model.h"
    header.write_text(sources.files["model.h"])
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    done = subprocess.run(
        ["g++", *flags, "-x", "c++", str(header)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_text_does_not_depend_on_hash_order() -> None:
    script = (
        "import hashlib\n"
        "from tests.support.graphs import dense_chain\n"
        "from tests.support.host import host_model\n"
        "files = host_model(dense_chain('model', (9, 8, 7, 6))).sources.files\n"
        "print(hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest())\n"
    )
    digests = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, check=True
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def test_the_text_keeps_to_a_page() -> None:
    text = generated(dense_chain("model", (9, 8, 7, 6))).files
    for name in ("model.h", "model.c", "model_weights.h"):
        assert all(len(line) <= 115 and line == line.rstrip() for line in text[name].splitlines())
        assert "\t" not in text[name] and "\n\n\n" not in text[name]


def test_an_arena_that_is_missing_or_misaligned_is_an_error(tmp_path: Path) -> None:
    """`run` touches nothing and says so, `reset` does nothing; under sanitizers."""
    graph = forms()["lstm"].sample(np.random.default_rng(0))
    program = compile_with("misplaced.c", [generated(graph, "net")], tmp_path)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [*["ARENA"] * 3, "OK", "untouched"], done.stderr


def test_equal_constants_are_stored_once() -> None:
    graph = dense_chain("twins", (4, 4, 4))
    first = graph.tensors["fc0 weights"].constant
    tensors = [
        replace(t, constant=first) if t.name == "fc1 weights" else t for t in graph.tensors.values()
    ]
    twins = Graph.build("twins", tensors, graph.ops, graph.inputs, graph.outputs)
    text = generated(twins).files["twins_weights.h"]
    assert "and 1 more alike" in text
    assert text.count("static const ") < generated(graph).files["twins_weights.h"].count(
        "static const "
    )


def _gathers() -> Graph:
    """An operator that cannot fail, and one that does where an index is too large."""
    dense = dense_chain("failing", (4, 3), ops=["first"])
    ends = (Tensor("at", (1, 2), DType.INT32), activation("z", (1, 2)))
    op = Op("gather", "second", ("y", "at"), ("z",), Gather(axis=1, batch_dims=1))
    tensors, ops = (*dense.tensors.values(), *ends), (*dense.ops, op)
    return check(Graph.build("failing", tensors, ops, ["x", "at"], ["z"]))


def test_a_failing_operator_is_named(tmp_path: Path) -> None:
    model = host_model(_gathers())
    text = model.sources.files["failing.c"]
    assert "static void failing_op0_fully_connected(" in text
    assert "static int32_t failing_op1_gather(" in text
    assert "the operator that failed" in model.sources.files["failing.h"]
    program = build([model], cmsis_nn.find(), tmp_path)
    x = np.array([[1, -2, 50, 4]], np.int8)
    given = (x, np.array([[2, 0]], np.int32))
    with HostProgram(program, [model]) as running:
        (got,) = running.run(given)
        np.testing.assert_array_equal(got, reference_outputs(model.graph, given)[0])
        with pytest.raises(LinkError, match="'second'"):
            running.run((x, np.array([[0, 3]], np.int32)))


def test_a_model_that_cannot_fail_has_no_status() -> None:
    files = generated(dense_chain("sure", (4, 3, 2))).files
    assert "static void sure_op0_fully_connected(uint8_t *arena)" in files["sure.c"]
    assert "const int32_t status = sure_operators" not in files["sure.c"]
    assert "no operator of this model can fail" in files["sure.h"]


@pytest.mark.parametrize("spread", [False, True])
def test_sanitizers_watch(tmp_path: Path, spread: bool) -> None:
    """The harness reports an arena that is too small, and a byte of an operand that is not an
    operator's to touch; were it blind to them its silence would say nothing."""
    graph = dense_chain("small", (64, 32))
    model = host_model(graph, spread=spread)
    if spread:
        first, *others = model.reaches[0]
        model = replace(model, reaches=(((first[0], first[1] - 1), *others),))
    else:
        plan = plan_of(graph)
        short = replace(plan.arena, size_bytes=plan.arena.size_bytes - 1)
        sources = generate(replace(plan, arena=short), HOST, cmsis_nn.find())
        model = replace(model, sources=sources)
    program = build([model], cmsis_nn.find(), tmp_path, sanitize=True)
    with HostProgram(program, [model]) as running, pytest.raises(LinkError, match="Sanitizer"):
        running.run(random_inputs(graph, np.random.default_rng(0)))


def test_constants_of_every_type_read_back(tmp_path: Path) -> None:
    """Extremes and awkward values of each element type survive the trip through C's literals."""
    arrays = {
        "i8": np.array([-128, 127, 0], np.int8),
        "u8": np.array([0, 255], np.uint8),
        "i16": np.array([-32768, 32767], np.int16),
        "i32": np.array([-(2**31), 2**31 - 1, 0], np.int32),
        "i64": np.array([-(2**63), 2**63 - 1, 7], np.int64),
        "f32": np.array([1e-45, 3.4028235e38, -0.1, 1.0, 0.0, 123456789.0, 1 / 3], np.float32),
        "b": np.array([True, False]),
        "none": np.zeros((0, 4), np.int8),
    }
    tensors = [
        Tensor(name, data.shape, DType(data.dtype.name), None, data)
        for name, data in arrays.items()
    ]
    graph = Graph.build("types", [activation("x", (1,)), *tensors], [], ["x"], list(arrays))
    outputs = run_graph_on_host(graph, [np.zeros(1, np.int8)])
    for (name, data), got in zip(arrays.items(), outputs, strict=True):
        assert got.tobytes() == data.tobytes(), name
