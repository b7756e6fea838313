"""The command line from end to end, on the bundled model in the emulated STM32F405."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from toolchain.cli import run

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
MODEL = str(DIGITS / "digits_int8.tflite")
KWS = DIGITS.parents[2] / "shared" / "models" / "mlperf_tiny_kws_dscnn_int8.tflite"
BOARD = "netduinoplus2"
PLAN_FIELDS = {
    "model",
    "board",
    "scheduler",
    "peak_bytes",
    "arena_bytes",
    "lower_bound_bytes",
    "proved_optimal",
    "ram_bytes",
    "flash_bytes",
    "code_bytes",
    "weight_bytes",
    "slowdown_percent",
    "latency",
    "seconds",
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "digits"
    report = folder.with_suffix(".json")
    assert run(["compile", MODEL, "-b", BOARD, "-o", str(folder), "--json", str(report)]) == 0
    fields = json.loads(report.read_text())
    assert fields.keys() >= PLAN_FIELDS
    assert fields["latency"].keys() >= {"total", "unit", "measured_share", "milliseconds", "basis"}
    assert 0 < fields["code_bytes"] < fields["flash_bytes"]
    return folder


def test_compile_writes_sources_and_firmware(compiled: Path) -> None:
    names = {path.name for path in compiled.iterdir()}
    assert names >= {"plan.json", "firmware.elf", "firmware.bin", "firmware.hex"}
    assert names >= {"digits_int8.c", "digits_int8.h"}
    assert not [path for path in compiled.parent.iterdir() if path.name.startswith(".")]


def test_compile_replaces_its_own_folder_and_nobody_elses(compiled: Path, tmp_path: Path) -> None:
    before = (compiled / "firmware.bin").read_bytes()
    assert run(["compile", MODEL, "-b", BOARD, "-o", str(compiled)]) == 0
    assert (compiled / "firmware.bin").read_bytes() == before
    (tmp_path / "thesis.txt").write_text("mine")
    assert run(["compile", MODEL, "-b", BOARD, "-o", str(tmp_path)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_run_gives_outputs_and_counts(compiled: Path, tmp_path: Path) -> None:
    with np.load(DIGITS / "samples.npz") as samples:
        image, label = samples["images"][0], int(samples["labels"][0])
    np.save(
        tmp_path / "image.npy", (image.astype(np.int16) * 16 - 128).astype(np.int8)[None, ..., None]
    )
    target = tmp_path / "run.json"
    command = ["run", str(compiled), "-i", str(tmp_path / "image.npy"), "--json", str(target)]
    assert run(command) == 0
    result = json.loads(target.read_text())
    (output,) = result["outputs"].values()
    assert output["shape"] == [1, 10]
    assert output["dtype"] == "int8"
    assert int(np.argmax(output["data"])) == label
    latency = result["latency"]
    assert (latency["unit"], latency["basis"]) == ("cycles", "trace")
    assert latency["total"] > latency["instructions"] > 10_000
    assert latency["milliseconds"] == pytest.approx(latency["total"] / 168_000)


@pytest.mark.parametrize("board", ["netduinoplus2", "host"])
@pytest.mark.parametrize("model", ["digits_int8.tflite", "digits_qdq.onnx"])
def test_verify_matches(board: str, model: str, tmp_path: Path) -> None:
    target = tmp_path / "verify.json"
    command = ["verify", str(DIGITS / model), "-b", board, "--runs", "5", "--json", str(target)]
    assert run(command) == 0
    result = json.loads(target.read_text())
    assert result["runs"] == 5
    assert result["elements"] == 50
    if model.endswith(".tflite"):
        assert result["differing"] == 0
    assert result["max_difference"] <= result["tolerance"]


def test_plan_and_boards_report_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", MODEL, "-b", BOARD, "--json", "-"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields.keys() >= PLAN_FIELDS
    assert fields["board"] == "netduinoplus2"
    assert run(["boards", "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)["boards"]
    assert {"netduinoplus2", "host"} <= {board["name"] for board in listed}


def test_json_never_replaces_a_device_or_pipe(tmp_path: Path) -> None:
    assert run(["boards", "--json", os.devnull]) == 0
    assert Path(os.devnull).is_char_device()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as readers:  # the list is longer than what a pipe holds
        read = readers.submit(pipe.read_bytes)
        assert run(["boards", "--json", str(pipe)]) == 0
        assert read.result(10).startswith(b"{")
    assert run(["boards", "--json", str(tmp_path)]) == 2


def test_doctor_finds_what_these_tests_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["ready"] is True


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["plan", "absent.tflite"], 2, "absent.tflite"),
        (["plan", MODEL, "--board", "absent"], 2, "no board"),
        (["plan", MODEL, "--scheduler", "absent"], 2, "no scheduler"),
        (["plan", MODEL, "--allocator", "absent"], 2, "no allocator"),
        (["plan"], 2, "MODEL"),
        (["absent"], 2, "absent"),
        (["run", "absent"], 2, "absent"),
        (["compile", str(DIGITS / "README.md"), "-b", BOARD], 2, "README.md"),
    ],
)
def test_bad_input_is_one_clear_error(
    command: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command) == code
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_run_refuses_data_of_another_size(
    compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "short.bin").write_bytes(b"123")
    assert run(["run", str(compiled), "-i", str(tmp_path / "short.bin")]) == 2
    assert "holds 3 bytes" in capsys.readouterr().err


def test_flash_prints_the_command_for_a_board_and_says_where_there_is_nothing_to_flash(
    compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["flash", str(compiled)]) == 2
    assert "nothing to flash" in capsys.readouterr().err
    folder = tmp_path / "f446"
    assert run(["compile", MODEL, "-b", "nucleo-f446re", "-o", str(folder)]) == 0
    capsys.readouterr()
    assert run(["flash", str(folder), "--dry-run", "--json", "-"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["flashed"] is False
    assert str(folder / "firmware.elf") in said["command"]


def test_a_library_is_c_alone(tmp_path: Path) -> None:
    assert run(["compile", MODEL, "--library", "-b", BOARD, "-o", str(tmp_path / "lib")]) == 0
    names = {path.name for path in (tmp_path / "lib").iterdir()}
    assert names >= {"CMakeLists.txt", "digits_int8.c", "plan.json"}


@pytest.mark.parametrize("board", ["host", "netduinoplus2"])
def test_a_library_is_no_firmware_to_run(
    board: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compile", MODEL, "--library", "-b", board, "-o", str(tmp_path / "lib")]) == 0
    assert run(["run", str(tmp_path / "lib")]) == 2
    assert "without --library" in capsys.readouterr().err


def test_every_command_teaches_in_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("boards", "compile", "doctor", "flash", "plan", "profile", "run", "verify"):
        assert run([name, "--help"]) == 0
        assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize("model", [Path(MODEL), KWS], ids=["digits", "kws"])
def test_one_figure_of_weights(model: Path, tmp_path: Path) -> None:
    """`plan`, `compile`, the header and the linked arrays agree."""
    if not model.exists():
        pytest.skip(f"{model} is not there")
    planned, made, folder = tmp_path / "plan.json", tmp_path / "made.json", tmp_path / "made"
    assert run(["plan", str(model), "-b", BOARD, "--json", str(planned)]) == 0
    assert run(["compile", str(model), "-b", BOARD, "-o", str(folder), "--json", str(made)]) == 0
    (name,) = (path.stem.removesuffix("_weights") for path in folder.glob("*_weights.h"))
    with (folder / "firmware.elf").open("rb") as file:
        elf = ELFFile(file)
        symbols = elf.get_section_by_name(".symtab").iter_symbols()
        arrays = [s for s in symbols if s["st_info"]["type"] == "STT_OBJECT"]
        weights = re.compile(rf"{name}_op\d+_(?!.*_blocks$)")
        linked = sum(s["st_size"] for s in arrays if weights.match(s.name))
    header = (folder / f"{name}.h").read_text(encoding="utf-8")
    assert linked > 0
    assert json.loads(planned.read_text())["weight_bytes"] == linked
    assert json.loads(made.read_text())["weight_bytes"] == linked
    assert re.search(rf"weights +{linked:,} bytes of flash", header)
