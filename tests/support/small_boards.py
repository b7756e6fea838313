"""Boards for tests: an emulated board that has less memory than it has, in other banks."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from toolchain.boards import board
from toolchain.boards.places import ENVIRONMENT_VARIABLE
from toolchain.resources import BOARDS

RAM = re.compile(r'\[\[memory\]\]\n(?:(?!\[).+\n)*kind = "ram"\n(?:(?!\[).+\n)*')


@contextmanager
def small_board(
    like: str, folder: Path, ram: Sequence[tuple[str, int, int, int, str]]
) -> Iterator[str]:
    """The name of a board as `like`, with RAM of (name, origin, bytes, access cycles, holds)."""
    chips = folder / "chips"
    chips.mkdir(parents=True)
    shutil.copytree(BOARDS / "chips" / "families", chips / "families")
    text = (BOARDS / "chips" / f"{board(like).chip.name}.toml").read_text()
    entries = "".join(
        f'[[memory]]\nname = "{name}"\norigin = {origin}\nsize_bytes = {size}\nkind = "ram"\n'
        f"access_cycles = {cycles}\nholds = {holds.split()}\n\n"
        for name, origin, size, cycles, holds in ram
    )
    assert RAM.search(text)
    (chips / "small.toml").write_text(RAM.sub("", text) + "\n" + entries)
    (folder / f"small-{like}").mkdir()
    text = (BOARDS / like / "board.toml").read_text()
    (folder / f"small-{like}" / "board.toml").write_text(
        text.replace(f'chip = "{board(like).chip.name}"', 'chip = "small"')
    )
    with patch.dict("os.environ", {ENVIRONMENT_VARIABLE: str(folder)}):
        yield f"small-{like}"
