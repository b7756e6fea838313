"""A firmware's own C, linked for the emulated board that stands for the firmware's."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from toolchain.boards import Board, stand_in
from toolchain.device.build import BuildOptions, ModelFiles, build_files, identity, linkable
from toolchain.device.firmware import Firmware, FirmwareModel, Linked
from toolchain.errors import InputError
from toolchain.files import files_digest
from toolchain.files.records import encode, read_json, record
from toolchain.ir import Sources
from toolchain.kernels import cmsis_nn
from toolchain.memory.bank_layout import Layout
from toolchain.memory.plan import Plan
from toolchain.progress import Report, silent
from toolchain.resources import RUNTIME_C

LIBRARY = "library.json"
"""The file of `Library` in a folder of C."""


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
    files = _files(linked, firmware.folder, folder, report)
    absent = [path.name for path in (*files.kernels, *files.cmsis_nn) if not path.is_file()]
    was = _below_weights(linked.banks.on(firmware.board), firmware.models)
    options = BuildOptions(stack_bytes=firmware.sizes.stack_bytes)
    if absent or firmware.build_id != identity(
        firmware.board, firmware.models, files, folder, was, options
    ):
        raise InputError(
            f"{firmware.folder} was built of other kernels or other C than are here now: compile "
            "again"
        )
    models = [_moved(model, firmware, board) for model in firmware.models]
    banks = _below_weights(linked.banks.on(board), models)
    built = build_files(board, models, files, folder, banks, options, report=report)
    return replace(built, index=firmware.index)


@dataclass(frozen=True)
class Library:
    """The C of a core without a board, in a folder: its model, and the files that firmware for an
    emulated board is linked of. `kernels`: a digest of those of this package.
    """

    model: FirmwareModel
    linked: Linked
    kernels: str

    def save(self, folder: Path) -> None:
        """Write LIBRARY, which `linked_library` reads."""
        text = json.dumps(encode(self), indent=1) + "\n"
        (folder / LIBRARY).write_text(text, encoding="utf-8")


def library_of(plan: Plan, sources: Sources, core: Board) -> Library | None:
    """The record of a folder with the C; None where no emulated board stands for the core,
    and for weights outside of the code."""
    if stand_in(core) is None or sources.weights is not None:
        return None
    model, linked = linkable(plan, sources, core)
    return Library(model, linked, _digest(linked))


def linked_library(library: Path, core: Board, folder: Path, report: Report = silent) -> Firmware:
    """The firmware for `boards.stand_in` of the core, of the C in the folder `library`, built in
    `folder`.

    Raises InputError where that folder is damaged, or its kernels are not here any more;
    MissingToolError.
    """
    file, board = library / LIBRARY, stand_in(core)
    known: Library = record(Library, read_json(file), str(file))
    known.linked.check(f"{file}: linked")
    if board is None or known.kernels != _digest(known.linked):
        raise InputError(f"{library} was made with other kernels than are here now: compile again")
    files = _files(known.linked, library, folder, report)
    banks = known.linked.banks.on(board)
    return build_files(board, [known.model], files, folder, banks, report=report)


def _digest(linked: Linked) -> str:
    """A digest of kernels; of those that are absent, another one."""
    files = [RUNTIME_C / name for name in linked.kernels]
    return files_digest([file for file in files if file.is_file()])


def _files(linked: Linked, source: Path, folder: Path, report: Report) -> ModelFiles:
    """The files that firmware was linked of; generated ones are copied from `source` to
    `folder`."""
    for name in (*linked.generated, *(p.name for p in source.glob("*.h"))):
        shutil.copyfile(source / name, folder / name)
    tree = cmsis_nn.tree(cmsis_nn.find(report=report)).include.parent
    return ModelFiles(
        generated=tuple(folder / name for name in linked.generated),
        kernels=tuple(RUNTIME_C / name for name in linked.kernels),
        cmsis_nn=tuple(tree / name for name in linked.cmsis_nn),
        cmsis_nn_include=tree / "Include",
    )


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
