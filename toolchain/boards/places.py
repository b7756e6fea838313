"""Where boards come from: this package, folders of the user's, and files named by their path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from toolchain.resources import BOARDS

ENVIRONMENT_VARIABLE = "THIMBLE_BOARDS"
FILE = "board.toml"
CHIPS = "chips"
CORES = "cores"


def user_folders() -> tuple[Path, ...]:
    """Folders of the user's boards: those that `$THIMBLE_BOARDS` lists (separated as in PATH), then
    `thimble/boards` in the folder of the user's configuration (`$XDG_CONFIG_HOME`, else
    `~/.config`).
    """
    named = os.environ.get(ENVIRONMENT_VARIABLE, "").split(os.pathsep)
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(configured) if configured else Path("~/.config").expanduser()
    return (*(Path(name).absolute() for name in named if name), base / "thimble" / "boards")


def board_files_by_name() -> Mapping[str, Path]:
    """Every `board.toml` by the name of its folder. A board of this package goes before a board of
    the user's with the same name, and an earlier folder before a later one.
    """
    files: dict[str, Path] = {}
    for folder in (BOARDS, *user_folders()):
        for file in sorted(folder.glob(f"*/{FILE}")):
            files.setdefault(file.parent.name, file)
    return MappingProxyType(dict(sorted(files.items())))


def file_of(name: str) -> Path | None:
    """The file that a path names: a `.toml`, or a folder with a `board.toml`; None for what is no
    path, such as the name of a board.
    """
    path = Path(name)
    if path.suffix != ".toml" and len(path.parts) < 2 and not name.startswith("."):
        return None
    return (path if path.suffix == ".toml" else path / FILE).absolute()
