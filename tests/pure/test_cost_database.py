"""The measurements' file: shared, versioned, killed in the middle, damaged; and what reads it."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from toolchain.boards import board
from toolchain.cost import Cost, CostModel
from toolchain.cost.basis import Basis
from toolchain.cost.database import Database, Measurement
from toolchain.cost.fitted import fit_of, kernel_terms, plain_terms, rough_kernel
from toolchain.cost.key import Build, Key, _code_digest, copies_key, operator_key
from toolchain.cost.measured import MeasuredCostModel, measured_model
from toolchain.cost.predicted import only_views, predicted_model
from toolchain.deployment import measurements
from toolchain.errors import InputError
from toolchain.files.formats import DATABASE
from toolchain.ir import Graph
from toolchain.ops import forms
from toolchain.ops.lowering import lower
from toolchain.timing.kernel_shapes import read_shapes

BUILD = Build("gcc 12.2.1 -O2", "cmsis-nn-5.0.0")


def row(number: int = 0, **changes: object) -> Measurement:
    base = Measurement(
        board="netduinoplus2",
        key=Key("kernel", f"shape {number}"),
        build=BUILD,
        unit="cycles",
        basis=Basis.TRACE,
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


def test_none_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THIMBLE_MEASUREMENTS", "none")
    with Database() as nowhere:
        assert nowhere.rows() == () and nowhere.put([row(0)]) == 1
        assert len(nowhere.rows()) == 1
    assert Database().rows() == () and list(tmp_path.iterdir()) == []


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
        for m in ("3", "[3]", "[{}]", '[{"unit": []}]')
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
        raw.execute(f"PRAGMA user_version = {DATABASE.version + 1}")
    raw.close()
    with pytest.raises(InputError, match="newer Thimble"):
        database.rows()
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match="is damaged"):
        Database(damaged).rows()


VERSION_1 = """
CREATE TABLE measurement (
    board TEXT NOT NULL, kernel TEXT NOT NULL, shape TEXT NOT NULL, compiler TEXT NOT NULL,
    cmsis_nn TEXT NOT NULL, unit TEXT NOT NULL, count INTEGER NOT NULL, spread INTEGER NOT NULL,
    runs INTEGER NOT NULL, estimate INTEGER NOT NULL, measured_at INTEGER NOT NULL,
    PRIMARY KEY (board, kernel, shape, compiler, cmsis_nn)
) WITHOUT ROWID;
INSERT INTO measurement VALUES
    ('netduinoplus2', 'kernel', 'shape 0', 'gcc 12.2.1 -O2', 'cmsis-nn-5.0.0', 'instructions',
     1000, 0, 5, 500, 100),
    ('nucleo-f446re', 'kernel', 'shape 1', 'gcc 12.2.1 -O2', 'cmsis-nn-5.0.0', 'cycles',
     1001, 0, 5, 500, 100);
PRAGMA user_version = 1;
"""


def test_a_file_of_version_1_is_upgraded_and_an_export_of_it_read(
    database: Database, tmp_path: Path
) -> None:
    counted = row(0, unit="instructions", basis=Basis.TRACE)
    timed = row(1, board="nucleo-f446re", basis=Basis.MEASURED)
    database.file.parent.mkdir()
    with sqlite3.connect(database.file) as raw:
        raw.executescript(VERSION_1)
    raw.close()
    assert database.rows() == (counted, timed)
    database.put([replace(counted, unit="cycles", count=1400)])
    database.export(tmp_path / "x.json")
    with Database(database.file) as again:
        assert [(r.unit, r.count) for r in again.rows("netduinoplus2")] == [("cycles", 1400)]
    data = json.loads((tmp_path / "x.json").read_text())
    data["version"] = 1
    for entry in data["measurements"]:
        del entry["basis"]
    data["measurements"][0]["unit"] = "instructions"
    (tmp_path / "x.json").write_text(json.dumps(data))
    with Database(tmp_path / "theirs.sqlite") as theirs:
        assert theirs.import_from(tmp_path / "x.json") == 2
        assert theirs.rows() == (replace(counted, count=1400), timed)
    data["version"] = 2
    (tmp_path / "x.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"measurements\[0\]: .*basis"):
        database.import_from(tmp_path / "x.json")
    data["measurements"][0]["basis"] = data["measurements"][1]["basis"] = "predicted"
    (tmp_path / "x.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="basis is 'predicted', not measured or trace"):
        database.import_from(tmp_path / "x.json")


WRITER = """
import sys
from datetime import UTC, datetime
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
from datetime import UTC, datetime
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


@pytest.mark.slow
def test_two_processes_write_at_once(database: Database) -> None:
    """Both also create the file: the race for that is part of it."""
    processes = [start(WRITER, str(database.file), str(1000 * i), "60") for i in (1, 2)]
    assert [process.wait() for process in processes] == [0, 0]
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


