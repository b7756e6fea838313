"""JSON and TOML files: limits, and errors that name the field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolchain.errors import InputError
from toolchain.files.records import (
    DEEPEST,
    decode,
    encode,
    field_of,
    parse_json,
    read_json,
    read_toml,
    record,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    count: int
    share: float = 0.5


@dataclass(frozen=True)
class Outer:
    name: str
    colour: Inner | Colour
    inner: tuple[Inner | None, ...]
    pair: tuple[int, str] = (1, "a")
    kind: Literal["x", "y"] = "x"
    by_name: Mapping[str, Inner] = field(default_factory=dict)
    good: bool = False


GOOD: dict[str, Any] = {
    "name": "é",
    "colour": "red",
    "inner": [{"count": 3}, None, {"count": -1, "share": 2}],
    "pair": [7, "b"],
    "kind": "y",
    "by_name": {"k": {"count": 1}},
    "good": True,
}


def test_a_record_is_read_with_its_defaults() -> None:
    read = record(Outer, json.loads(json.dumps(GOOD)), "f")
    assert read.inner == (Inner(3), None, Inner(-1, 2.0))
    assert read.colour is Colour.RED
    assert (read.pair, read.kind, read.good) == ((7, "b"), "y", True)
    assert read.by_name == {"k": Inner(1)}
    assert record(Outer, {"name": "", "colour": "blue", "inner": []}, "f").inner == ()


def test_what_is_read_is_written_as_it_was() -> None:
    """`encode` is the inverse of `decode`, in the order of the fields."""
    read = record(Outer, GOOD, "f")
    written = encode(read)
    assert json.loads(json.dumps(written)) == {
        **GOOD,
        "inner": [{"count": 3, "share": 0.5}, None, {"count": -1, "share": 2.0}],
        "by_name": {"k": {"count": 1, "share": 0.5}},
    }
    assert list(written) == ["name", "colour", "inner", "pair", "kind", "by_name", "good"]
    assert record(Outer, written, "f") == read


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": 3}, "f: name is 3, not a text"),
        ({"name": None}, "f: name is null, not a text"),
        ({"colour": "green"}, "f: colour is \"green\", not one of 'red', 'blue'"),
        ({"colour": ["red"]}, r"f: colour is \[\"red\"\], not one of"),
        ({"kind": True}, "f: kind is true, not one of"),
        ({"inner": {}}, r"f: inner is \{\}, not a list"),
        ({"inner": [[]]}, r"f: inner\[0\] is \[\], not an object"),
        ({"inner": [{"count": 1}, {}]}, r"f: inner\[1\]: the field 'count' is missing"),
        ({"inner": [{"count": True}]}, r"f: inner\[0\]: count is true, not a whole number"),
        ({"inner": [{"count": 1.0}]}, "count is 1.0, not a whole number"),
        ({"inner": [{"count": 2**63}]}, "beyond 64 bits"),
        ({"inner": [{"count": 1, "share": 10**400}]}, "too large"),
        ({"inner": [{"count": 1, "share": "1"}]}, 'share is "1", not a number'),
        ({"pair": [1]}, "f: pair has 1 entries, not 2"),
        ({"pair": [1, 2]}, r"f: pair\[1\] is 2, not a text"),
        ({"by_name": {"k": 1}}, "f: by_name.k is 1, not an object"),
        ({"more": 1}, "f: the field 'more' is unknown; there are name, colour"),
        ({"name": "x" * 1000, "inner": 1}, "f: inner is 1"),
    ],
)
def test_the_field_at_fault_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        record(Outer, {**GOOD, **change}, "f")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "f is not JSON"),
        (b"\xff", "f: byte 0 is no text"),
        (b"[" * 100_000, "f is nested deeper than 64 levels"),
        (b"[" * 80 + b"]" * 80, "f is nested deeper than 64 levels"),
        (b'{"a":' * 80 + b"1" + b"}" * 80, "f is nested deeper"),
        (b"9" * 5000, "f is not JSON"),
        (b"1e999", "a number that is too large"),
        (b"[1" + b"0" * 400 + b"]", "a number that is too large"),
        (b'{"a": 1, "b": {"c": 1, "c": 1}}', 'the name "c" stands twice'),
        (b"[NaN]", "NaN is no number"),
        (b"-Infinity", "is no number"),
        (b'"\\ud800"', "the half of a character"),
        (b'{"\\udc00": 1}', "the half of a character"),
        (b'{"a": 1', "f is not JSON"),
    ],
)
def test_what_is_no_json_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_json(data, "f")


def test_as_deep_as_is_allowed() -> None:
    assert parse_json(b"[" * DEEPEST + b"]" * DEEPEST, "f")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    for read in (read_json, read_toml):
        with pytest.raises(InputError, match=r"there is no file .*absent"):
            read(tmp_path / "absent")
        with pytest.raises(InputError, match="Is a directory"):
            read(tmp_path)
    (tmp_path / "a").write_text("\ufeff[1]")
    assert read_json(tmp_path / "a") == [1]


def test_the_kind_that_takes_a_value_is_taken() -> None:
    assert record(Outer, {**GOOD, "colour": {"count": 3}}, "f").colour == Inner(3)
    assert record(Outer, GOOD, "f").colour is Colour.RED


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 3000, "a = " + "9" * 5000, "a = inf", "a", "a = 1\na = 2"]
)
def test_what_is_no_toml_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(InputError, match=str(tmp_path / "a")):
        read_toml(tmp_path / "a")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, st.sampled_from(sorted(GOOD)))
def test_any_value_in_any_field_is_read_or_refused(value: object, name: str) -> None:
    try:
        read = record(Outer, {**GOOD, name: value}, "f")
    except InputError as error:
        assert "\n" not in str(error)
    else:
        again = json.loads(json.dumps(asdict(read), default=lambda c: c.value))
        assert record(Outer, again, "f") == read


@given(st.binary(max_size=60) | _JSON.map(lambda v: json.dumps(v).encode()))
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
    try:
        parse_json(data, "f")
    except InputError as error:
        assert str(error).startswith("f")


def test_one_field() -> None:
    assert field_of({"a": [1]}, "a", tuple[int, ...], "f") == (1,)
    assert field_of({}, "a", int, "f", 3) == 3
    with pytest.raises(InputError, match="f: the field 'a' is missing"):
        field_of({}, "a", int, "f")
    with pytest.raises(TypeError, match="no type that files hold"):
        decode(complex, 1, "f")
