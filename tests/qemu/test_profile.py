"""Profiles, kernels timed by themselves, tuning: on the bundled model in QEMU."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from toolchain.boards import MemoryKind, MemoryTiming, as_target
from toolchain.cli import run
from toolchain.cost.basis import Basis
from toolchain.cost.database import Database
from toolchain.cycles.memory_system import MemorySystem
from toolchain.deployment import modelled_time
from toolchain.deployment.measurements import cost_model
from toolchain.deployment.profiling import profile_folder, record
from toolchain.device import trace_plugin
from toolchain.device.firmware import Firmware, load_firmware
from toolchain.device.session import Session, open_board
from toolchain.errors import InputError, LinkError
from toolchain.planning.options import PlanOptions
from toolchain.report.profile import bar, flame
from toolchain.timing.cost_check import check_model
from toolchain.timing.kernel_timing import Wire, copies_kernel, read_kernels, time_kernels
from toolchain.timing.tuning import tune

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
MODEL = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
BOARD = "netduinoplus2"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without copies: what is kept are times of constants in flash."""
    folder = tmp_path_factory.mktemp("profile") / "digits"
    assert run(["compile", str(MODEL), "-b", BOARD, "--no-copies", "-o", str(folder)]) == 0
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
    assert (found["board"], found["ran_on"], found["runs"]) == (BOARD, BOARD, 5)
    assert (found["unit"], found["basis"], found["no_cycles"]) == ("cycles", "trace", "")
    assert len(set(found["totals"][1:])) == 1  # the caches were cold in the first
    assert found["milliseconds"] == pytest.approx(found["total"] / 168_000)
    counts = [entry["count"] for entry in found["operators"]]
    for entry in (found, *found["operators"]):
        cycles = entry.get("count", found["total"])
        assert 0 < entry["instructions"] <= cycles  # a Cortex-M4 issues one in a cycle
    functions = found["functions"]
    assert sum(f["count"] for f in functions) == pytest.approx(found["total"], abs=len(functions))
    assert functions[0]["name"] == "thimble_mat_mult_windows_s8"
    assert 0 <= found["total"] - sum(counts) <= 0.01 * found["total"]
    assert found["outside"] == found["total"] - sum(counts)
    for parts in ("kinds", "blocks"):
        for field in ("count", "instructions", "macs", "moved_bytes"):
            summed = sum(entry[field] for entry in found[parts])
            assert summed == sum(entry[field] for entry in found["operators"])
    assert len(database.rows(BOARD)) == len(counts)
    assert run(["profile", str(compiled), "--runs", "2"]) == 0
    said = capsys.readouterr().out
    for text in ("conv2d", "per block", "per kind", "per function", "MACs/cycle", "168 MHz"):
        assert text in said
    whole = " ".join(said.split())
    assert "modelled from a trace of" in whole and "median of 2 runs" in whole


