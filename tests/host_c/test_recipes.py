"""docs/architecture.md's recipes add what they say, by the files that they show."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.recipes import (
    RECIPES,
    copy_of_the_checkout,
    differing,
    exit_codes,
    run_python,
)
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"

REFUSED = {
    "An operator": "BUCKETIZE",
    "An element-wise function": "Cosh",
    "A splitter": "paths",
    "An allocator": "by-end",
    "A scheduler": "given",
    "An exporter": "make",
    "A report format": "front.md",
    "A board on a known chip": "black-f446",
}
"""The word that the error has without the recipe's files."""
PROGRAM = """
from pathlib import Path

import numpy as np
from onnx import helper

import toolchain
from tests.support.host import random_inputs, reference_outputs, run_graph_on_host
from tests.support.litert import run_litert
from tests.support.onnx_models import model_of
from tests.support.tflite_writer import tflite_bytes
from toolchain.frontends.onnx.reader import read
from toolchain.ops import forms
from toolchain.passes import prepare

assert Path(toolchain.__file__).parents[1] == Path.cwd()


def stored(before, after, scale, zero):
    stages = (("QuantizeLinear", before, "q" + after), ("DequantizeLinear", "q" + after, after))
    return [helper.make_node(name, [one, scale, zero], [two]) for name, one, two in stages]


x = np.random.default_rng(0).normal(0, 1.5, (3, 40)).astype(np.float32)
cosh = helper.make_node("Cosh", ["f"], ["g"])
constants = {
    "sx": np.float32(0.05), "zx": np.int8(0), "sy": np.float32(0.5), "zy": np.int8(-128)
}
ends = {"x": x.shape}, ["y"]
real = model_of([helper.make_node("Cosh", ["x"], ["y"])], *ends, {})
nodes = [*stored("x", "f", "sx", "zx"), cosh, *stored("g", "y", "sy", "zy")]
quantised = model_of(nodes, *ends, constants)
Path("cosh.onnx").write_bytes(quantised.SerializeToString())
for model, most in ((real, 2e-6), (quantised, 0.6)):
    graph = prepare(read(model.SerializeToString(), Path("cosh.onnx"))).graph
    q, p = (graph.tensors[name].quantisation for name in (*graph.inputs, *graph.outputs))
    given = x if q is None else (np.rint(x / q.scale) + q.zero_point).astype(np.int8)
    (wanted,) = reference_outputs(graph, [given])
    (got,) = run_graph_on_host(graph, [given])
    assert np.array_equal(got, wanted)
    real = got if p is None else (got.astype(np.float64) - p.zero_point) * p.scale
    near = np.abs(real - np.cosh(x)) <= most * np.cosh(x)
    print([op.kind for op in graph.ops], bool(near.all()))

for seed in range(3):
    graph = forms()["bucketize"].sample(np.random.default_rng(seed))
    (x,) = random_inputs(graph, np.random.default_rng(seed))
    boundaries = graph.ops[0].attributes.boundaries
    special = (boundaries[0], boundaries[-1], np.nan, np.inf, -np.inf)
    x.reshape(-1)[: len(special)] = special[: x.size]
    model = tflite_bytes(graph)
    Path("buckets.tflite").write_bytes(model)
    (wanted,) = run_litert(model, [x])
    assert np.array_equal(reference_outputs(graph, [x])[0], wanted)
    assert np.array_equal(run_graph_on_host(graph, [x])[0], wanted)
    print(graph.ops[0].kind, bool(x.size >= len(special)))
"""


@dataclass(frozen=True)
class Copies:
    """Two copies of the checkout: as it is, and with all recipes followed. Both have the models
    that commands name. `printed`: what PROGRAM printed in the second.
    """

    plain: Path
    followed: Path
    printed: list[str]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    folder = tmp_path_factory.mktemp("recipes")
    plain = copy_of_the_checkout(folder / "plain")
    followed = copy_of_the_checkout(folder / "followed", RECIPES)
    printed = run_python(followed, PROGRAM)
    for model in ("buckets.tflite", "cosh.onnx"):
        shutil.copy(followed / model, plain / model)
    return Copies(plain, followed, printed)


@pytest.mark.slow
def test_an_added_function_and_operator_compute_what_their_references_do(copies: Copies) -> None:
    assert copies.printed[:2] == ["['float_function'] True", "['lookup'] True"]
    assert copies.printed[2:] == ["bucketize True"] * 3


@pytest.mark.slow
def test_the_first_command_of_each_is_refused_without_its_files(
    copies: Copies, capfd: pytest.CaptureFixture[str]
) -> None:
    codes = exit_codes(copies.plain, [recipe.commands[0] for recipe in RECIPES])
    assert codes == [2] * len(REFUSED)
    errors = re.split("^error: ", capfd.readouterr().err, flags=re.MULTILINE)[1:]
    assert [recipe.title for recipe in RECIPES] == list(REFUSED)
    assert all(word in error for word, error in zip(REFUSED.values(), errors, strict=True)), errors


@pytest.mark.slow
def test_all_commands_succeed_with_them_and_no_other_file_changes(copies: Copies) -> None:
    recipes = [recipe for recipe in RECIPES if not recipe.needs_arm]
    assert len(recipes) >= len(RECIPES) - 1
    commands = [command for recipe in recipes for command in recipe.commands]
    assert exit_codes(copies.followed, commands) == [0] * len(commands)
    assert differing(copies.followed, copies.plain) == frozenset().union(
        *(recipe.files for recipe in RECIPES)
    )
    table = (copies.followed / "docs" / "operators.md").read_text(encoding="utf-8")
    assert "\n| bucketize | BUCKETIZE |" in table and "Cosh" in table
    quickest = plan_model(DIGITS, "netduinoplus2", PlanOptions(max_slowdown=0.0)).arena.size_bytes
    _, rows = (copies.followed / "front.md").read_text(encoding="utf-8").split("|---|---|\n")
    assert rows.startswith(f"| 0.00% | {quickest:,} B |\n")
    assert (copies.followed / "build" / "make" / "run").is_file()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc")
def test_commands_for_a_board_of_arms_succeed(copies: Copies) -> None:
    commands = [command for recipe in RECIPES if recipe.needs_arm for command in recipe.commands]
    assert commands and exit_codes(copies.followed, commands) == [0] * len(commands)
