"""One place an ONNX operator: its row, and the kind that it becomes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from tests.support.onnx_models import model_of
from toolchain.errors import UnsupportedError
from toolchain.frontends.onnx.operators import operator, operators
from toolchain.frontends.onnx.reader import read
from toolchain.ops import specs

ROOT = Path(__file__).parents[2] / "toolchain"
TABLE, UNARY = ROOT / "ops" / "elementwise" / "functions.py", ROOT / "ops" / "unary"
"""The table of element-wise functions, and the family of those of one operand."""
LITERAL = re.compile(
    r'(?P<written>\.(op|answer|write)\(\s*|\.named\(\s*f?"[^"]*",\s*|\bmake\(\s*)?"([\w.]*\.)?(?P<name>[A-Z]\w*)"'
)
"""A string that may be an operator; `written` where it is what others are written as."""
LIST = re.compile(r'"(\w+(?: \w+)+) ?"')
"""A string that may be several operators."""
ALLOWED = {
    "Identity": "a function of the kind `lookup`, too",
    "LayerNormalization": "what onnxruntime's quantiser cannot take over several axes",
    "LSTM": "an operator of TFLite, too, in Coral's list of those that a TPU runs",
    "Max": "half of the name of TFLite's ArgMaxOptions",
    "Min": "half of the name of TFLite's ArgMinOptions",
}
"""Operators that other files may name, and why."""


def test_no_operator_is_named_in_two_places() -> None:
    families = {
        name: ROOT.joinpath(*spec.forms[0].reference.__module__.split(".")[1:]).parent
        for spec in specs().values()
        for name in (spec.onnx.operators if spec.onnx else ())
    }
    known = {schema.name for schema in onnx.defs.get_all_schemas()}
    places: dict[str, set[Path]] = {}
    for file in sorted(ROOT.rglob("*.py")):
        for found in LITERAL.finditer(file.read_text()):
            name = found["name"]
            home = families.get(name)
            if file.parent == home or (file == TABLE and home in (TABLE.parent, UNARY)):
                continue
            if name in known and not found["written"]:
                places.setdefault(name, set()).add(file.relative_to(ROOT))
        for listed in LIST.finditer(file.read_text()):
            if known.issuperset(words := listed[1].split()):
                for name in words:
                    places.setdefault(name, set()).add(file.relative_to(ROOT))
    several = {name: files for name, files in places.items() if len(files) > 1}
    assert not {name: files for name, files in several.items() if name not in ALLOWED}
    assert ALLOWED.keys() == several.keys()


def test_rows_say_how_they_are_read() -> None:
    for row in operators().values():
        forms = (row.stays, row.integers, row.composed, row.older, row.unread)
        assert any(forms), row.name
        assert row.quantised or not row.plain, row.name
        assert row.composed or not row.written, row.name
    assert not operator("NoSuchOperator").stays


def refusal(node: onnx.NodeProto, **constants: NDArray[np.generic]) -> str:
    """Of an operator on int32 values."""
    types = {"dtype": TensorProto.INT32, "output_dtype": TensorProto.INT32}
    model = model_of([node], {"x": (2, 3)}, ["y"], constants, opset=18, **types)
    with pytest.raises(UnsupportedError) as caught:
        read(model.SerializeToString(), Path("one.onnx"))
    return str(caught.value)


def test_a_form_that_is_missing_is_said() -> None:
    message = refusal(helper.make_node("Abs", ["x"], ["y"]))
    assert "not on int32 or int64; put a Cast to float32 before it" in message
    scattered = helper.make_node("ScatterElements", ["x", "i", "x"], ["y"], reduction="add")
    message = refusal(scattered, i=np.zeros((2, 3), np.int64))
    assert "only with constant indices and the reduction 'none'" in message
    message = refusal(helper.make_node("Trilu", ["x"], ["y"]))
    assert "has no kernel" in message


def test_the_remedy_for_integers_holds() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Abs", ["f"], ["a"]),
        helper.make_node("Cast", ["a"], ["y"], to=TensorProto.INT32),
    ]
    types = {"dtype": TensorProto.INT32, "output_dtype": TensorProto.INT32}
    data = model_of(nodes, {"x": (2, 3)}, ["y"], {}, 13, **types).SerializeToString()
    assert [op.kind for op in read(data, Path("one.onnx")).ops] == ["cast", "abs", "cast"]
