"""The measurements' file: shared, versioned, killed in the middle, damaged; and what reads it."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from toolchain.boards import board
from toolchain.cost import CostModel
from toolchain.cost.analytic import FLOAT_UNIT, WIDE_ELEMENTS, WIDE_SUMS, AnalyticCostModel
from toolchain.cost.database import SCHEMA_VERSION, Database, Measurement
from toolchain.cost.key import Build, Key, _code_digest, copies_key, operator_key
from toolchain.cost.measured import measured_model
from toolchain.errors import InputError
from toolchain.ir import DType, Graph
from toolchain.ops import forms
from toolchain.ops.lowering import lower
from toolchain.timing.kernel_shapes import read_shapes

BUILD = Build("gcc 12.2.1 -O2", "cmsis-nn-5.0.0")


def row(number: int = 0, **changes: object) -> Measurement:
    base = Measurement(
        board="netduinoplus2",
        key=Key("kernel", f"shape {number}"),
        build=BUILD,
        unit="instructions",
        count=1000 + number,
        spread=0,
        runs=5,
        estimate=500,
        measured_at=100,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "deep" / "m.sqlite")


def test_a_missing_file_reads_as_empty_and_is_not_made(database: Database) -> None:
    assert database.rows() == ()
    assert not database.file.exists()


def test_what_is_put_is_there_and_filtered(database: Database) -> None:
    other = row(1, board="mps2-an500")
    older = row(2, build=Build("gcc 9", BUILD.cmsis_nn))
    assert database.put([row(), other, older]) == 3
    with Database(database.file) as again:
        assert again.rows() == tuple(sorted((row(), other, older), key=lambda r: (r.board, r.key)))
        assert again.rows("mps2-an500") == (other,)
        assert again.rows("netduinoplus2", BUILD) == (row(),)
        again.put([row(count=7, measured_at=50)])
        assert again.rows("netduinoplus2", BUILD) == (row(count=7, measured_at=50),)


def test_import_takes_what_is_newer_and_all_or_nothing(database: Database, tmp_path: Path) -> None:
    database.put([row(0), row(1, measured_at=300)])
    with Database(tmp_path / "theirs.sqlite") as theirs:
        theirs.put([row(0, count=5, measured_at=200), row(1, count=6), row(2)])
        assert theirs.export(tmp_path / "x.json") == 3
    assert database.import_from(tmp_path / "x.json") == 2
    assert [r.count for r in database.rows()] == [5, 1001, 1002]
    data = json.loads((tmp_path / "x.json").read_text())
    data["measurements"][0]["count"] = 9
    data["measurements"][0]["measured_at"] = 900
    data["measurements"][2]["unit"] = None
    (tmp_path / "x.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"measurements\[2\]: unit is null, not a text"):
        database.import_from(tmp_path / "x.json")
    assert [r.count for r in database.rows()] == [5, 1001, 1002]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "thimble-measurements", "version": 99, "measurements": []}']
    + [
        f'{{"format": "thimble-measurements", "version": 1, "measurements": {m}}}'
        for m in ("3", "[3]", "[{}]")
    ],
)
def test_other_files_are_refused(database: Database, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError):
        database.import_from(tmp_path / "x.json")


def test_a_newer_or_damaged_file_is_told(database: Database, tmp_path: Path) -> None:
    database.put([row()])
    database.close()
    with sqlite3.connect(database.file) as raw:
        raw.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    raw.close()
    with pytest.raises(InputError, match="newer Thimble"):
        database.rows()
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match="is damaged"):
        Database(damaged).rows()


WRITER = """
import sys
from pathlib import Path
from toolchain.cost.database import Database
from tests.pure.test_cost_database import row
with Database(Path(sys.argv[1])) as database:
    first = int(sys.argv[2])
    print("ready", flush=True)
    for number in range(int(sys.argv[3])):
        database.put([row(first + number), row(0, measured_at=number)])
"""
ENDLESS = """
import sys
from pathlib import Path
from toolchain.cost.database import Database
connection = Database(Path(sys.argv[1]))._connected()
connection.execute("BEGIN IMMEDIATE")
for number in range(10**9):
    connection.execute("UPDATE measurement SET count = count + 1")
    if number == 50:
        print("ready", flush=True)
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    folder = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)


