"""Boards of the user's own, and chips without a board."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from toolchain.boards import as_target, board, board_files, boards, invalid_boards
from toolchain.boards.places import ENVIRONMENT_VARIABLE
from toolchain.deployment.compile import compile_library, compile_model
from toolchain.errors import InputError
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
