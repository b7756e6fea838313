"""A compiled folder where its board is not: on the emulated board that stands for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolchain.boards import stand_in
from toolchain.deployment.folder import compiled_board
from toolchain.device.firmware import Firmware, load_firmware
from toolchain.device.session import is_here
from toolchain.device.stand_in import LIBRARY, linked_for_stand_in, linked_library
from toolchain.errors import InputError
from toolchain.files import scratch_folder
from toolchain.progress import Report, silent


@contextmanager
def firmware_here(
    folder: str | Path, port: str | None = None, report: Report = silent
) -> Iterator[Firmware | None]:
    """The firmware of a compiled folder, or where its board is not here (no `port` is named, none
    found) the same C linked for the emulated board that stands for it. None for this machine, which
    has no firmware.

    Raises InputError as `load_firmware`, `linked_for_stand_in` and `linked_library` do, and where
    several ports could be the board's; MissingToolError.
    """
    board = compiled_board(folder)
    if board.is_host:
        yield None
        return
    if board.is_core:
        if not (Path(folder) / LIBRARY).is_file():
            raise InputError(
                f"{folder} holds the C of {board.name}, a core without a board, and no emulated "
                "board takes it",
                remedies=[f"`thimble verify MODEL --chip {board.name}`, which runs the model here"],
            )
        with scratch_folder() as scratch:
            yield linked_library(Path(folder), board, scratch, report)
        return
    firmware = load_firmware(Path(folder))
    if is_here(firmware.board, port) or stand_in(firmware.board) is None:
        yield firmware
        return
    with scratch_folder() as scratch:
        yield linked_for_stand_in(firmware, scratch, report)
