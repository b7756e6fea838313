"""The level `files`: damaged databases and JSON of the tool's own, each read by a command.

Results of sweeps and measured costs (SQLite: a value of a row, a row, a table, or bytes), exported
costs, the list and the manifest of a folder (JSON: a value, a key, or bytes). The command must end
with code 0, 1 or 2, with a message unless it is 0, and print nothing that a terminal obeys.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fuzz.outcome import (
    ANSWERED,
    SILENT,
    WRONG,
    Outcome,
    of_error,
    reason,
    time_limit,
)
from benchmarks.fuzz.pool import Serve
from benchmarks.fuzz.seeds import ROOT
from tests.support.mutations import INTEGERS, damaged_bytes
from toolchain.cli import run
from toolchain.cost.basis import CYCLES, Basis
from toolchain.cost.database import ENVIRONMENT_VARIABLE, Database, Measurement
from toolchain.cost.key import Build, Key

_CASE_SECONDS = 60.0
_MODEL = ROOT / "examples" / "digits" / "digits_int8.tflite"
_BOARD = "netduinoplus2"
_LIST = ".thimble.json"
_DEEP = 200
_WORDS = ("", "x", "\x1b[2J", "\u202egnp.exe", "NaN", "[]", "{}", "null", "a" * 5000, "\ud800")
_VALUES: tuple[Any, ...] = (
    *INTEGERS,
    *(
        2**63,
        -(2**63),
        2**80,
        0.5,
        1e308,
        float("nan"),
        float("inf"),
        None,
        True,
        [],
        {},
        [1],
        {"": 1},
    ),
    *_WORDS,
)


@dataclass(frozen=True)
class _Kind:
    """`file` in the folder is damaged; `command` reads it there."""

    file: str
    command: tuple[str, ...]


_KINDS = (
    _Kind("sweep.sqlite", ("sweep", str(_MODEL), "--boards", _BOARD, "-j", "1", "-o", "{file}")),
    _Kind("costs.sqlite", ("cost", "list")),
    _Kind("costs.sqlite", ("plan", str(_MODEL), "--board", _BOARD)),
    _Kind("costs.json", ("cost", "import", "{file}")),
    *(
        _Kind(f"firmware/{name}", ("run", "{folder}/firmware", "--port", "socket://127.0.0.1:9"))
        for name in (_LIST, "firmware.json", "plan.json")
    ),
)


def damager(seed: int) -> Serve:
    """The level `files`."""
    kept = tempfile.TemporaryDirectory(prefix="thimble-fuzz-")
    sound = Path(kept.name) / "sound"
    os.environ["THIMBLE_RAISE"] = "1"
    _make(sound)

    def serve(numbers: Sequence[int], begun: Callable[[int], None]) -> Iterator[Outcome]:
        for number in numbers:
            begun(number)
            yield _outcome(seed, number, sound, Path(kept.name) / "case")

    return serve


def _make(folder: Path) -> None:
    """The sound files."""
    folder.mkdir()
    _environment(folder)
    with Database() as database:
        key, build = Key("conv2d", "1x2x3"), Build("gcc 12", "cmsis-nn 5")
        database.put([Measurement(_BOARD, key, build, CYCLES, Basis.MEASURED, 100, 2, 3, 90, 1)])
    for command in (
        ("cost", "export", "{folder}/costs.json"),
        ("sweep", str(_MODEL), "--boards", _BOARD, "-j", "1", "-o", "{folder}/sweep.sqlite"),
        ("compile", str(_MODEL), "--board", _BOARD, "-o", "{folder}/firmware"),
    ):
        code, text = _ran(command, folder, folder)
        if code:
            raise RuntimeError(text)


def _environment(folder: Path) -> None:
    os.environ[ENVIRONMENT_VARIABLE] = str(folder / "costs.sqlite")


def _ran(command: Sequence[str], folder: Path, file: Path) -> tuple[int, str]:
    """The exit code, and all that was printed."""
    given = [word.format(folder=folder, file=file) for word in command]
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.redirect_stderr(text):
        code = run(given)
    return code, text.getvalue()


def _outcome(seed: int, number: int, sound: Path, folder: Path) -> Outcome:
    rng = random.Random(f"document {seed} {number}")
    kind = rng.choice(_KINDS)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sound, folder)
    _environment(folder)
    file = folder / kind.file
    _damage(file, rng)
    if file.name != _LIST and (file.parent / _LIST).exists():
        _list_anew(file)
    try:
        with time_limit(_CASE_SECONDS):
            code, text = _ran(kind.command, folder, file)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return of_error(number, error)
    where = f"{kind.file} by {kind.command[0]}"
    if code not in (0, 1, 2):
        return Outcome(number, WRONG, f"{where}: code {code}", text[-300:])
    if code == 2 and not text.strip():
        return Outcome(number, SILENT, where)
    if not text.replace("\n", "").replace("\t", "").isprintable():
        return Outcome(number, WRONG, f"{where}: what cannot be printed", repr(text)[-300:])
    shown = text.replace(str(folder), "").strip()
    return Outcome(number, ANSWERED, f"{where}: {code} {reason(shown) if code and shown else ''}")


def _list_anew(file: Path) -> None:
    """With the hash that it has now, so that its folder counts as unchanged."""
    listed = json.loads((file.parent / _LIST).read_text())
    listed["files"][file.name]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    (file.parent / _LIST).write_text(json.dumps(listed))


def _damage(file: Path, rng: random.Random) -> None:
    if rng.random() < 0.1:
        file.write_bytes(damaged_bytes(file.read_bytes(), rng))
    elif file.suffix == ".sqlite":
        _damage_rows(file, rng)
    else:
        file.write_text(changed_json(file.read_text(), rng), errors="replace")


def changed_json(text: str, rng: random.Random) -> str:
    """A document with one to four changes; the same ones whenever `rng` is the same."""
    tree = json.loads(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        tree = _changed(tree, rng)
    return json.dumps(tree)


def _changed(node: Any, rng: random.Random) -> Any:
    """A value somewhere in the tree replaced, left out, put in twice, or wrapped."""
    inside = (
        list(node)
        if isinstance(node, dict)
        else list(range(len(node)))
        if isinstance(node, list)
        else []
    )
    if not inside or rng.random() < 0.15:
        if rng.random() < 0.05:
            for _ in range(_DEEP):
                node = [node]
            return node
        near = [node + 1, node - 1, -node] if type(node) in (int, float) else []
        return copy.deepcopy(rng.choice((*_VALUES, *near * 5)))
    key, how = rng.choice(inside), rng.randrange(10)
    if how == 0:
        del node[key]
    elif how == 1 and isinstance(node, dict):
        node[rng.choice(_WORDS)] = copy.deepcopy(rng.choice(_VALUES))
    elif how == 1:
        node.append(copy.deepcopy(node[key]))
    else:
        node[key] = _changed(node[key], rng)
    return node


def _damage_rows(file: Path, rng: random.Random) -> None:
    """Values of rows, mostly; rows, tables and the file's own numbers now and then."""
    connection = sqlite3.connect(file)
    connection.row_factory = sqlite3.Row
    with (
        contextlib.closing(connection),
        contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError),
    ):
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        tables = [name for (name,) in found]
        widths = {t: len(connection.execute(f"PRAGMA table_info({t})").fetchall()) for t in tables}
        for _ in range(rng.choice((1, 1, 2, 4))):
            if not tables:
                return
            table = max(tables, key=lambda name: widths[name] * rng.random())
            how = rng.randrange(20)
            if how == 0:
                connection.execute(f"DELETE FROM {table}")
            elif how == 1:
                connection.execute(f"DROP TABLE {table}")
                tables.remove(table)
            elif how == 2:
                pragma = rng.choice(("application_id", "user_version"))
                connection.execute(f"PRAGMA {pragma} = {rng.choice(INTEGERS)}")
            else:
                _damage_value(connection, table, rng)
            connection.commit()


def _damage_value(connection: sqlite3.Connection, table: str, rng: random.Random) -> None:
    """Of all rows, in one column; a column of JSON is taken sooner than another."""
    row = dict(connection.execute(f"SELECT * FROM {table}").fetchone() or ())
    texts = [name for name, value in row.items() if str(value)[:1] in ("{", "[")]
    if not row:
        return
    column = rng.choice(texts if texts and rng.random() < 0.5 else list(row))
    value: Any = rng.choice((*_VALUES, b"\xff\xfe", b""))
    if column in texts and rng.random() < 0.8:
        value = changed_json(row[column], rng)
    if isinstance(value, list | dict):
        value = json.dumps(value)
    if rng.random() < 0.05:
        connection.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
    else:
        connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
