"""Rows of sweeps in one SQLite file, which pandas, DuckDB and others read.

    SELECT model, board, options, ram_bytes, milliseconds FROM latest WHERE ok

`result` has a row for each key (`cases.Case.key`), with the figures that most want as columns and
all of the command's JSON as text in `fields`. `sweep` lists the sweeps, `listed` the cases of each,
and the view `latest` has the rows of the last one. A row is there as soon as its task is done, so
that a sweep that is killed loses what was under way and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from toolchain.errors import InputError
from toolchain.files.databases import connected, told
from toolchain.files.formats import SWEEP_RESULTS
from toolchain.sweep.cases import Case
from toolchain.sweep.kept import FIGURES, done_of, figure, name_of
from toolchain.sweep.work import Done

APPLICATION = 0x54687377
"""SQLite's application_id of such a file: "Thsw"."""
_SCHEMA = """
CREATE TABLE result (
    key TEXT PRIMARY KEY, final INTEGER NOT NULL, ok INTEGER NOT NULL,
    do TEXT NOT NULL, file TEXT NOT NULL, model TEXT NOT NULL, model_sha256 TEXT NOT NULL,
    board TEXT NOT NULL, options TEXT NOT NULL,
    arena_bytes INTEGER, lower_bound_bytes INTEGER, proved_optimal INTEGER,
    ram_bytes INTEGER, flash_bytes INTEGER, weight_bytes INTEGER,
    milliseconds REAL, cycles INTEGER, basis TEXT, slowdown_percent REAL, macs INTEGER,
    elements INTEGER, differing INTEGER,
    error_kind TEXT NOT NULL, error TEXT NOT NULL,
    seconds REAL NOT NULL, worker TEXT NOT NULL, made_at REAL NOT NULL, tool TEXT NOT NULL,
    fields TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE sweep (
    id INTEGER PRIMARY KEY, command TEXT NOT NULL, begun_at REAL NOT NULL, ended_at REAL
);
CREATE TABLE listed (
    sweep INTEGER NOT NULL REFERENCES sweep, place INTEGER NOT NULL, name TEXT NOT NULL,
    key TEXT NOT NULL, PRIMARY KEY (sweep, place)
) WITHOUT ROWID;
CREATE VIEW latest AS
    SELECT listed.place, listed.name, result.* FROM listed JOIN result USING (key)
    WHERE listed.sweep = (SELECT max(id) FROM sweep) ORDER BY listed.place;
"""
_COLUMNS = (
    *("key", "final", "ok", "do", "file", "model", "model_sha256", "board", "options"),
    *FIGURES,
    *("milliseconds", "cycles", "basis", "error_kind", "error"),
    *("seconds", "worker", "made_at", "tool", "fields"),
)


@dataclass(frozen=True)
class Row:
    """A case and its outcome. `cached`: it was there before this sweep."""

    case: Case
    done: Done
    cached: bool

    @property
    def ok(self) -> bool:
        return self.done.error is None

    @property
    def kind(self) -> str:
        """The class of its error; '' where it has none."""
        return str(self.done.error["kind"]) if self.done.error else ""

    @property
    def message(self) -> str:
        return str(self.done.error["message"]) if self.done.error else ""

    @property
    def latency(self) -> Mapping[str, Any]:
        """The latency of one inference: the command's where it has milliseconds, else the predicted
        one."""
        reported = self.done.fields.get("latency") or {}
        if reported.get("milliseconds") is None:
            return self.done.fields.get("predicted") or reported
        return dict(reported)

    def as_json(self) -> dict[str, Any]:
        """The row of `thimble sweep --json`."""
        case, error = self.case, self.done.error
        return {
            **self.done.fields,
            "model": self.done.fields.get("model", Path(case.file).stem),
            "board": case.board,
            "options": dict(case.words),
            "do": case.do,
            "file": case.file,
            "key": case.key,
            "ok": self.ok,
            "cached": self.cached,
            "seconds": self.done.seconds,
            **({} if error is None else {"error": dict(error)}),
        }


@dataclass(frozen=True)
class Before:
    """A case in the sweep before: whether it went well, and its figures."""

    ok: bool
    figures: Mapping[str, float | None]


COMPARED = ("arena_bytes", "ram_bytes", "flash_bytes", "milliseconds", "differing")
"""Figures that are compared with those of the sweep before."""


