"""Texts of chips' and boards' files: each has a form, and nothing else reaches a tool or a file."""

import dataclasses
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from toolchain.boards import read_board, read_chip
from toolchain.boards.entries import BoardEntry, ChipEntry, MemoryEntry
from toolchain.errors import InputError
from toolchain.resources import BOARDS

CHIP = (BOARDS / "chips" / "stm32f405.toml").read_text(encoding="utf-8")
BOARD = (BOARDS / "nucleo-f446re" / "board.toml").read_text(encoding="utf-8")


def _plain_texts(kind: Any, where: str) -> Iterator[str]:
    """Where a type of an entry takes any text at all."""
    origin = get_origin(kind)
    if kind is str:
        yield where
    elif isinstance(kind, type) and dataclasses.is_dataclass(kind):
        for name, inner in get_type_hints(kind, include_extras=True).items():
            yield from _plain_texts(inner, f"{where}.{name}")
    elif origin in (Union, types.UnionType, tuple, frozenset, Mapping):
        for number, inner in enumerate(get_args(kind)):
            yield from _plain_texts(inner, f"{where}[{number}]")
    else:
        assert origin in (Annotated, Literal) or isinstance(kind, type) or kind in (Any, ...), kind


@pytest.mark.parametrize("entry", [ChipEntry, BoardEntry, MemoryEntry])
def test_every_text_of_a_file_has_a_form(entry: type) -> None:
    assert list(_plain_texts(entry, entry.__name__)) == []


def _chip(folder: Path, old: str, new: str) -> Path:
    assert old in CHIP
    (folder / "chips" / "families").mkdir(parents=True)
    family = BOARDS / "chips" / "families" / "stm32f4.toml"
    text = family.read_text(encoding="utf-8")
    (folder / "chips" / "families" / "stm32f4.toml").write_text(text, encoding="utf-8")
    file = folder / "chips" / "own.toml"
    file.write_text(CHIP.replace(old, new, 1), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "flag",
    [
        "-wrapper",
        "evil.sh",
        "-fplugin=evil.so",
        "-specs=evil.specs",
        "-Bfolder",
        "-include/etc/passwd",
        "@file",
        "-Wl,-T,evil.ld",
        "-mcpu=cortex-m4 -wrapper",
        "-mcpu=cortex-m4\\n",
        "-DNAME=`id`",
        "-DNAME=a;b",
        "-D1NAME=1",
        "-DNAME(x)=x",
        "-mthumb-interwork",
        "-o/tmp/x",
    ],
)
def test_a_chip_asks_gcc_for_its_core_and_nothing_else(tmp_path: Path, flag: str) -> None:
    file = _chip(
        tmp_path, "[firmware.defines]", f'[core]\nflags = ["-mthumb", "{flag}"]\n[firmware.defines]'
    )
    with pytest.raises(InputError, match=r"core: flags\[1\] is .*-mcpu="):
        read_chip(file)


def test_the_flags_of_cores_are_taken(tmp_path: Path) -> None:
    flags = (
        '["-mcpu=cortex-m33+nodsp", "-mthumb", "-mcmse", "-mfpu=fpv5-sp-d16", "-DX", "-DY=0x1u"]'
    )
    new = f"[core]\nflags = {flags}\n[firmware.defines]"
    chip = read_chip(_chip(tmp_path, "[firmware.defines]", new))
    assert chip.compiler_flags[-2:] == ("-DX", "-DY=0x1u")


@pytest.mark.parametrize(
    "old, new, place",
    [
        ('title = "STM32F405"', 'title = "a\\nb"', "title is"),
        ('title = "STM32F405"', 'title = "a\\u202eb"', "title is"),
        ('title = "STM32F405"', f'title = "{"a" * 121}"', "title is"),
        ('family = "stm32f4"', 'family = "../../secret"', "family is"),
        ('name = "FLASH"', 'name = "FLASH (rwx) : ORIGIN = 0"', "name is"),
        ('timing = "flash"', 'timing = "a\\nb"', "timing is"),
        ("THIMBLE_ONE_VOS_BIT = 1", '"A B" = 1', "a name is"),
        ("THIMBLE_ONE_VOS_BIT = 1", 'THIMBLE_X = "1\\n#include <x>"', "defines.THIMBLE_X is"),
        ("[firmware.defines]", '[firmware]\nsources = ["../../evil.c"]\n[firmware.defines]', "sou"),
        ("[firmware.defines]", '[firmware]\nsources = ["/tmp/evil.c"]\n[firmware.defines]', "sour"),
        ("[identity]", '[core]\nname = "cortex-m4\\")"\n[identity]', "core: name is"),
    ],
)
def test_texts_of_a_chip(tmp_path: Path, old: str, new: str, place: str) -> None:
    with pytest.raises(InputError, match=place):
        read_chip(_chip(tmp_path, old, new))


@pytest.mark.parametrize(
    "old, new, place",
    [
        ('title = "', 'title = "\\u001b[31m', "title is"),
        ('chip = "', 'chip = "../', "chip is"),
        ('config = "', 'config = "../', "flash.openocd.config is"),
        ('config = "', 'config = "/tmp/', "flash.openocd.config is"),
        ('config = "', 'config = "-c exec ', "flash.openocd.config is"),
        ('target = "', 'target = "--script=', "flash.pyocd.target is"),
    ],
)
def test_texts_of_a_board(tmp_path: Path, old: str, new: str, place: str) -> None:
    assert old in BOARD
    (tmp_path / "own").mkdir()
    file = tmp_path / "own" / "board.toml"
    file.write_text(BOARD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=place):
        read_board(file)


def test_a_machine_of_qemu_is_one_word(tmp_path: Path) -> None:
    text = (BOARDS / "netduinoplus2" / "board.toml").read_text(encoding="utf-8")
    for machine in ("virt,firmware=/etc/passwd", "-kernel", "a b"):
        folder = tmp_path / str(len(machine))
        folder.mkdir()
        file = folder / "board.toml"
        file.write_text(text.replace("netduinoplus2", machine), encoding="utf-8")
        with pytest.raises(InputError, match="emulator: machine is"):
            read_board(file)
