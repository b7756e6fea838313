"""The table of element-wise functions: who makes kinds and C of it names no function."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import toolchain
from toolchain.codegen.environment import environment
from toolchain.ops.elementwise.functions import BINARY, UNARY
from toolchain.ops.unary.lookup import FUNCTIONS
from toolchain.resources import TEMPLATES

OPS = Path(toolchain.__file__).parent / "ops"
MAKERS = [
    *(OPS / "elementwise" / f"{name}.py" for name in ("kernels", "kinds", "rows")),
    *(OPS / f"{name}.py" for name in ("readers/onnx_elementwise", "unary/tables")),
]
LOOPS = sorted(path for kind in ("unary", "binary") for path in TEMPLATES.glob(f"ops/*{kind}_*"))
ROWS = (*UNARY.values(), *BINARY.values())
NAMES = {name for row in ROWS for name in (row.name, row.tflite, row.onnx) if name}


def expressions() -> dict[str, dict[str, str]]:
    module = environment().get_template("ops/_functions.c.j2").module
    found: dict[str, dict[str, str]] = module.expressions  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("path", MAKERS, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_who_makes_kinds_names_no_function(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert not texts & NAMES


def test_templates_of_loops_name_no_function() -> None:
    assert len(LOOPS) == 8
    for path in LOOPS:
        assert not set(re.findall(r'"(\w+)"', path.read_text(encoding="utf-8"))) & NAMES, path


def test_every_function_has_its_c_and_every_expression_its_function() -> None:
    found = {(name, kind) for name, kinds in expressions().items() for kind in kinds}
    wanted, called = set(), set()
    for row in ROWS:
        if row.formula.own is not None:
            (called if row.calls else wanted).add((row.name, "float32"))
        if row.integers is not None:
            (called if row.integers.calls else wanted).add((row.name, "integers"))
    assert wanted <= found <= wanted | called


def test_an_expression_calls_the_function_that_its_row_names() -> None:
    for row in ROWS:
        text = expressions().get(row.name, {}).get("float32", row.calls)
        assert set(re.findall(r"thimble_\w+", text)) == ({row.calls} if row.calls else set())


def test_rows_have_the_formulas_that_their_forms_need() -> None:
    """What TFLite quantises is computed in float32, too; what ONNX has, in a table of int8."""
    for row in UNARY.values():
        assert row.formula.own is not None or (row.int8, row.int16, row.tflite) == (None, None, "")
        assert not row.onnx or (row.table or row.onnx) in FUNCTIONS, row.name
        assert row.int8 is not None or row.int16 is None


def test_names_are_given_once() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    direct = [row.onnx for row in UNARY.values() if row.onnx and row.where is None]
    assert len(set(direct)) == len(direct)