class Store:
    """One file, created where there is none. Use as a context manager.

    Raises InputError where the file is something else, is damaged, or cannot be written. A row that
    is damaged is named, with the command that computes it again.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        with self._errors():
            file.parent.mkdir(parents=True, exist_ok=True)
            is_new = not file.exists() or not file.stat().st_size
            self._connection = connected(file)
            try:
                self._check(is_new)
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def begin(self, command: str, cases: Sequence[Case]) -> int:
        """A new sweep of these cases; its number."""
        with self._transaction() as connection:
            now = time.time()
            made = connection.execute(
                "INSERT INTO sweep (command, begun_at) VALUES (?, ?)", (command, now)
            )
            number = made.lastrowid
            assert number is not None
            connection.executemany(
                "INSERT INTO listed VALUES (?, ?, ?, ?)",
                [(number, place, case.name, case.key) for place, case in enumerate(cases)],
            )
        return number

    def end(self, number: int) -> None:
        with self._transaction() as connection:
            connection.execute("UPDATE sweep SET ended_at = ? WHERE id = ?", (time.time(), number))

    def put(self, case: Case, done: Done, worker: str = "") -> Row:
        """Keep the outcome of a case."""
        row = Row(case, done, cached=False)
        fields, latency = done.fields, row.latency
        in_cycles = latency.get("unit") == "cycles"
        values: dict[str, Any] = {
            **{name: fields.get(name) for name in FIGURES},
            "key": case.key,
            "final": done.final,
            "ok": row.ok,
            "do": case.do,
            "file": case.file,
            "model": fields.get("model", Path(case.file).stem),
            "model_sha256": case.sha256,
            "board": case.board,
            "options": json.dumps(dict(case.words)),
            "milliseconds": latency.get("milliseconds"),
            "cycles": latency.get("total") if in_cycles else None,
            "basis": latency.get("basis"),
            "error_kind": row.kind,
            "error": "" if done.error is None else json.dumps(dict(done.error)),
            "seconds": done.seconds,
            "worker": worker,
            "made_at": time.time(),
            "tool": json.dumps(dict(case.tool)),
            "fields": json.dumps(dict(fields)),
        }
        with self._transaction() as connection:
            connection.execute(
                f"INSERT OR REPLACE INTO result ({', '.join(_COLUMNS)}) "
                f"VALUES ({', '.join('?' * len(_COLUMNS))})",
                [values[name] for name in _COLUMNS],
            )
        return row

    def known(self, cases: Sequence[Case]) -> dict[str, Row]:
        """The rows that need not be computed again, by key."""
        rows = {}
        with self._errors():
            for case in cases:
                got = self._connection.execute(
                    "SELECT fields, error, seconds FROM result WHERE key = ? AND final", (case.key,)
                ).fetchone()
                if got is not None:
                    rows[case.key] = Row(case, done_of(case, self.file, *got), cached=True)
        return rows

    def before(self, number: int, without: Collection[str] = ()) -> dict[str, Before]:
        """The cases of the last sweep before `number` that came to its end, by name, but those of
        the keys `without`.
        """
        columns = ", ".join(f"result.{name}" for name in ("ok", *COMPARED))
        with self._errors():
            selected = self._connection.execute(
                f"SELECT result.key, listed.name, {columns} FROM listed JOIN result USING (key) "
                "WHERE listed.sweep = "
                "(SELECT max(id) FROM sweep WHERE id < ? AND ended_at IS NOT NULL)",
                (number,),
            ).fetchall()
        try:
            return dict(self._before(*row) for row in selected if row[0] not in without)
        except InputError as error:
            raise InputError(
                f"{error.message}, in the sweep before this one",
                remedies=["--out with another file, to begin anew"],
            ) from error

    def _before(
        self, key: object, name: object, ok: object, *figures: object
    ) -> tuple[str, Before]:
        where = f"{self.file}: the row of key {key!r:.80} is damaged"
        numbers = {
            column: figure(value, f"{where}: {column}")
            for column, value in zip(COMPARED, figures, strict=True)
        }
        return name_of(name, f"{where}: name"), Before(bool(ok), numbers)

    def _check(self, is_new: bool) -> None:
        connection = self._connection
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if is_new:
            connection.execute("PRAGMA journal_mode = WAL")  # no wait for the disk at each row
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            numbered = f"PRAGMA user_version = {SWEEP_RESULTS.version}"
            connection.executescript(f"BEGIN; {_SCHEMA} {numbered}; COMMIT;")
        elif application != APPLICATION:
            raise InputError(f"{self.file} holds no results of `thimble sweep`: name another file")
        else:
            SWEEP_RESULTS.check(version, str(self.file))
        connection.execute("PRAGMA synchronous = NORMAL")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        return told(self.file, "results of sweeps", "name another file with --out")
