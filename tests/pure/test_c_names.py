"""Names from model files made safe for C, numbers as literals, long lines broken."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolchain.codegen.arrays import c_float, rows
from toolchain.codegen.layout import LINE_WIDTH, wrap
from toolchain.codegen.names import (
    Names,
    identifier,
    model_identifier,
    tensor_identifier,
)
from toolchain.files import texts
from toolchain.resources import RUNTIME_C, TEMPLATES

C_KEYWORDS = {"int", "for", "while", "static", "register", "class", "new", "true"}


@pytest.mark.slow
@given(st.text())
def test_identifiers_are_c_and_no_keywords(text: str) -> None:
    for name in (identifier(text), model_identifier(text), tensor_identifier(text, "input")):
        assert re.fullmatch(r"[a-z0-9][a-z0-9_]*", name)
        assert "__" not in name
        assert len(name) <= 64
    assert not identifier(text)[0].isdigit() and identifier(text) not in C_KEYWORDS
    assert not model_identifier(text)[0].isdigit()


@given(st.text(alphabet=st.characters() | st.sampled_from("*/?;\\\n"), max_size=200))
def test_comments_stay_comments(text: str) -> None:
    safe = texts.c_comment(text)
    assert "*/" not in safe and "/*" not in safe and "??" not in safe
    assert safe.isascii() and safe.isprintable()
    assert len(safe) <= 60


def test_a_row_of_question_marks_has_no_trigraph() -> None:
    assert "??" not in texts.c_comment("a???/b????")


@given(st.text(alphabet=st.characters() | st.sampled_from('[]"$;#@\\\n<>*&'), max_size=50))
def test_texts_stay_where_they_are_put(text: str) -> None:
    line = texts.line_comment(text)
    assert line.isascii() and line.isprintable() and "[" not in line
    argument = texts.cmake_string(text)
    assert argument[0] == argument[-1] == '"' and "\n" not in argument
    inside = re.sub(r"\\.", "", argument[1:-1])
    assert not set(inside) & set('"\\$;#@')
    assert json.loads(texts.json_string(text)) == text
    marked = texts.markdown(text)
    assert not set(marked) & set("<>\n")
    assert not set(re.sub(r"\\.", "", marked)) & set("\\[]*`")


@given(st.text(max_size=50))
def test_string_literals_say_the_same_bytes(text: str) -> None:
    literal = texts.c_string(text)
    assert literal.isascii() and literal.isprintable()
    inside = re.sub(rb"\\(\d{3})", lambda m: bytes([int(m[1], 8)]), literal[1:-1].encode())
    assert inside == text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("text", "direction", "expected"),
    [
        ("serving_default_image:0", "input", "image"),
        ("StatefulPartitionedCall:0", "output", "data"),
        ("StatefulPartitionedCall_1:0", "output", "data"),
        ("input", "input", "data"),
        ("input_1", "input", "1"),
        ("model/Ünïcode-Layer", "output", "model_unicode_layer"),
        ("x_quantize", "input", "x_quantize_tensor"),
        ("x_quantize_all", "input", "x_quantize_all_tensor"),
        ("", "output", "data"),
    ],
)
def test_tensor_identifiers(text: str, direction: str, expected: str) -> None:
    assert tensor_identifier(text, direction) == expected


@pytest.mark.parametrize("text", ["string", "stdint", "arm_nnfunctions", "thimble_conv", "int"])
def test_model_names_do_not_hide_headers(text: str) -> None:
    assert model_identifier(text) == f"model_{text}"


def test_fused_names_keep_their_first_and_last() -> None:
    name = "model/relu/Relu;model/batch_normalization/FusedBatchNormV3;model/conv2d/Conv2D1"
    assert texts.c_comment(name) == "model/relu/Relu;...;model/conv2d/Conv2D1"


def test_names_are_handed_out_once() -> None:
    names = Names()
    assert [names.unique("a") for _ in range(3)] == ["a", "a_2", "a_3"]
    assert names.unique("a_2") == "a_2_2"


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_read_back(value: float) -> None:
    text = c_float(value)
    assert text.endswith("f") and ("." in text or "e" in text)
    assert np.float32(float(text[:-1])).tobytes() == np.float32(value).tobytes()


def test_rows_break_with_the_innermost_dimension() -> None:
    lines = rows(np.arange(-100, -60, dtype=np.int8).reshape(2, 20)).splitlines()
    assert [len(line.split(",")) - 1 for line in lines] == [10, 10, 10, 10]
    lines = rows(np.arange(40, dtype=np.int8).reshape(8, 5)).splitlines()
    assert [len(line.split(",")) - 1 for line in lines] == [26, 14]
    assert rows(np.zeros(0, np.int8)).strip() == "0,"


def test_wrapped_lines_say_the_same() -> None:
    call = "    f(" + ", ".join(f"argument_{i}(a, {i})" for i in range(30)) + ");"
    lines = wrap(call).splitlines()
    assert len(lines) > 1 and all(len(line) <= LINE_WIDTH for line in lines)
    assert re.sub(r"\s+", "", wrap(call)) == re.sub(r"\s+", "", call)
    numbers = "    f(" + ", ".join(f"/*number_{i}=*/{i}" for i in range(30)) + ");"
    assert all(len(line) <= LINE_WIDTH for line in wrap(numbers).splitlines())
    assert re.sub(r"\s+", "", wrap(numbers)) == re.sub(r"\s+", "", numbers)
    string = '    g("' + "a, " * 60 + '");'
    assert wrap(string) == string
    assert wrap("/* " + "x, " * 60 + "*/").count("\n") == 0


def test_what_follows_a_bracket_is_indented_as_what_lies_before_it() -> None:
    """Also where the bracket was opened some lines above."""
    row = "{" + ", ".join(f".number_{i} = {i}" for i in range(12)) + "}"
    lines = wrap(f"    .rows = {{{row}, {row}}}, .last = 1,").splitlines()
    starts = [(len(line) - len(line.lstrip()), line.lstrip()[0]) for line in lines]
    column = len("    .rows = {")
    assert [start for start in starts if start != (column + 1, ".")] == [
        (4, "."),
        (column, "{"),
        (4, "."),
    ]


def test_every_documented_macro_exists() -> None:
    """The table of what a user can define, against the templates and the kernels' headers."""
    document = Path(__file__).parents[2] / "docs" / "generated-c.md"
    macros = re.findall(r"^\| `(<NAME>_\w+|THIMBLE_\w+)", document.read_text(), re.MULTILINE)
    templates = "".join(path.read_text() for path in TEMPLATES.glob("model*.j2"))
    named = templates.replace("{{ NAME }}", "<NAME>") + "".join(
        path.read_text() for path in RUNTIME_C.rglob("*.h")
    )
    assert len(macros) >= 5
    for macro in macros:
        asked = (f"#ifdef {macro}", f"#ifndef {macro}", f"defined({macro})")
        assert any(text in named for text in asked), macro
