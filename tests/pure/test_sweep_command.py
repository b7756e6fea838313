"""`thimble sweep`: rows, what is known, what is killed, gates, JUnit, the page."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import which_board
from tests.support import yolo
from toolchain.cli import run as thimble
from toolchain.cli.sweep import SweepFile
from toolchain.files.records import read_toml, record
from toolchain.resources import RUNTIME_C

ROOT = RUNTIME_C.parent
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
OF_THIS_RUN = ("seconds", "cached")


def swept(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    assert thimble(["sweep", *map(str, arguments), "--json", "-"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What does not depend on when it was computed, and where."""
    return [{name: row[name] for name in row if name not in OF_THIS_RUN} for row in rows]


@pytest.mark.slow
def test_rows_are_what_the_command_says_and_the_file_is_read_by_sqlite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.sqlite"
    given = (DIGITS, "--boards", "netduinoplus2,mps2-an500", "--ram", "none,4K", "-o", file)
    found = swept(capsys, *given, "-j", "2")
    assert [found[name] for name in ("done", "failed", "unfit", "cached")] == [4, 0, 0, 0]
    assert [(row["board"], row["options"]) for row in found["rows"]] == [
        ("netduinoplus2", {}),
        ("netduinoplus2", {"ram": "4K"}),
        ("mps2-an500", {}),
        ("mps2-an500", {"ram": "4K"}),
    ]
    row = found["rows"][1]
    assert thimble(["plan", str(DIGITS), "-b", "netduinoplus2", "--ram", "4K", "--json", "-"]) == 0
    alone = json.loads(capsys.readouterr().out)
    same = set(alone) - {"operators", "tensors", "buffers", "seconds", "json_version"}
    assert found["json_version"] == alone["json_version"]  # of the document, not of a row
    assert {name: row[name] for name in same} == {name: alone[name] for name in same}
    connection = sqlite3.connect(file)
    kept = connection.execute("SELECT board, options, ram_bytes, milliseconds, ok FROM latest")
    assert kept.fetchall() == [
        (r["board"], json.dumps(r["options"]), r["ram_bytes"], r["latency"]["milliseconds"], 1)
        for r in found["rows"]
    ]
    connection.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["rows.sqlite"]

    known = swept(capsys, *given)
    assert known["cached"] == 4
    assert plain(known["rows"]) == plain(found["rows"])


@pytest.mark.slow
def test_a_sweep_file_and_what_the_command_line_puts_over_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "models").mkdir()
    for name in ("one", "two"):
        shutil.copy(DIGITS, tmp_path / "models" / f"{name}.tflite")
    whole = tmp_path / "sweep.toml"
    whole.write_text(
        'models = ["models/*.tflite"]\nboards = ["mps2-an500"]\ndo = ["plan"]\n'
        '[options]\nno-split = [false, true]\nplan = "fast"\n'
        '[groups]\n"odd ones" = ["o?e.tflite"]\n"all" = ["*"]\n'
    )
    page = tmp_path / "page.html"
    to = ("-o", tmp_path / "r.sqlite", "--html", page)
    found = swept(capsys, whole, "-b", "netduinoplus2", "-j", "2", *to)
    assert [(row["model"], row["board"], row["options"]) for row in found["rows"]] == [
        (model, "netduinoplus2", {"no-split": split, "plan": "fast"})
        for model in ("one", "two")
        for split in ("false", "true")
    ]
    text = page.read_text().partition('<script id="document" type="application/json">')[2]
    rows = json.loads(text.partition("</script>")[0])["rows"]
    assert [row["group"] for row in rows] == ["odd ones"] * 2 + ["all"] * 2
    groups = record(SweepFile, read_toml(whole), str(whole))
    data = which_board.kept(tmp_path / "r.sqlite", groups, "01234567")
    assert data == json.loads(which_board.as_text(data))
    again = which_board.page(data)
    assert "commit 01234567" in again.made
    assert [(row.model, row.group, row.arena) for row in again.rows] == [
        (row["model"], row["group"], row["arena"]) for row in rows[1::2]
    ]


