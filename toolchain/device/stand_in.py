"""A firmware's own C, linked for the emulated board that stands for the firmware's."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from toolchain.boards import Board, stand_in
from toolchain.device.build import ModelFiles, build_files, identity
from toolchain.device.firmware import Firmware, FirmwareModel
from toolchain.errors import InputError
from toolchain.kernels import cmsis_nn
from toolchain.memory.bank_layout import Layout
from toolchain.progress import Report, silent
from toolchain.resources import RUNTIME_C


def linked_for_stand_in(firmware: Firmware, folder: Path, report: Report = silent) -> Firmware:
    """The firmware for `boards.stand_in` of its board, built in `folder`: the same C and kernels,
    each content in the bank of the same name.

    Raises InputError where no emulated board stands for the firmware's, and where kernels are not
    here any more as it was built of them; MissingToolError.
    """
    board, linked = stand_in(firmware.board), firmware.linked
    if board is None:
        raise InputError(f"no emulated board stands for {firmware.board.name}")
    if linked is None:
        raise InputError(f"{firmware.folder} does not say what it was linked of: compile again")
    for name in (*linked.generated, *(p.name for p in firmware.folder.glob("*.h"))):
        shutil.copyfile(firmware.folder / name, folder / name)
    tree = cmsis_nn.tree(cmsis_nn.find(report=report)).include.parent
    files = ModelFiles(
        generated=tuple(folder / name for name in linked.generated),
        kernels=tuple(RUNTIME_C / name for name in linked.kernels),
        cmsis_nn=tuple(tree / name for name in linked.cmsis_nn),
        cmsis_nn_include=tree / "Include",
    )
    absent = [path.name for path in (*files.kernels, *files.cmsis_nn) if not path.is_file()]
    was = linked.banks.on(firmware.board)
    if absent or firmware.build_id != identity(
        firmware.board, firmware.models, files, folder, _below_weights(was, firmware.models)
    ):
        raise InputError(
            f"{firmware.folder} was built of other kernels or other C than are here now: compile "
            "again"
        )
    models = [_moved(model, firmware, board) for model in firmware.models]
    banks = _below_weights(linked.banks.on(board), models)
    built = build_files(board, models, files, folder, banks, report=report)
    return replace(built, index=firmware.index)


def _below_weights(
    banks: Layout, models: tuple[FirmwareModel, ...] | list[FirmwareModel]
) -> Layout:
    """The layout without the bytes where another tool puts weights."""
    for weights in (model.weights for model in models):
        if weights is not None and weights.address is not None:
            banks = banks.below(weights.address, weights.size_bytes)
    return banks


def _moved(model: FirmwareModel, firmware: Firmware, board: Board) -> FirmwareModel:
    """The model with weights that another tool puts beside the firmware in the bank of that name.

    Raises InputError where no bank holds them.
    """
    weights = model.weights
    if weights is None or weights.address is None:
        return model
    at = weights.address
    bank = next((m for m in firmware.board.memories if m.origin <= at < m.end), None)
    there = next((m for m in board.memories if bank is not None and m.name == bank.name), None)
    if bank is None or there is None:
        raise InputError(f"no memory of {board.name} is that of {at:#x}, where the weights lie")
    moved = replace(
        weights,
        address=there.origin + at - bank.origin,
        file=str((firmware.folder / weights.file).resolve()),
    )
    return replace(model, weights=moved)
