"""Databases of sweeps and of measurements that were damaged, or are of something else."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolchain.cost.basis import Basis
from toolchain.cost.database import Database, Measurement
from toolchain.cost.key import Build, Key
from toolchain.errors import InputError
from toolchain.files import databases
from toolchain.planning.options import PlanOptions
from toolchain.sweep.cases import Case
from toolchain.sweep.store import Store
from toolchain.sweep.work import Done

CASE = Case("plan", "m [1].tflite", "00", "host", PlanOptions(), (("ram", "4K"),), None, 0, ())
FIELDS = {
    "model": "m",
    "arena_bytes": 160,
    "proved_optimal": True,
    "latency": {"milliseconds": 0.5, "total": 84000, "unit": "cycles", "basis": "predicted"},
}
AGAIN = "thimble sweep 'm [1].tflite' --boards host --do plan --option ram=4K --out"
MUTATIONS = 150
INVALID = b"CAST(x'ff00fe' AS TEXT)".decode()


def kept_sweep(file: Path) -> Path:
    with Store(file) as store:
        number = store.begin("thimble sweep", [CASE])
        store.put(CASE, Done(FIELDS, None, True, 1.5))
        store.end(number)
    return file


def read_sweep(file: Path) -> None:
    with Store(file) as store:
        number = store.begin("thimble sweep", [CASE])
        store.known([CASE])
        store.before(number)
        store.put(CASE, Done(FIELDS, None, True, 1.5))
        store.end(number)


def kept_measurement(file: Path) -> Path:
    row = Measurement(
        "host", Key("k", "s"), Build("gcc", "5"), "cycles", Basis.MEASURED, 9, 1, 5, 8, 100
    )
    with Database(file) as database:
        database.put([row])
    return file


def read_measurements(file: Path) -> None:
    with Database(file) as database:
        for row in database.rows():
            row.to_json().encode()
        database.put(database.rows())


KEPT: dict[str, tuple[Callable[[Path], Path], Callable[[Path], None]]] = {
    "sweep": (kept_sweep, read_sweep),
    "measurements": (kept_measurement, read_measurements),
}
FILES = pytest.mark.parametrize(("make", "read"), KEPT.values(), ids=KEPT)


def change(file: Path, statement: str, values: tuple[object, ...] = ()) -> None:
    connection = sqlite3.connect(file)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("fields", "{bad", "fields is not JSON"),
        ("fields", "", "fields is not JSON"),
        ("fields", "null", "fields is a NoneType"),
        ("fields", "[1, 2]", "fields is a list"),
        ("fields", b"\xff\0", "fields is a bytes"),
        ("fields", 5.5, "not an object"),
        ("fields", "[" * 100_000, "nested deeper"),
        ("fields", '{"a": NaN}', "NaN is no number"),
        ("fields", '{"a": 1e999}', "too large"),
        ("fields", '{"a": 1%s}' % ("0" * 400), "too large"),
        ("fields", '{"a": 1, "a": 2}', "stands twice"),
        ("fields", '{"model": 1}', "model is 1, not a text"),
        ("fields", '{"arena_bytes": "x"}', 'arena_bytes is "x"'),
        ("fields", '{"arena_bytes": -1}', "arena_bytes is -1, which is negative"),
        ("fields", '{"ram_bytes": [1]}', "ram_bytes"),
        ("fields", '{"flash_bytes": 100000000000000000000}', "beyond 64 bits"),
        ("fields", '{"differing": 1.5}', "differing is 1.5"),
        ("fields", '{"proved_optimal": 7}', "proved_optimal"),
        ("fields", '{"latency": 3}', "latency"),
        ("fields", '{"predicted": [{}]}', "predicted"),
        ("fields", '{"latency": {"milliseconds": "abc"}}', "milliseconds"),
        ("fields", '{"latency": {"milliseconds": -1}}', "negative"),
        ("fields", '{"latency": {"basis": 7}}', "basis is 7"),
        ("error", "{", "error is not JSON"),
        ("error", '{"a": 1}', "error: the field 'kind' is missing"),
        ("error", '{"kind": 1, "message": ""}', "error: kind is 1"),
        ("error", "[]", "error"),
        ("error", b"\0", "error is a bytes"),
        ("seconds", "soon", "seconds is a str"),
        ("seconds", float("inf"), "seconds is a float, not a finite number"),
        ("seconds", -1.0, "negative"),
    ],
)
def test_a_damaged_row_is_named_with_the_command_that_computes_it_again(
    tmp_path: Path, column: str, value: object, said: str
) -> None:
    file = kept_sweep(tmp_path / "s.sqlite")
    change(file, f"UPDATE result SET {column} = ?", (value,))
    with pytest.raises(InputError) as caught:
        read_sweep(file)
    assert f"the row of `{CASE.name}` (key {CASE.key}) is damaged" in caught.value.message
    assert said in caught.value.message and len(caught.value.message) < 500
    (remedy,) = caught.value.remedies
    assert remedy == f"{AGAIN} {file} --again"
    with Store(file) as store:  # which puts the row anew
        store.put(CASE, Done(FIELDS, None, True, 1.5))
    read_sweep(file)


@pytest.mark.parametrize("value", ["x", b"\0", -1, float("inf")])
@pytest.mark.parametrize("column", ["arena_bytes", "milliseconds", "differing"])
def test_a_damaged_row_of_the_sweep_before_is_named(
    tmp_path: Path, column: str, value: object
) -> None:
    file = kept_sweep(tmp_path / "s.sqlite")
    change(file, f"UPDATE result SET {column} = ?", (value,))
    with pytest.raises(InputError, match=f"the row of key '{CASE.key}' is damaged: {column}"):
        read_sweep(file)
    with Store(file) as store:
        assert store.before(2, {CASE.key}) == {}


def test_texts_that_are_no_utf_8_are_told_with_their_row(tmp_path: Path) -> None:
    file = kept_sweep(tmp_path / "s.sqlite")
    change(file, f"UPDATE result SET fields = {INVALID}")
    with pytest.raises(InputError, match="fields: byte 0 is no text"):
        read_sweep(file)
    file = kept_measurement(tmp_path / "m.sqlite")
    change(file, f"UPDATE measurement SET unit = {INVALID}")
    with pytest.raises(InputError, match=r"the row of board 'host'.* is damaged: .*no UTF-8"):
        read_measurements(file)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *((name, value) for name in ("count", "runs") for value in ("x", b"\0", -1, 1.5)),
        *((name, value) for name in ("board", "shape", "unit", "basis") for value in (b"\0", b"")),
        ("basis", "guessed"),
        ("estimate", float("inf")),
    ],
)
def test_a_damaged_measurement_is_named(tmp_path: Path, column: str, value: object) -> None:
    file = kept_measurement(tmp_path / "m.sqlite")
    change(file, f'UPDATE measurement SET "{column}" = ?', (value,))
    with pytest.raises(InputError, match=r"the row of board .* kernel 'k'.* is damaged") as caught:
        read_measurements(file)
    assert caught.value.remedies == (f"delete {file}, and import or measure again",)


@FILES
def test_any_damaged_bytes_are_read_or_told(tmp_path: Path, make: Any, read: Any) -> None:
    whole = make(tmp_path / "whole.sqlite").read_bytes()
    rng = random.Random(32)
    told = 0
    for number in range(MUTATIONS):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 4, 40))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if number % 5 == 0:
            del data[rng.randrange(1, len(data)) :]
        file = tmp_path / f"{number}.sqlite"
        file.write_bytes(data)
        try:
            read(file)
        except InputError as error:
            told += str(file) in str(error)
        file.unlink()
    assert told > MUTATIONS / 10


@FILES
def test_a_database_of_something_else_stays_as_it_is(tmp_path: Path, make: Any, read: Any) -> None:
    file = tmp_path / "other.sqlite"
    change(file, "CREATE TABLE bookmarks (a)")
    before = file.read_bytes()
    with pytest.raises(InputError, match=r"something else|holds no results"):
        read(file)
    assert file.read_bytes() == before


@FILES
def test_a_locked_file_is_told(
    tmp_path: Path, make: Any, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "WAIT_SECONDS", 0.0)
    file = make(tmp_path / "kept.sqlite")
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(InputError, match="is locked"):
            read(file)
    finally:
        holder.close()