@pytest.mark.slow
def test_a_detector_with_and_without_its_decoding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.onnx").write_bytes(yolo.listed(channels_last=False, logits=False))
    file = tmp_path / "sweep.toml"
    file.write_text(
        'models = ["model.onnx"]\nboards = ["netduinoplus2"]\n'
        '[options]\nfloat = true\ndecode = ["none", "yolo:score_threshold=0.4,max_detections=5"]\n'
    )
    bare, decoded = swept(capsys, file, "-o", tmp_path / "rows.sqlite", "-j", "1")["rows"]
    assert decoded["options"]["decode"] == "yolo:score_threshold=0.4,max_detections=5"
    assert decoded["flash_bytes"] > bare["flash_bytes"] or decoded["ram_bytes"] > bare["ram_bytes"]


@pytest.mark.slow
def test_a_changed_model_is_computed_again_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one that has become none: a row that fails, and is not computed again."""
    model, other, file = tmp_path / "m.tflite", tmp_path / "o.tflite", tmp_path / "r.sqlite"
    shutil.copy(DIGITS, model)
    shutil.copy(DIGITS, other)
    assert (
        swept(capsys, model, other, "-b", "netduinoplus2", "-o", file, "-j", "1")["changes"][
            "changes"
        ]
        == []
    )
    model.write_bytes(model.read_bytes()[:-300])
    junit = tmp_path / "junit.xml"
    line = ["sweep", str(model), str(other), "-b", "netduinoplus2", "-o", str(file), "-j", "1"]
    assert thimble([*line, "--json", str(tmp_path / "out.json"), "--junit", str(junit)]) == 1
    found = json.loads((tmp_path / "out.json").read_text())
    assert [row["cached"] for row in found["rows"]] == [False, True]
    assert found["rows"][0]["error"]["kind"] == "input"
    changed = found["changes"]["changes"]
    assert {one["figure"] for one in changed} >= {"ok", "arena_bytes", "ram_bytes"}
    assert {one["case"] for one in changed} == {f"plan {model} --board netduinoplus2"}
    (suite,) = ElementTree.parse(junit).getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "2",
        "failures": "0",
        "errors": "1",
        "skipped": "0",
    }
    assert "1 of 2 rows failed" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_gates_of_rows_and_of_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    junit = tmp_path / "junit.xml"
    line = [
        "sweep",
        str(DIGITS),
        "-b",
        "netduinoplus2",
        "--ram",
        "none,4K,1K",
        "-o",
        str(tmp_path / "r.sqlite"),
    ]
    assert thimble([*line, "-j", "1"]) == 0  # what does not fit is an answer
    assert thimble([*line, "--fail-on", "arena > 2K", "--junit", str(junit)]) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert "--board netduinoplus2: arena_bytes is 2,560 (--fail-on 'arena > 2K')" in said
    assert "--ram" not in said
    assert thimble([*line, "--fail-on", "arena > 3K", "--fail-on", "cached < 2"]) == 0
    assert thimble([*line, "--fail-on", "unfit > 0"]) == 3
    assert thimble([*line, "--fail-on", "nothing > 0"]) == 2
    assert "no number 'nothing'; it has arena" in " ".join(capsys.readouterr().err.split())
    (suite,) = ElementTree.parse(junit).getroot()
    assert [[child.tag for child in case] for case in suite] == [["failure"], [], ["skipped"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--do", "fly"), "--do 'fly': it is one of plan, compile, verify, profile"),
        (("--boards", "nowhere"), "nowhere"),
        (("--boards", "nucleo-h743zi", "--do", "verify"), "name it in --bench FILE"),
        (("--boards", "host", "--do", "profile"), "nothing is counted on this machine"),
        (("--option", "colour=red"), "a sweep has no option 'colour'"),
        (("--option", "no-split"), "has no value"),
        (("--option", "no-split=yes"), "it is true or false"),
        (("--ram", "4K", "--option", "no-split=true"), "--ram 4K --no-split true: --no-split"),
        (("--option", "decode=boxes"), "--decode 'boxes': it begins with"),
        (("--ram", ""), "the option 'ram' of a sweep has no values"),
        (("--dask", "tcp://localhost:1", "-j", "2"), "leave out one"),
        (("-o", DIGITS), "is read by this command"),
    ],
)
def test_what_is_refused(
    arguments: tuple[str | Path, ...],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert thimble(["sweep", str(DIGITS), "-b", "netduinoplus2", *map(str, arguments)]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_file_of_something_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "mine.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (a)")
    connection.commit()
    connection.close()
    text = tmp_path / "notes.txt"
    text.write_text("mine\n" * 100)
    for file in (other, text):
        before = file.read_bytes()
        assert thimble(["sweep", str(DIGITS), "-b", "netduinoplus2", "-o", str(file)]) == 2
        assert file.read_bytes() == before
    assert "holds no results of" in " ".join(capsys.readouterr().err.split())


BUDGETS = "none,3500,3700,3900,4200"
COUNT = len(BUDGETS.split(","))


GATED = """
import functools, os
from toolchain.sweep import work as module