def test_what_is_known_goes_before_estimates(tmp_path: Path) -> None:
    target = board("netduinoplus2")
    core, predicted = target.core, predicted_model(target)
    made = graphs(tmp_path)
    keys = [operator_key(lower(g, core), 0) for g in made]
    assert len(set(keys)) == len(made)
    assert keys == [operator_key(lower(g, core), 0) for g in graphs(tmp_path)]
    assert "int8[1,32,32,8]" in keys[0].shape and "stride=(2,2)" in keys[1].shape
    assert measured_model([], predicted) == predicted
    unit = predicted.unit
    model: CostModel = measured_model([row(key=keys[0], count=123, unit=unit)], predicted)
    first, second = (model.cost(lower(g, core), 0) for g in made[:2])
    assert first == Cost(123, Basis.TRACE)
    assert second == predicted.cost(lower(made[1], core), 0)
    assert second.basis is Basis.PREDICTED
    copied = measured_model([row(key=copies_key([64, 8]), count=40, unit=unit)], predicted)
    assert copied.copies([8, 64]).count == 40
    assert copied.copies([8, 65]) == predicted.copies([8, 65])


def test_instructions_and_cycles_are_never_added(tmp_path: Path) -> None:
    """Cycles scale estimates in instructions; instructions say nothing where cycles are known."""
    core = board("host").core
    made = graphs(tmp_path)
    predicted = predicted_model(board("host"))
    assert predicted.unit == "instructions"
    keys = [operator_key(lower(g, core), 0) for g in made]
    rows = [row(n, count=1500, estimate=1000, basis=Basis.MEASURED) for n in range(3)]
    rows.append(row(key=keys[1], unit="instructions", count=7))
    model = measured_model(rows, predicted)
    assert model.unit == "cycles"
    for graph in made[:2]:
        lowered = lower(graph, core)
        estimate = predicted.cost(lowered, 0).count
        assert model.cost(lowered, 0) == Cost(round(1.5 * estimate), Basis.PREDICTED)
    only = measured_model(rows[3:], predicted)
    assert (only.unit, only.cost(lower(made[1], core), 0).count) == ("instructions", 7)


def test_wide_and_float_operators_have_estimates_of_their_own() -> None:
    """Where nothing was fitted; those of int8 are several times too low for them."""
    rng = np.random.default_rng(4)
    target = board("host")
    model, fit = predicted_model(target), fit_of(target.core)
    tried = set()
    for name, spec in forms().items():
        graph = spec.sample(rng)
        (op,) = graph.ops
        lowered = lower(graph, target.core)
        wide = rough_kernel(op, graph, target.core)
        if kernel_terms(lowered, 0)[0] in fit.kernels or only_views(op, graph) or wide == "int8":
            continue
        tried.add(wide)
        terms = plain_terms(op, graph)
        wanted = sum(fit.kernels[wide].get(term, 0.0) * n for term, n in terms.items())
        assert model.cost(lowered, 0).count == round(wanted), name
    assert tried == {"int16 sums", "int16", "float32"}


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


def test_traces_stand_beside_measurements_and_grow_old(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A modelled figure never takes the place of a measured one, nor outlives its model."""
    name, key = "nucleo-f446re", Key("kernel", "shape")

    def put(basis: Basis, unit: str, count: int) -> None:
        database.put([measurements.taken(name, key, BUILD, unit, basis, [count], 900)])

    put(Basis.MEASURED, "cycles", 1000)
    put(Basis.TRACE, "cycles", 1100)
    rows = measurements.known_rows(database, name, BUILD)
    assert [(row.basis, row.count) for row in rows] == [("trace", 1100), ("measured", 1000)]
    model = measured_model(rows, predicted_model(board(name)))
    assert isinstance(model, MeasuredCostModel) and model.known[key].count == 1000
    assert measurements.known_rows(database, "nucleo-l476rg", BUILD) == ()
    monkeypatch.setattr(measurements, "current_build", lambda: BUILD)
    told = measurements.kept_line(name, database)
    last = datetime.fromtimestamp(max(row.measured_at for row in database.rows()), UTC).date()
    assert told.startswith(f"The plan rests on 2 kept times of kernels on {name} (measured and ")
    assert f"the last on {last})" in told and "THIMBLE_MEASUREMENTS=none before the" in told
    assert measurements.kept_line("nucleo-l476rg", database) == ""
    assert measurements.kept_line(name, Database(Path("none"))) == ""
    monkeypatch.setattr(measurements, "_reading_digest", lambda board: "of other tables")
    rows = measurements.known_rows(database, name, BUILD)
    assert [row.basis for row in rows] == ["measured"]


def test_every_core_with_a_timing_model_predicts_cycles_of_every_kind() -> None:
    """Instructions and cycles would else meet in one sum."""
    rng = np.random.default_rng(5)
    for name in ("mps2-an386", "mps2-an500", "mps3-an547", "nucleo-l4r5zi", "nucleo-h743zi"):
        target = board(name)
        model = predicted_model(target)
        assert model.unit == "cycles"
        for kind, spec in forms().items():
            graph = spec.sample(rng)
            if not only_views(graph.ops[0], graph):
                assert model.cost(lower(graph, target.core), 0).count > 0, (name, kind)


def test_waiting_for_flash_is_part_of_the_time(tmp_path: Path) -> None:
    """The same core, kernel and shape: nothing waits on the emulated board, the flash does."""
    graph = graphs(tmp_path)[5]
    counts = {
        name: predicted_model(board(name)).cost(lower(graph, board(name).core), 0).count
        for name in ("mps2-an386", "nucleo-l476rg", "nucleo-l4r5zi")
    }
    assert counts["mps2-an386"] < counts["nucleo-l476rg"] < counts["nucleo-l4r5zi"]