def test_as_reads_it_at_another_clock_and_through_other_memories(
    compiled: Path, database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, file = ["nucleo-f446re", "nucleo-l476rg", "stm32l476", "mps2-an386"], tmp_path / "json"
    command = ["profile", str(compiled), "--runs", "1", *(f"--as={name}" for name in names)]
    assert run([*command, "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    readings = found["readings"]
    assert [entry["board"] for entry in readings] == names
    assert {entry["ran_on"] for entry in readings} == {BOARD}
    assert {entry["instructions"] for entry in readings} == {found["instructions"]}
    assert found["board"] == names[0] and found["total"] == readings[0]["total"]
    f446, l476, bare, ideal = readings
    assert (f446["clock_hz"], l476["clock_hz"], ideal["clock_hz"]) == (180e6, 80e6, 25e6)
    assert f446["total"] > ideal["total"]  # five wait states of flash against none
    assert f446["milliseconds"] == pytest.approx(f446["total"] / 180_000)
    assert bare["total"] == l476["total"]  # the board runs its chip at the highest clock
    recorded = {row.board: row for row in database.rows()}
    assert set(recorded) == {"nucleo-f446re", "nucleo-l476rg", "mps2-an386"}  # no chip
    assert recorded["nucleo-f446re"].basis == "trace"
    said = " ".join(capsys.readouterr().out.split())
    assert "digits_int8 on nucleo-l476rg" in said and f"on {BOARD} in QEMU" in said


def test_what_a_small_bank_cannot_hold_waits_as_the_next_one_does(
    compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The firmware takes 5 KB of RAM."""
    (flash, ram) = (as_target("nucleo-f446re").memories[i] for i in (0, 1))
    assert ram.kind is MemoryKind.RAM
    slow = replace(ram, name="SLOW", timing=MemoryTiming(7, 4))
    for size_bytes, waits in ((4 << 10, 7), (8 << 10, 0)):
        banks = (flash, replace(ram, size_bytes=size_bytes), slow)
        target = replace(as_target("nucleo-f446re"), memories=banks)
        monkeypatch.setattr(modelled_time, "as_target", lambda name, target=target: target)
        reader = modelled_time.find_reader(load_firmware(compiled), None, "any")
        assert isinstance(reader, modelled_time.Reader)
        (region,) = (r for r in reader.memory.regions if r.name.startswith("SRAM"))
        assert region.timing.read_cycles == waits


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nucleo-h743zi", "a cortex-m7 is given other instructions; compile for mps2-an500"),
        ("absent", "there is no board or chip 'absent'"),
        ("host", "there is no board or chip 'host'"),
    ],
)
def test_a_chip_that_would_run_other_code_is_refused(
    target: str, said: str, compiled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["profile", str(compiled), "--as", target]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("given", [["--annotate"], ["--annotate", "1"]])
def test_the_hottest_loops_are_annotated(
    given: list[str],
    compiled: Path,
    database: Database,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "profile.json"
    command = ["profile", str(compiled), "--runs", "1", "--json", str(file), *given]
    assert run(command) == 0
    loops = json.loads(file.read_text())["loops"]
    assert len(loops) == (1 if given[1:] else 5)
    hottest = loops[0]
    assert hottest["function"] == "thimble_mat_mult_windows_s8"
    assert hottest["operators"][0]["name"] == "conv2d_4"
    assert hottest["iterations"] > hottest["entries"] > 0
    kinds = ("core_cycles", "fetch_cycles", "data_cycles")
    summed = sum(line[kind] for line in hottest["instructions"] for kind in kinds)
    assert hottest["cycles"] == pytest.approx(summed, rel=1e-3)
    assert [loop["cycles"] for loop in loops] == sorted((p["cycles"] for p in loops), reverse=True)
    said = capsys.readouterr().out
    for text in ("thimble_mat_mult_windows_s8", "smlad", "ldr"):
        assert text in said


def test_without_the_plugin_instructions_say_why(
    compiled: Path,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A machine with QEMU and without a compiler of its own, which the plugin is built with."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("qemu-system-arm", "arm-none-eabi-objdump"):
        (tools / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    trace_plugin.unavailable.cache_clear()
    try:
        assert run(["run", str(compiled), "--json", str(tmp_path / "run.json")]) == 0
        latency = json.loads((tmp_path / "run.json").read_text())["latency"]
        assert (latency["unit"], latency["milliseconds"]) == ("instructions", None)
        assert "No cycles: gcc is not installed" in capsys.readouterr().out
        assert run(["profile", str(compiled), "--runs", "1"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "instructions, counted; median of 1 runs" in said
        assert "No cycles: gcc is not installed" in said
        for option in ("--as=nucleo-f446re", "--annotate"):
            assert run(["profile", str(compiled), option]) == 2
            assert "gcc is not installed" in capsys.readouterr().err
    finally:
        trace_plugin.unavailable.cache_clear()
    assert {row.unit for row in database.rows()} == {"instructions"}


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
    assert (timing.unit, timing.basis, timing.no_cycles) == ("cycles", "trace", "")
    assert all(entry.spread < 100 for entry in timing.measured)  # the first has cold caches
    alone = {entry.key: entry.count for entry in timing.measured}
    profile = profile_folder(compiled, runs=1)
    record(profile, compiled, database)
    for entry in database.rows(BOARD):
        assert entry.count == pytest.approx(alone[entry.key], rel=0.01, abs=250)
        assert (entry.unit, entry.basis) == ("cycles", "trace")
    again = time_kernels(kernels, BOARD, database=database)
    assert (again.known, again.measured) == (len(kernels), ())


def test_kernels_are_timed_for_a_board_that_is_not_there(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["profile", "--kernels", str(MODEL), "-b", BOARD, "--runs", "1"]
    assert run([*command, "--as", "nucleo-l4r5zi"]) == 0
    assert "11 kernels timed on nucleo-l4r5zi in cycles, modelled" in capsys.readouterr().out
    assert {(row.board, row.basis) for row in database.rows()} == {("nucleo-l4r5zi", "trace")}
    assert run(["plan", str(MODEL), "-b", "nucleo-l4r5zi", "--no-copies", "--json", "-"]) == 0
    latency = json.loads(capsys.readouterr().out)["latency"]
    assert (latency["unit"], latency["basis"]) == ("cycles", "trace")
    assert latency["milliseconds"] == pytest.approx(latency["total"] / 120_000)
    for wrong, said in (("stm32l4r0", "there is no board"), ("nucleo-h743zi", "cortex-m7")):
        assert run([*command, "--as", wrong]) == 2
        assert said in " ".join(capsys.readouterr().err.split())


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

    def opener(source: Firmware, port: str | None, *, trace: MemorySystem | None = None) -> Session:
        if len(opened) == 3:
            raise LinkError("the cable is out")
        session = open_board(source, port, trace=trace)
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
        wire = Wire(opener=opener, replug_seconds=0.01)
        time_kernels(kernels, BOARD, wire=wire, runs=2, database=database)
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
    tuning = tune(MODEL, BOARD, PlanOptions(copy_constants=False), database=database)
    assert tuning.settled
    assert [entry.measured_now for entry in tuning.rounds][-1] == 0
    assert tuning.rounds[0].measured_share == 0.0
    assert tuning.rounds[-1].measured_share == 1.0
    profile_total = tuning.rounds[-1].predicted
    command = ["compile", str(MODEL), "-b", BOARD, "--tune", "--no-copies"]
    command += ["-o", str(tmp_path / "out")]
    assert run([*command, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    latency = found["latency"]
    assert (latency["total"], latency["measured_share"]) == (profile_total, 1.0)
    assert (latency["unit"], latency["basis"]) == ("cycles", "trace")
    assert latency["milliseconds"] == pytest.approx(profile_total / 168_000)
    assert len(found["tuning"]["rounds"]) == 1
    measured = profile_folder(tmp_path / "out", runs=1).total
    assert profile_total == pytest.approx(measured, rel=0.01)
    assert run([*command]) == 0
    assert "known share" in capsys.readouterr().out


def test_check_compares_what_was_known_before(database: Database) -> None:
    (first,) = check_model(MODEL, BOARD)
    second, other = check_model(MODEL, BOARD, read_as=("nucleo-l4r5zi",))
    assert first.known == first.estimated and first.known.measured_share == 0
    assert second.known.measured_share == 1
    assert second.known.mean_error < 0.05
    assert second.known.mean_error <= first.estimated.mean_error < 0.08
    assert (second.unit, second.basis, second.known.unit) == ("cycles", "trace", "cycles")
    assert abs(second.known.total_error) < 0.01
    assert (other.board, other.ran_on, other.unit) == ("nucleo-l4r5zi", BOARD, "cycles")
    assert other.measured > second.measured
    assert other.known == other.estimated and other.known.mean_error < 0.1


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