@functools.wraps(module.work)
def work(*arguments):
    with open(os.environ["GATE"], "rb", buffering=0) as gate:
        gate.read(1)
    return ungated(*arguments)

ungated, module.work = module.work, work
"""
"""Each case waits for a byte in a pipe. Every Python runs `sitecustomize` as it starts."""


@contextmanager
def gate(folder: Path) -> Iterator[tuple[Path, Callable[[int], object]]]:
    """The pipe, whose folder is for PYTHONPATH, and a function that lets so many cases through."""
    (folder / "sitecustomize.py").write_text(GATED)
    pipe = folder / "gate"
    os.mkfifo(pipe)
    with pipe.open("r+b", buffering=0) as stream:
        yield pipe, lambda count: stream.write(bytes(count))


def started(file: Path, *arguments: str, gate: Path | None = None) -> subprocess.Popen[str]:
    line = [
        "sweep",
        str(DIGITS),
        "-b",
        "netduinoplus2",
        "--ram",
        BUDGETS,
        "-o",
        str(file),
        *arguments,
    ]
    path = [str(ROOT)] if gate is None else [str(gate.parent), str(ROOT)]
    return subprocess.Popen(
        [sys.executable, "-m", "toolchain.cli", *line],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path), GATE=str(gate)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def rows_in(file: Path) -> int:
    if not file.exists():
        return 0
    connection = sqlite3.connect(file)
    try:
        return int(connection.execute("SELECT count(*) FROM result").fetchone()[0])
    except sqlite3.OperationalError:  # not there yet
        return 0
    finally:
        connection.close()


def until_rows(file: Path, count: int, process: subprocess.Popen[str]) -> None:
    while rows_in(file) < count:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [
        int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds workers in /proc")
def test_a_worker_and_then_the_sweep_are_killed_and_the_rows_are_those_of_one_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (DIGITS, "-b", "netduinoplus2", "--ram", BUDGETS)
    alone = swept(capsys, *given, "-j", "1", "-o", tmp_path / "alone.sqlite")
    file = tmp_path / "killed.sqlite"
    with gate(tmp_path) as (pipe, let_through):
        first = started(file, "-j", "2", gate=pipe)
        let_through(1)
        until_rows(file, 1, first)
        killed = workers_of(first)[0]
        os.kill(killed, signal.SIGKILL)
        while Path(f"/proc/{killed}").exists():  # it might still take what is let through
            time.sleep(0.01)
        let_through(2)
        until_rows(file, 3, first)
        first.kill()
        let_through(COUNT)
        first.communicate()  # until its workers have left, too
    assert rows_in(file) == 3 < COUNT
    second = started(file, "-j", "2", "--json", "-")
    output, errors = second.communicate()
    assert second.returncode == 0, errors
    found = json.loads(output)
    assert found["cached"] == 3  # nothing twice
    assert plain(found["rows"]) == plain(alone["rows"])


@pytest.mark.slow
def test_the_page_has_the_rows(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    page = tmp_path / "page.html"
    line = [
        "sweep",
        str(DIGITS),
        "-b",
        "netduinoplus2",
        "--ram",
        "none,4K",
        "-j",
        "1",
        "--html",
        str(page),
    ]
    assert thimble([*line, "-o", str(tmp_path / "r.sqlite")]) == 0
    text = page.read_text(encoding="utf-8")
    (held,) = re.findall(
        r'<script id="document" type="application/json">(.*?)</script>', text, re.S
    )
    rows = json.loads(held)["rows"]
    assert [row["options"] for row in rows] == ["", "ram=4K"]
    assert all(row["best"] for row in rows)
