"""Known latencies in the user's cache: one SQLite file that processes and teams can share.

They were measured on silicon or read from traces.

Every write is one transaction in write-ahead mode. A process that is killed in the middle leaves
the file as it was, and two processes wait for each other.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from toolchain.cost.basis import CYCLES, INSTRUCTIONS, Basis
from toolchain.cost.correction import Correction
from toolchain.cost.key import Build, Key
from toolchain.errors import InputError
from toolchain.files import databases, write_file
from toolchain.files.databases import connected, told
from toolchain.files.formats import DATABASE, MEASUREMENTS
from toolchain.files.records import field_of, read_json
from toolchain.kernels.cmsis_nn import cache_folder

ENVIRONMENT_VARIABLE = "THIMBLE_MEASUREMENTS"
NONE = "none"
KNOWN = (Basis.MEASURED, Basis.TRACE)
"""Bases that a row may have."""
_COUNTED_BEFORE = {CYCLES: Basis.MEASURED, INSTRUCTIONS: Basis.TRACE}
"""The basis of a row that version 1 wrote, by its unit: cycles are of silicon, instructions of
QEMU."""
_SCHEMA = """
CREATE TABLE measurement (
    board TEXT NOT NULL,
    kernel TEXT NOT NULL,
    shape TEXT NOT NULL,
    compiler TEXT NOT NULL,
    cmsis_nn TEXT NOT NULL,
    unit TEXT NOT NULL,
    basis TEXT NOT NULL,
    count INTEGER NOT NULL,
    spread INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    estimate INTEGER NOT NULL,
    measured_at INTEGER NOT NULL,
    PRIMARY KEY (board, kernel, shape, compiler, cmsis_nn)
) WITHOUT ROWID
"""
_CORRECTIONS = """
CREATE TABLE correction (
    board TEXT NOT NULL,
    compiler TEXT NOT NULL,
    cmsis_nn TEXT NOT NULL,
    kernel TEXT NOT NULL,
    factor REAL NOT NULL,
    call_cycles REAL NOT NULL,
    PRIMARY KEY (board, compiler, cmsis_nn, kernel)
) WITHOUT ROWID
"""


@dataclass(frozen=True)
class Measurement:
    """One kernel on one shape.

    `count` is the median of `runs` in `unit`, and `spread` their range. `basis`: MEASURED on
    silicon, or TRACE. `estimate` is the prediction, in cycles if the core had a model of its time
    then. `measured_at` is in seconds since 1970.
    """

    board: str
    key: Key
    build: Build
    unit: str
    basis: Basis
    count: int
    spread: int
    runs: int
    estimate: int
    measured_at: int

    def as_dict(self) -> dict[str, Any]:
        """All fields on one level."""
        flat = asdict(self)
        return {**flat.pop("key"), **flat.pop("build"), **flat}

    def to_json(self) -> str:
        return json.dumps(self.as_dict())


_COLUMNS = (
    *("board", "kernel", "shape", "compiler", "cmsis_nn"),
    *("unit", "basis", "count", "spread", "runs", "estimate", "measured_at"),
)
_KEY = _COLUMNS[:5]
_TEXTS = ("board", "kernel", "shape", "compiler", "cmsis_nn", "unit", "basis")


def measurement(entry: object, where: str = "a measurement") -> Measurement:
    """The inverse of `Measurement.as_dict`. Raises InputError where a field is missing or
    invalid.
    """
    given = {
        name: field_of(entry, name, str if name in _TEXTS else int, where) for name in _COLUMNS
    }
    for name in _COLUMNS:
        if name not in _TEXTS and given[name] < 0:
            raise InputError(f"{where}: {name} is {given[name]}, which is negative")
    key = Key(given.pop("kernel"), given.pop("shape"))
    build = Build(given.pop("compiler"), given.pop("cmsis_nn"))
    if given["basis"] not in KNOWN:
        raise InputError(f"{where}: basis is {given['basis']!r}, not {' or '.join(KNOWN)}")
    given["basis"] = Basis(given["basis"])
    return Measurement(key=key, build=build, **given)


def _since_version_1(entry: object) -> object:
    """An entry of an export of version 1, which had no basis."""
    if not isinstance(entry, dict):
        return entry
    return {**entry, "basis": _COUNTED_BEFORE.get(str(entry.get("unit")), Basis.MEASURED)}


def default_file() -> Path:
    """`$THIMBLE_MEASUREMENTS`, or `measurements.sqlite` in the user's cache for Thimble. If the
    variable is `none`, nothing is read, and what is written is forgotten at the end.
    """
    named = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if named == NONE:
        return Path(":memory:")  # SQLite's name
    return Path(named) if named else cache_folder() / "measurements.sqlite"


class Database:
    """The file is created when it is first opened for writing; a missing file reads as empty.

    Raises InputError where the file is damaged, was written by a newer Thimble, or cannot be
    written.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or default_file()
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def rows(self, board: str = "", build: Build | None = None) -> tuple[Measurement, ...]:
        """All measurements, or those of one board, or of one board and build; in key order."""
        if self._connection is None and not self.file.exists():
            return ()
        wanted = {"board": board, **(asdict(build) if build else {})}
        clause = " AND ".join(f"{name} = ?" for name, value in wanted.items() if value)
        where = f" WHERE {clause}" if clause else ""
        values = [value for value in wanted.values() if value]
        columns = ", ".join(_COLUMNS)
        with self._open() as connection:
            selected = connection.execute(
                f"SELECT {columns} FROM measurement{where} ORDER BY 1, 2, 3, 4, 5", values
            ).fetchall()
        return tuple(self._read(dict(zip(_COLUMNS, row, strict=True))) for row in selected)

    def _read(self, row: Mapping[str, object]) -> Measurement:
        """Read one row. Raises InputError that names a damaged row by its key."""
        key = ", ".join(f"{name} {row[name]!r:.80}" for name in _KEY)
        where = f"{self.file}: the row of {key} is damaged"
        try:
            read = measurement(row, where)
            for name in _TEXTS:
                str(row[name]).encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{where}: a text is no UTF-8", remedies=[self._anew()]) from error
        except InputError as error:
            raise InputError(error.message, remedies=[self._anew()]) from error
        return read

    def _anew(self) -> str:
        return f"delete {self.file}, and import or measure again"

    def put(self, measurements: Iterable[Measurement], *, newer_only: bool = False) -> int:
        """Store all of them or none. Returns how many changed something.

        `newer_only`: keep existing measurements that were made later.
        """
        rows = [tuple(entry.as_dict()[name] for name in _COLUMNS) for entry in measurements]
        places = ", ".join("?" * len(_COLUMNS))
        updates = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[len(_KEY) :])
        newer = " WHERE excluded.measured_at > measurement.measured_at" if newer_only else ""
        with self._open() as connection, _transaction(connection):
            before = connection.total_changes
            connection.executemany(
                f"INSERT INTO measurement ({', '.join(_COLUMNS)}) VALUES ({places}) "
                f"ON CONFLICT DO UPDATE SET {updates}{newer}",
                rows,
            )
            return connection.total_changes - before

    def corrections(self, board: str, build: Build) -> Mapping[str, Correction]:
        """Corrections of one board and build, by kernel; none where nothing was fitted."""
        if self._connection is None and not self.file.exists():
            return {}
        with self._open() as connection:
            selected = connection.execute(
                "SELECT kernel, factor, call_cycles FROM correction "
                "WHERE board = ? AND compiler = ? AND cmsis_nn = ? ORDER BY kernel",
                (board, build.compiler, build.cmsis_nn),
            ).fetchall()
        found = {}
        for kernel, factor, call_cycles in selected:
            one = Correction(factor, call_cycles)
            if not isinstance(kernel, str) or not one.is_sound:
                raise InputError(
                    f"{self.file}: the correction of {kernel!r:.80} is damaged",
                    remedies=[self._anew()],
                )
            found[kernel] = one
        return found

    def put_corrections(
        self, board: str, build: Build, corrections: Mapping[str, Correction]
    ) -> None:
        """Store the corrections of one board and build, in place of those that it had."""
        where = (board, build.compiler, build.cmsis_nn)
        rows = [(*where, k, one.factor, one.call_cycles) for k, one in corrections.items()]
        with self._open() as connection, _transaction(connection):
            connection.execute(
                "DELETE FROM correction WHERE board = ? AND compiler = ? AND cmsis_nn = ?", where
            )
            connection.executemany("INSERT INTO correction VALUES (?, ?, ?, ?, ?, ?)", rows)

    def export(self, file: Path, board: str = "") -> int:
        """Write the measurements (of one board) as JSON. Returns how many."""
        if os.path.realpath(file) == os.path.realpath(self.file):
            raise InputError(f"{file} is the database itself: export to another file")
        rows = self.rows(board)
        data = {
            "format": MEASUREMENTS.name,
            "version": MEASUREMENTS.version,
            "measurements": [entry.as_dict() for entry in rows],
        }
        write_file(file, json.dumps(data, indent=1) + "\n")
        return len(rows)

    def import_from(self, file: Path) -> int:
        """Take the newer measurements from an export, all or none. Returns how many."""
        data = read_json(file)
        if not isinstance(data, dict) or data.get("format") != MEASUREMENTS.name:
            raise InputError(f"{file} holds no measurements: `thimble cost export` writes them")
        MEASUREMENTS.check_fields(data, str(file))
        entries = field_of(data, "measurements", tuple[Any, ...], str(file))
        if data["version"] == 1:
            entries = tuple(_since_version_1(entry) for entry in entries)
        measurements = [measurement(e, f"{file}: measurements[{i}]") for i, e in enumerate(entries)]
        return self.put(measurements, newer_only=True)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with told(self.file, "measurements", self._anew()):
                if self._connection is None:
                    self._connection = self._connected()
                yield self._connection
        except InputError:
            self.close()
            raise

    def _connected(self) -> sqlite3.Connection:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        connection = connected(self.file)
        try:
            self._check_ours(connection)
            _write_ahead(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            if _version(connection) != DATABASE.version:
                self._upgrade(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_ours(self, connection: sqlite3.Connection) -> None:
        """Check whose database it is. Raises InputError for one of another program, which stays as
        it is."""
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if names and "measurement" not in names:
            raise InputError(
                f"{self.file} is a database of something else: set {ENVIRONMENT_VARIABLE} to "
                "another file"
            )

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        """Create or upgrade the tables. Reads the version under the lock, as another process may
        upgrade, too."""
        with _transaction(connection):
            version = _version(connection)
            if version == 0:
                connection.execute(_SCHEMA)
            else:
                DATABASE.check(version, str(self.file))
            if version == 1:
                _with_basis(connection)
            if version < 3:
                connection.execute(_CORRECTIONS)
            connection.execute(f"PRAGMA user_version = {DATABASE.version}")


def _with_basis(connection: sqlite3.Connection) -> None:
    """Upgrade the measurements of version 1. Rows in instructions stay: they are known, though of
    no use beside cycles."""
    connection.execute("ALTER TABLE measurement RENAME TO before")
    connection.execute(_SCHEMA)
    columns = ", ".join(name for name in _COLUMNS if name != "basis")
    for unit, basis in _COUNTED_BEFORE.items():
        connection.execute(
            f"INSERT INTO measurement ({columns}, basis) SELECT {columns}, ? FROM before "
            "WHERE unit = ?",
            (basis, unit),
        )
    connection.execute("DROP TABLE before")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead mode. SQLite does not wait for a lock when it changes this mode, so
    this function does."""
    deadline = time.monotonic() + databases.WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
