"""Boards of the user's own, and chips without a board."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.long import mostly_long
from toolchain.boards import as_target, board, board_files, boards, chips, invalid_boards
from toolchain.boards.places import ENVIRONMENT_VARIABLE
from toolchain.cli import run
from toolchain.deployment.compile import compile_library, compile_model
from toolchain.deployment.fitting import fits
from toolchain.errors import InputError
from toolchain.planning.options import PlanOptions
from toolchain.resources import BOARDS

DIGITS = BOARDS.parent / "examples" / "digits" / "digits_int8.tflite"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A copy of a board, as a user's."""
    folder = tmp_path / "boards" / "mine"
    shutil.copytree(BOARDS / "nucleo-f446re", folder)
    return folder


def test_a_board_is_named_by_its_folder_or_its_file(mine: Path) -> None:
    for name in (str(mine), str(mine / "board.toml")):
        found = board(name)
        assert (found.name, found.chip.name) == (str(mine), "stm32f446")
        assert mine / "board.toml" in board_files(name)
        assert as_target(name).clock_hz == found.clock_hz


def test_a_path_is_relative_to_the_working_folder(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mine.parent)
    assert board("./mine").name == str(mine)
    with pytest.raises(InputError, match=r"there is no .*other/board\.toml"):
        board("./other")


def test_boards_of_a_folder_have_names(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "mine" not in boards()
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, f"/nowhere:{mine.parent}")
    assert board("mine").clock_hz == 180_000_000
    assert "mine" in boards()
    assert mine / "board.toml" in board_files("mine")


