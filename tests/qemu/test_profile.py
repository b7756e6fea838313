"""Profiles, kernels timed by themselves, tuning: on the bundled model in QEMU."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from toolchain.cli import run
from toolchain.cost.basis import Basis
from toolchain.cost.database import Database
from toolchain.deployment.measurements import cost_model
from toolchain.deployment.profiling import profile_folder, record
from toolchain.device.firmware import Firmware
from toolchain.device.session import Session, open_board
from toolchain.errors import InputError, LinkError
from toolchain.report.profile import bar, flame
from toolchain.timing.cost_check import check_model
from toolchain.timing.kernel_timing import copies_kernel, read_kernels, time_kernels
from toolchain.timing.tuning import tune

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
MODEL = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
BOARD = "netduinoplus2"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profile") / "digits"
    assert run(["compile", str(MODEL), "-b", BOARD, "-o", str(folder)]) == 0
    return folder


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    file = tmp_path / "m.sqlite"
    monkeypatch.setenv("THIMBLE_MEASUREMENTS", str(file))
    return Database(file)


def test_profile_json_and_tables(
    compiled: Path, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["profile", str(compiled), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["board"], found["unit"], found["runs"]) == (BOARD, "instructions", 5)
    assert len(set(found["totals"])) == 1 and found["spread"] == 0
    counts = [entry["count"] for entry in found["operators"]]
    assert 0 <= found["total"] - sum(counts) <= 0.01 * found["total"]
    assert found["outside"] == found["total"] - sum(counts)
    for parts in ("kinds", "blocks"):
        for field in ("count", "macs", "moved_bytes"):
            summed = sum(entry[field] for entry in found[parts])
            assert summed == sum(entry[field] for entry in found["operators"])
    assert len(database.rows(BOARD)) == len(counts)
    assert run(["profile", str(compiled), "--runs", "2"]) == 0
    said = capsys.readouterr().out
    for text in ("conv2d", "per block", "per kind", "median of 2 runs", "MACs/instruction"):
        assert text in said


def test_the_picture_fills_its_width() -> None:
    drawn = flame([[("model", 90)], [("a", 60), ("b", 30)], [("c", 1), ("d", 89)]], width=30)
    lines = drawn.plain.splitlines()
    assert [len(line) for line in lines] == [30, 30, 30]
    assert lines[1].index("b") == 21
    assert bar(1, 2, 10) == "█████" and bar(1, 16, 4) == "▎" and bar(0, 0) == ""


def test_kernels_agree_with_the_model_they_come_from(compiled: Path, database: Database) -> None:
    kernels = read_kernels(MODEL, BOARD)
    timing = time_kernels(kernels, BOARD, runs=2, database=database)
    assert (timing.known, timing.skipped) == (0, ())
    assert all(entry.spread == 0 for entry in timing.measured)
    alone = {entry.key: entry.count for entry in timing.measured}
    profile = profile_folder(compiled, runs=1)
    record(profile, compiled, database)
    for entry in database.rows(BOARD):
        assert entry.count == pytest.approx(alone[entry.key], rel=0.01, abs=150)
    again = time_kernels(kernels, BOARD, database=database)
    assert (again.known, again.measured) == (len(kernels), ())


def test_copies_are_kernels_too(database: Database) -> None:
    """What a concatenation of blocks costs, for the planner to know before it is in a firmware."""
    kernels = [copies_kernel(sizes) for sizes in ((1024,), (100, 100, 100), (7, 5000))]
    timing = time_kernels(kernels, BOARD, runs=2, database=database)
    counts = {entry.key.shape: entry.count for entry in timing.measured}
    assert list(counts) == ["1024", "100 100 100", "7 5000"]
    assert counts["100 100 100"] < counts["1024"] < counts["7 5000"] < 5007
    known = cost_model(BOARD, database=database).copies((1024,))
    assert known.basis is Basis.TRACE and known.count == counts["1024"]


def test_a_pulled_cable_costs_nothing_that_was_measured(database: Database) -> None:
    """The line breaks at every second request, and for good at the end."""
    kernels = read_kernels(MODEL, BOARD)
    opened: list[Session] = []

    def opener(firmware: Firmware, port: str | None) -> Session:
        if len(opened) == 3:
            raise LinkError("the cable is out")
        session = open_board(firmware, port)
        opened.append(session)
        left = [2]
        timed = session.time_kernel

        def breaks(index: int, seed: int = 1) -> int:
            left[0] -= 1
            if left[0] < 0:
                raise LinkError("the line broke")
            return timed(index, seed)

        session.time_kernel = breaks  # type: ignore[method-assign]
        return session

    with pytest.raises(LinkError, match="the cable is out"):
        time_kernels(kernels, BOARD, runs=2, database=database, opener=opener, replug_seconds=0.01)
    kept = database.rows(BOARD)
    assert len(kept) == 3
    rest = time_kernels(kernels, BOARD, runs=2, database=database)
    assert (rest.known, len(rest.measured)) == (3, len(kernels) - 3)


def test_shapes_are_timed_and_too_big_ones_told(tmp_path: Path, database: Database) -> None:
    file = tmp_path / "shapes.json"
    shapes = [
        {"kind": "conv2d", "input": [1, 16, 16, 8], "channels": c, "kernel": [3, 3]} for c in (4, 8)
    ]
    big = {"kind": "add", "input": [1, 512, 512, 8]}
    file.write_text(json.dumps([*shapes, big]))
    target = tmp_path / "timing.json"
    command = ["profile", "--kernels", str(file), "-b", BOARD, "--runs", "1"]
    assert run([*command, "--json", str(target)]) == 0
    timing = json.loads(target.read_text())
    few, many = (entry["count"] for entry in timing["measured"])
    assert 1.5 < many / few < 2.2
    assert len(timing["skipped"]) == 1 and "512,512" in timing["skipped"][0]


def test_tuning_settles_and_the_plan_says_what_was_measured(
    tmp_path: Path, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    tuning = tune(MODEL, BOARD, database=database)
    assert tuning.settled
    assert [entry.measured_now for entry in tuning.rounds][-1] == 0
    assert tuning.rounds[0].measured_share == 0.0
    assert tuning.rounds[-1].measured_share == 1.0
    profile_total = tuning.rounds[-1].predicted
    command = ["compile", str(MODEL), "-b", BOARD, "--tune", "-o", str(tmp_path / "out")]
    assert run([*command, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    latency = found["latency"]
    assert (latency["total"], latency["measured_share"]) == (profile_total, 1.0)
    assert (latency["unit"], latency["basis"]) == ("instructions", "trace")
    assert len(found["tuning"]["rounds"]) == 1
    measured = profile_folder(tmp_path / "out", runs=1).total
    assert profile_total == pytest.approx(measured, rel=0.01)
    assert run([*command]) == 0
    assert "known share" in capsys.readouterr().out


def test_check_compares_what_was_known_before(database: Database) -> None:
    first = check_model(MODEL, BOARD)
    second = check_model(MODEL, BOARD)
    assert first is not None and second is not None
    assert first.known == first.estimated and first.known.measured_share == 0
    assert second.known.measured_share == 1
    assert second.known.mean_error < 0.05
    assert second.known.mean_error <= first.estimated.mean_error < 0.08
    assert abs(second.known.total_error) < 0.01


def test_cost_commands_share_what_was_measured(
    compiled: Path, database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(profile_folder(compiled, runs=1), compiled, database)
    count = len(database.rows())
    shared = tmp_path / "shared.json"
    assert run(["cost", "export", str(shared)]) == 0
    assert run(["cost", "list"]) == 0
    assert f"{count} measurements" in capsys.readouterr().out
    database.close()
    database.file.unlink()
    assert run(["cost", "import", str(shared), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["measurements"] == count
    assert run(["cost", "list", "-b", "host", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["measurements"] == []
    assert run(["cost", "check", str(MODEL), "-b", BOARD, "--json", "-"]) == 0
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["known"]["measured_share"] == 1.0


def test_the_host_counts_nothing(tmp_path: Path) -> None:
    assert run(["compile", str(MODEL), "-b", "host", "-o", str(tmp_path / "h")]) == 0
    with pytest.raises(InputError, match="nothing is counted"):
        profile_folder(tmp_path / "h")
    with pytest.raises(InputError, match="nothing is counted"):
        tune(MODEL, "host")
