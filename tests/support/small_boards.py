"""Boards for tests: an emulated board that has less memory than it has, in other banks."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from toolchain import boards

RAM = re.compile(r'\[\[memory\]\]\n(?:(?!\[).+\n)*kind = "ram"\n(?:(?!\[).+\n)*')


@contextmanager
def small_board(
    like: str, folder: Path, ram: Sequence[tuple[str, int, int, int, str]]
) -> Iterator[str]:
    """The name of a board as `like`, with RAM of (name, origin, bytes, access cycles, holds)."""
    for name in boards.boards():
        shutil.copytree(boards.BOARDS / name, folder / name)
    text = (folder / like / "board.toml").read_text()
    entries = "".join(
        f'[[memory]]\nname = "{name}"\norigin = {origin}\nsize_bytes = {size}\nkind = "ram"\n'
        f"access_cycles = {cycles}\nholds = {holds.split()}\n\n"
        for name, origin, size, cycles, holds in ram
    )
    assert RAM.search(text)
    text = RAM.sub("", text).replace("[uart]", entries + "[uart]")
    (folder / f"small-{like}").mkdir()
    (folder / f"small-{like}" / "board.toml").write_text(text)
    boards.boards.cache_clear()
    try:
        with patch.object(boards, "BOARDS", folder):
            boards.boards()
            yield f"small-{like}"
    finally:
        boards.boards.cache_clear()
