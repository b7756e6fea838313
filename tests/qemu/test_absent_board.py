"""A board that is not here: commands that run models, on the emulated board for it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolchain.boards import Board
from toolchain.cli import _builds, run
from toolchain.cost.database import Database
from toolchain.device import session
from toolchain.device.firmware import MANIFEST, Firmware, load_firmware
from toolchain.device.ports import NoPortError
from toolchain.device.stand_in import linked_for_stand_in
from toolchain.errors import InputError
from toolchain.files import scratch_folder
from toolchain.page.build import Findings
from toolchain.planning.options import PlanOptions
from toolchain.progress import silent

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
MODEL = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
BOARD, STAND_IN = "nucleo-f446re", "mps2-an386:nucleo-f446re"
SAID = (
    "nucleo-f446re is not plugged in: its C ran in QEMU on mps2-an386, with the clock and memories "
    "of nucleo-f446re (mps2-an386:nucleo-f446re). --port names a board."
)


@pytest.fixture(autouse=True)
def nothing_is_plugged_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def find_port(board: Board, **_: Any) -> str:
        raise NoPortError(f"no port has the USB identity of {board.name}")

    monkeypatch.setattr(session, "find_port", find_port)
    monkeypatch.delenv("THIMBLE_PORT", raising=False)
    monkeypatch.setenv("THIMBLE_MEASUREMENTS", str(tmp_path / "m.sqlite"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("absent") / "real"
    assert run(["compile", str(MODEL), "-b", BOARD, "-o", str(folder)]) == 0
    return folder


def test_the_stand_in_runs_the_folders_own_c(
    compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file.name: file.read_bytes() for file in compiled.iterdir()}
    assert run(["run", str(compiled), "--json", "-"]) == 0
    output = capsys.readouterr()
    assert SAID in output.err
    ran = json.loads(output.out)
    assert (ran["board"], ran["ran_on"]) == (BOARD, STAND_IN)
    assert ran["latency"]["milliseconds"] == pytest.approx(ran["latency"]["total"] / 180_000)

    assert run(["profile", str(compiled), "--runs", "1", "--json", "-", "--quiet"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    profiled = json.loads(output.out)
    assert (profiled["board"], profiled["ran_on"]) == (BOARD, STAND_IN)
    assert (profiled["clock_hz"], profiled["unit"]) == (180_000_000, "cycles")
    assert profiled["instructions"] < profiled["total"]
    known = Database(tmp_path / "m.sqlite").rows(BOARD)
    copied = json.loads((compiled / "plan.json").read_text())["copied"]["operators"]
    assert copied > 0  # their times are not those of constants in flash
    assert len(known) == len(profiled["operators"]) - copied
    assert before == {file.name: file.read_bytes() for file in compiled.iterdir()}


def test_verify_compiles_for_the_board_and_runs_the_stand_in(
    compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["verify", str(MODEL), "-b", BOARD, "--runs", "1", "-o", str(out), "--json", "-"]
    assert run(words) == 0
    output = capsys.readouterr()
    assert SAID in output.err
    found = json.loads(output.out)
    assert (found["board"], found["ran_on"], found["differing"]) == (BOARD, STAND_IN, 0)
    assert (out / "firmware.bin").read_bytes() == (compiled / "firmware.bin").read_bytes()


def test_accuracy_is_that_of_the_stand_in(
    compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nine of the digits, of which LiteRT and the board take the same for what they are."""
    data, page = str(MODEL.parent / "samples.npz"), tmp_path / "page.html"
    words = ["accuracy", str(compiled), "-d", data, "--labels", data, "--std", "16"]
    words += ["--limit", "9", "--int8-model", str(MODEL), "--json", "-", "--html", str(page)]
    assert run(words) == 0
    output = capsys.readouterr()
    assert SAID in output.err
    found = json.loads(output.out)
    assert (found["board"], found["ran_on"], found["judged"]) == (BOARD, STAND_IN, "board")
    board, reference = found["runtimes"]["board"], found["runtimes"]["reference"]
    assert board["title"] == STAND_IN and board["confusions"] == reference["confusions"]
    assert (found["elements"], found["differing"], found["same_predictions"]) == (90, 0, 1.0)
    assert found["accuracy"] >= 8 / 9
    assert f"Labelled data ran on {STAND_IN}, not {BOARD}." in page.read_text()


@pytest.mark.parametrize("ran_on", [BOARD, STAND_IN])
def test_a_page_says_on_what_it_was_compared(ran_on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = SimpleNamespace(plan=SimpleNamespace(board=BOARD))
    for name, made in (
        ("compile_model", compiled),
        ("warn_of_plan", None),
        ("compiled_findings", Findings(plan={}, notes=("first",))),
        ("verify_model", SimpleNamespace(ran_on=ran_on)),
        ("verification_json", {}),
    ):
        monkeypatch.setattr(_builds, name, lambda *_, made=made, **__: made)
    pages = _builds.ran(MODEL, BOARD, _builds.PageOptions(verify=1), PlanOptions(), silent)
    *_, last = pages
    told = () if ran_on == BOARD else (f"Compared on {STAND_IN}, not {BOARD}.",)
    assert last.notes == ("first", *told)


def test_a_named_port_means_the_board_itself(
    compiled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["profile", str(compiled), "--as", "nucleo-l476rg", "--port", "/dev/no-such-tty"]
    assert run(words) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "nucleo-f446re is no emulated board: compile for mps2-an386 or netduinoplus2" in said


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("build_id", "00" * 16, "of other kernels or other C than are here now: compile again"),
        ("kernels", ["source/no/such.c"], "of other kernels or other C than are here now"),
        ("kernels", ["../../etc/passwd"], "../../etc/passwd is not in its folder"),
        ("linked", None, "does not say what it was linked of: compile again"),
    ],
)
def test_what_cannot_be_linked_again_is_refused(
    field: str, value: object, said: str, compiled: Path, tmp_path: Path
) -> None:
    manifest = json.loads((compiled / MANIFEST).read_text())
    (manifest["linked"] if field in manifest["linked"] else manifest)[field] = value
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    for file in compiled.glob("*.[ch]"):
        shutil.copy(file, tmp_path)
    with pytest.raises(InputError, match=said), scratch_folder() as scratch:
        linked_for_stand_in(load_firmware(tmp_path), scratch)


def test_no_message_names_a_folder_that_is_removed(compiled: Path) -> None:
    built = load_firmware(compiled)
    assert str(compiled) in built.to_flash
    with scratch_folder() as scratch:
        kept = Firmware(scratch / "build", built.board, built.models, built.sizes, built.build_id)
        assert kept.to_flash == "keep the build (-o DIR) and flash that"