def test_boards_of_the_users_configuration_have_names(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(mine.parent, tmp_path / "thimble" / "boards")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert board("mine").chip.name == "stm32f446"


def test_an_invalid_board_is_told_where_it_is_used_and_nowhere_else(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = mine / "board.toml"
    file.write_text(file.read_text().replace("180_000_000", "500_000_000"))
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(mine.parent))
    assert "mine" not in boards() and "500,000,000" in invalid_boards()["mine"]
    assert board("nucleo-f446re").clock_hz == 180_000_000
    with pytest.raises(InputError, match="500,000,000"):
        board("mine")


def test_a_board_that_was_changed_is_read_again(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a notebook, say. One that was not is the same object."""
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(mine.parent))
    file = mine / "board.toml"
    assert board("mine") is board("mine") and board(str(mine)) is board(str(mine))
    file.write_text(file.read_text().replace("115_200", "57_600"))
    assert board("mine").uart == board(str(mine)).uart
    assert board("mine").uart != board("nucleo-f446re").uart
    chips = mine.parent / "chips"
    (chips / "families").mkdir(parents=True)
    for name in ("stm32f446.toml", "families/stm32f4.toml"):
        shutil.copy(BOARDS / "chips" / name, chips / name)
    assert board("mine").chip.title == "STM32F446"
    own = chips / "stm32f446.toml"
    own.write_text(own.read_text().replace('title = "STM32F446"', 'title = "Like an F446"'))
    assert board("mine").chip.title == "Like an F446"


def test_a_board_of_ours_keeps_its_name(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine.rename(mine.parent / "host")
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(mine.parent))
    assert board("host").is_host


@pytest.mark.parametrize(
    ("name", "chip", "flash_kib"),
    [
        ("stm32u575", "stm32u575", 2048),
        ("STM32U575ZIT6Q", "stm32u575", 2048),
        ("stm32u575cg", "stm32u575", 1024),
        ("STM32F446RCT6", "stm32f446", 256),
        ("STM32WBA55CEU6", "stm32wba55", 512),
    ],
)
def test_a_part_number_is_a_board_of_its_chip_alone(name: str, chip: str, flash_kib: int) -> None:
    found = board(name)
    assert found.chip.name == chip and found.uart is None
    assert found.memories[0].size_bytes == flash_kib * 1024
    assert found.clock_hz == found.chip.most_clock_hz


def test_a_part_cannot_have_more_flash_than_its_chip() -> None:
    with pytest.raises(InputError, match="1024 KiB of flash by its letter"):
        board("STM32F446RGT6")


@pytest.mark.parametrize("name", ["stm32", "stm32u5", "stm32u575zit6q!", "host2"])
def test_what_is_no_part_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="there is no board"):
        board(name)


def test_a_bare_chip_gets_c_but_no_firmware(tmp_path: Path) -> None:
    made = compile_library(DIGITS, "STM32U575ZI", tmp_path / "library")
    assert made.plan.board == "stm32u575zi"
    with pytest.raises(InputError, match="chip without a board") as caught:
        compile_model(DIGITS, "STM32U575ZI", tmp_path / "firmware")
    assert "thimble boards new NAME --chip stm32u575" in str(caught.value)
    assert not (tmp_path / "firmware").exists()


def thimble(*arguments: str) -> int:
    return run([str(argument) for argument in arguments])


def test_a_new_board_is_one_that_compiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        thimble("boards", "new", "greenhouse", "--chip", "STM32F446RCT6", "-o", str(tmp_path)) == 0
    )
    made = board(str(tmp_path / "greenhouse"))
    assert made.chip.name == "stm32f446" and made.memories[0].size_bytes == 256 * 1024
    assert made.clock_hz == made.chip.most_clock_hz and made.clocks_hz["apb1"] == 45_000_000
    before = (tmp_path / "greenhouse" / "board.toml").read_text()
    assert thimble("boards", "new", "greenhouse", "--chip", "stm32f405", "-o", str(tmp_path)) == 2
    assert (tmp_path / "greenhouse" / "board.toml").read_text() == before
    capsys.readouterr()
    assert thimble("boards", "check", str(tmp_path / "greenhouse"), "--json", "-") == 0
    (told,) = json.loads(capsys.readouterr().out)["boards"]
    assert told["clocks_hz"]["apb2"] == 90_000_000 and told["flash_bytes"] == 256 * 1024


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[flash.stlink]", "[flash.jlink]", "names unknown flashing tools: jlink"),
        (
            "[flash.stlink]",
            '[flash.stlink]\ntarget = "x"',
            "[flash.stlink] has target; it needs",
        ),
        ("config =", "file =", "[flash.openocd] has file; it needs config"),
    ],
)
def test_a_flashing_tool_that_is_wrong_is_told(
    old: str, new: str, message: str, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = mine / "board.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    assert thimble("boards", "check", str(mine)) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    mostly_long(
        [c.name for c in chips().values() if c.clock is not None and c.firmware_sources],
        {c.family: c.name for c in chips().values() if c.clock and c.firmware_sources}.values(),
    ),
)
def test_every_chip_with_firmware_begins_at_its_highest_clock(name: str, tmp_path: Path) -> None:
    assert thimble("boards", "new", "first", "--chip", name, "-o", str(tmp_path)) == 0
    assert board(str(tmp_path / "first")).clock_hz == chips()[name].most_clock_hz


@pytest.mark.parametrize(
    ("name", "chip", "message"),
    [
        ("../greenhouse", "stm32f446", "names no board"),
        ("greenhouse", "stm32f999", "there is no chip 'stm32f999'"),
        ("greenhouse", "an385", "an385 has no firmware here"),
    ],
)
def test_what_cannot_begin_is_refused(
    name: str, chip: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert thimble("boards", "new", name, "--chip", chip, "-o", str(tmp_path / "mine")) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "mine").exists()


@pytest.mark.slow
def test_the_boards_that_hold_a_model_come_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, mine: Path
) -> None:
    smaller = mine.parent / "chips"
    (smaller / "families").mkdir(parents=True)
    for name in ("stm32f446.toml", "families/stm32f4.toml"):
        shutil.copy(BOARDS / "chips" / name, smaller / name)
    text = (
        (smaller / "stm32f446.toml")
        .read_text()
        .replace("size_bytes = 0x0002_0000", "size_bytes = 0x0800")
    )
    (smaller / "stm32f446.toml").write_text(text)
    few = {name: boards()[name] for name in ("nucleo-h743zi", "nucleo-f446re")}
    few["mine"] = board(str(mine))
    found = fits(DIGITS, tuple(few.values()), PlanOptions())
    assert [fit.board.name for fit in found] == ["nucleo-f446re", "nucleo-h743zi", str(mine)]
    assert found[0].need is not None and found[0].milliseconds > 0
    assert "does not fit" in found[2].why_not or "bytes" in found[2].why_not
