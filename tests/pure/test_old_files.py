"""Files that Thimble 0.1 wrote, or that were written for it, are read; those of a version that is
not known are refused with the way on. tests/goldens/files-0.1 has one of each kind.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pure.test_damaged_databases import read_measurements, read_sweep
from toolchain.bench.bench_file import read_bench
from toolchain.boards import read_board
from toolchain.cli import run
from toolchain.cli.sweep import AskedOptions, _file, _request
from toolchain.contact.archive import read_contact
from toolchain.cost.database import Database
from toolchain.deployment.folder import compiled_board
from toolchain.edgetpu.run.folder import read_folder, read_plan
from toolchain.edgetpu.run.profile import read_profile
from toolchain.errors import InputError
from toolchain.files import formats
from toolchain.files._listing import write_list
from toolchain.files.formats import Format

KEPT = Path(__file__).resolve().parents[1] / "goldens" / "files-0.1"


def in_json(file: Path, version: int) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": version}))


def in_list(folder: Path, version: int) -> None:
    in_json(folder / ".thimble.json", version)


def in_manifest(folder: Path, version: int) -> None:
    """The manifest of a pipeline, as the list of its folder has it."""
    (folder / ".thimble.json").unlink()
    in_json(folder / "pipeline.json", version)
    write_list(folder)


def in_toml(file: Path, version: int) -> None:
    file.write_text(f"version = {version}\n{file.read_text()}")


def in_database(file: Path, version: int) -> None:
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()


def in_zip(file: Path, version: int) -> None:
    with zipfile.ZipFile(file) as archive:
        content = json.loads(archive.read("contact.json"))
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("contact.json", json.dumps({**content, "version": version}))


def read_sweep_file(file: Path) -> None:
    _request(*_file([str(file)]), AskedOptions())


def take(file: Path) -> None:
    with Database(file.parent / "taken.sqlite") as database:
        database.import_from(file)


Kind = tuple[str, Format, Callable[[Path], object], Callable[[Path, int], None]]
KINDS: tuple[Kind, ...] = (
    ("build", formats.FOLDER, compiled_board, in_list),
    ("pipeline", formats.PIPELINE, read_folder, in_manifest),
    ("rates.json", formats.RATES, read_plan, in_json),
    ("profile.json", formats.PIPELINE_PROFILE, read_profile, in_json),
    ("contact.zip", formats.CONTACT, read_contact, in_zip),
    ("measurements.json", formats.MEASUREMENTS, take, in_json),
    ("measurements.sqlite", formats.DATABASE, read_measurements, in_database),
    ("sweep.sqlite", formats.SWEEP_RESULTS, read_sweep, in_database),
    ("bench.toml", formats.WRITTEN_BY_HAND, read_bench, in_toml),
    ("sweep.toml", formats.WRITTEN_BY_HAND, read_sweep_file, in_toml),
    ("board/board.toml", formats.WRITTEN_BY_HAND, read_board, in_toml),
)
EACH = pytest.mark.parametrize("kind", KINDS, ids=[name for name, *_ in KINDS])


def copied(name: str, folder: Path) -> Path:
    top = Path(name).parts[0]
    if (KEPT / top).is_dir():
        shutil.copytree(KEPT / top, folder / top)
    else:
        shutil.copy(KEPT / top, folder)
    return folder / name


@EACH
def test_a_file_of_0_1_is_read(kind: Kind, tmp_path: Path) -> None:
    name, _, read, _ = kind
    read(copied(name, tmp_path))


@EACH
def test_another_version_is_refused_with_the_way_on(kind: Kind, tmp_path: Path) -> None:
    name, known, read, write_version = kind
    for version, who, way in (
        (known.version + 1, "a newer", f"upgrade Thimble, or {known.way_on}"),
        (-1, "an earlier", known.way_on),
    ):
        (folder := tmp_path / who).mkdir()
        file = copied(name, folder)
        write_version(file, version)
        said = f"of version {version}; .* {who} Thimble wrote it: {re.escape(way)}"
        with pytest.raises(InputError, match=said):
            read(file)


@pytest.mark.parametrize("option", ["--accuracy", "--quantised"])
def test_a_report_reads_no_newer_json(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "newer.json"
    file.write_text(json.dumps({"json_version": formats.JSON.version + 1}))
    assert run(["report", str(copied("build", tmp_path)), option, str(file)]) == 2
    assert f"a newer Thimble wrote it: upgrade Thimble, or {formats.JSON.way_on}" in (
        capsys.readouterr().err.replace("\n", " ")
    )


def test_every_format_has_a_file_here_or_a_test_of_its_own() -> None:
    """A blob of weights is refused by the C that takes it, too (tests/qemu/test_weights.py)."""
    every = {known for known in vars(formats).values() if isinstance(known, Format)}
    assert every - {known for _, known, *_ in KINDS} == {formats.WEIGHTS, formats.JSON}
    assert {file.relative_to(KEPT).parts[0] for file in KEPT.rglob("*")} == {
        Path(name).parts[0] for name, *_ in KINDS
    }