def test_two_processes_write_at_once(database: Database) -> None:
    """Both also create the file: the race for that is part of it."""
    processes = [start(WRITER, str(database.file), str(1000 * i), "60") for i in (1, 2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    for process in processes:
        assert process.stdout is not None
        process.stdout.close()
    assert len(database.rows()) == 121


def test_a_process_killed_in_the_middle_of_writing_leaves_what_was_there(
    database: Database,
) -> None:
    database.put([row(number) for number in range(200)])
    before = database.rows()
    database.close()
    with start(ENDLESS, str(database.file)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
    assert database.rows() == before
    assert database.put([row(999)]) == 1


def graphs(tmp_path: Path) -> tuple[Graph, ...]:
    file = tmp_path / "shapes.json"
    same = {"input": [1, 32, 32, 8], "kernel": [3, 3], "padding": "same"}
    shapes = [
        {"kind": "conv2d", "channels": 8, **same},
        {"kind": "conv2d", "channels": 8, **same, "stride": [2, 2]},
        {"kind": "depthwise_conv2d", **same},
        {"kind": "max_pool2d", **same},
        {"kind": "add", "input": [1, 32, 32, 8]},
        {"kind": "fully_connected", "input": [1, 64], "channels": 10},
        {"kind": "softmax", "input": [1, 10]},
    ]
    file.write_text(json.dumps(shapes))
    return read_shapes(file)


def test_measured_costs_go_before_estimates(tmp_path: Path) -> None:
    core = board("netduinoplus2").core
    made = graphs(tmp_path)
    keys = [operator_key(lower(g, core), 0) for g in made]
    assert len(set(keys)) == len(made)
    assert keys == [operator_key(lower(g, core), 0) for g in graphs(tmp_path)]
    assert "int8[1,32,32,8]" in keys[0].shape and "stride=(2,2)" in keys[1].shape
    assert measured_model([]) == AnalyticCostModel()
    model: CostModel = measured_model([row(key=keys[0], count=123)])
    first, second = (model.cost(lower(g, core), 0) for g in made[:2])
    assert (first.count, first.measured) == (123, True)
    assert second == AnalyticCostModel().cost(lower(made[1], core), 0)
    assert not second.measured
    copied = measured_model([row(key=copies_key([64, 8]), count=40)])
    assert copied.copies([8, 64], core).count == 40
    assert copied.copies([8, 65], core) == AnalyticCostModel().copies([8, 65], core)


def test_estimates_are_scaled_where_the_board_counts_cycles(tmp_path: Path) -> None:
    core = board("nucleo-f446re").core
    made = graphs(tmp_path)
    rows = [row(n, unit="cycles", count=1500, estimate=1000) for n in range(3)]
    model = measured_model(rows)
    assert model.unit == "cycles"
    estimate = AnalyticCostModel().cost(lower(made[0], core), 0).count
    assert model.cost(lower(made[0], core), 0).count == round(1.5 * estimate)


def test_wide_and_float_operators_have_estimates_of_their_own() -> None:
    """Those of int8 are several times too low for them, on every core."""
    rng = np.random.default_rng(4)
    core = board("mps2-an386").core
    for name, spec in forms().items():
        graph = spec.sample(rng)
        (op,) = graph.ops
        macs = spec.macs(op, graph)
        if spec.dtypes == {DType.INT16}:
            fit = WIDE_SUMS if macs else WIDE_ELEMENTS
        elif spec.dtypes == {DType.FLOAT32}:
            fit = FLOAT_UNIT
        else:
            continue
        elements = sum(graph.tensors[output].elements for output in op.outputs)
        wanted = round(fit.per_mac * macs + fit.per_element * elements + fit.per_call)
        assert AnalyticCostModel().cost(lower(graph, core), 0).count == wanted, name


def test_every_kind_has_a_key_without_addresses() -> None:
    rng = np.random.default_rng(3)
    core = board("mps2-an386").core
    for spec in forms().values():
        graph = spec.sample(rng)
        key = operator_key(lower(graph, core), 0)
        assert spec.kind in key.shape and " at 0x" not in key.shape, key


def test_a_kernel_that_a_template_writes_out_is_another_where_the_template_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = board("mps2-an386").core
    graph = forms()["abs.float32"].sample(np.random.default_rng(3))
    before = operator_key(lower(graph, core), 0)
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "unary_f32.c.j2").write_text("other")
    monkeypatch.setattr("toolchain.cost.key.TEMPLATES", tmp_path)
    _code_digest.cache_clear()
    after = operator_key(lower(graph, core), 0)
    _code_digest.cache_clear()
    assert before.shape == after.shape and before.kernel != after.kernel


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "a list"),
        ("[3]", "kernel 0"),
        ('[{"kind": "conv2d"}]', "'input' is missing"),
        ('[{"kind": "wave"}]', "'wave'"),
        ('[{"kind": "add", "input": [1, -2]}]', "positive"),
        ('[{"kind": "max_pool2d", "input": [1, 2, 2, 1], "kernel": [3, 3]}]', "kernel 0"),
    ],
)
def test_bad_shapes_are_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(InputError, match=said):
        read_shapes(tmp_path / "s.json")
