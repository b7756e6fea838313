"""The march of the contact firmware over memory with a real fault: two addresses for one page, as
where a line of the address is not connected."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.resources import RUNTIME_C

SOURCE = Path(__file__).parents[1] / "support" / "firmware" / "marched.c"
FIRMWARE = RUNTIME_C / "firmware"
PAGE = mmap.PAGESIZE
MAP_32BIT, MAP_FIXED, MAP_SHARED, MAP_ANONYMOUS = 0x40, 0x10, 0x01, 0x20
READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or sys.platform != "linux" or os.uname().machine != "x86_64",
    reason="needs gcc, and memory below 4 GB by MAP_32BIT",
)


@pytest.fixture(scope="module")
def march(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    target = tmp_path_factory.mktemp("march") / "march.so"
    flags = ["-std=gnu99", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    places = [f"-I{FIRMWARE}", f"-I{FIRMWARE / 'include'}", f"-I{FIRMWARE / 'contact'}"]
    counter = "-DTHIMBLE_COUNTER_REGISTER=0"
    command = ["gcc", *flags, counter, *places, str(SOURCE), "-o", str(target)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(target))


def mapped(pages: int, file: int = -1, at: int = 0) -> int:
    """The address of new memory, or of a file's pages at `at`."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    flags = MAP_SHARED | (MAP_FIXED if at else MAP_32BIT) | (0 if file >= 0 else MAP_ANONYMOUS)
    found = libc.mmap(
        ctypes.c_void_p(at),
        ctypes.c_size_t(pages * PAGE),
        READ_WRITE,
        flags,
        file,
        ctypes.c_long(0),
    )
    assert found and found < 1 << 32
    return int(found)


def answer(march: ctypes.CDLL, start: int, size_bytes: int) -> list[int]:
    words = (ctypes.c_uint32 * 7)(start, size_bytes)
    found = (ctypes.c_uint32 * 16)()
    march.contact_march(words, found)
    return list(found[:4])


def test_good_memory_has_no_bad_word_and_is_empty_afterwards(march: ctypes.CDLL) -> None:
    start = mapped(4)
    assert answer(march, start, 4 * PAGE) == [0, 0, 0, 0]
    held = ctypes.string_at(start, 4 * PAGE)
    assert held == b"\x55" * (4 * PAGE)  # the second background's last element


@pytest.mark.parametrize("alias", [1, 2])
def test_words_with_two_addresses_are_found(march: ctypes.CDLL, alias: int) -> None:
    file = os.memfd_create("page")
    os.ftruncate(file, PAGE)
    start = mapped(4)
    mapped(1, file, start)
    mapped(1, file, start + alias * PAGE)
    bad, address, wanted, seen = answer(march, start, 4 * PAGE)
    assert bad == 1 and address == start + alias * PAGE
    assert (wanted, seen) == (0, 0xFFFF_FFFF)
    os.close(file)
