"""docs/architecture.md adds an element-wise function by one row and one line of C: so it is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TABLE = Path("toolchain/ops/elementwise/functions.py")
C = Path("templates/ops/_functions.c.j2")
ADDED = {
    TABLE: ("_UNARY = (\n", re.findall(r"```python\n(Unary\(.*?\))\n```", TEXT, re.DOTALL)),
    C: ("{% set expressions = {\n", re.findall(r"```jinja\n(.*?)```", TEXT, re.DOTALL)),
}
UNREAD = Path("toolchain/frontends/onnx/operators/unread.py")
PROGRAM = """
from pathlib import Path

import numpy as np
from onnx import helper

import toolchain
from tests.support.host import reference_outputs, run_graph_on_host
from tests.support.onnx_models import model_of
from toolchain.errors import UnsupportedError
from toolchain.frontends.onnx.reader import read
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
for model, most in ((real, 2e-6), (model_of(nodes, *ends, constants), 0.6)):
    try:
        graph = prepare(read(model.SerializeToString(), Path("cosh.onnx"))).graph
    except UnsupportedError as error:
        print("refused:", str(error).replace(chr(10), " "))
        continue
    q, p = (graph.tensors[name].quantisation for name in (*graph.inputs, *graph.outputs))
    given = x if q is None else (np.rint(x / q.scale) + q.zero_point).astype(np.int8)
    (wanted,) = reference_outputs(graph, [given])
    (got,) = run_graph_on_host(graph, [given])
    assert np.array_equal(got, wanted)
    real = got if p is None else (got.astype(np.float64) - p.zero_point) * p.scale
    near = np.abs(real - np.cosh(x)) <= most * np.cosh(x)
    print([op.kind for op in graph.ops], bool(near.all()))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout as far as models are read and their C is run on this machine."""
    copy = tmp_path / "checkout"
    for name in ("toolchain", "templates"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("boards", "runtime_c", "tests"):
        (copy / name).symlink_to(ROOT / name)
    return copy


def run(checkout: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_row_and_its_c_add_a_function(checkout: Path) -> None:
    before = run(checkout)
    assert all(line.startswith("refused:") and "Cosh" in line for line in before), before
    for file, (begin, shown) in ADDED.items():
        text = (checkout / file).read_text(encoding="utf-8")
        assert len(shown) == 1 and text.count(begin) == 1
        added = f"{shown[0]},\n" if file == TABLE else shown[0]
        (checkout / file).write_text(text.replace(begin, begin + added), encoding="utf-8")
    unread = (checkout / UNREAD).read_text(encoding="utf-8")
    assert unread.count('"Cosh", ') == 1
    (checkout / UNREAD).write_text(unread.replace('"Cosh", ', ""), encoding="utf-8")
    assert run(checkout) == [
        "['float_function'] True",
        "['lookup'] True",
    ]
