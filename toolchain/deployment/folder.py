"""A folder that a model was compiled into: its contents, and whether they are complete."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolchain.boards import Board, named_in
from toolchain.boards import board as find_board
from toolchain.errors import InputError
from toolchain.files import check_whole, did_you_mean_beside
from toolchain.files.records import decode, field_of, read_json
from toolchain.ir import End
from toolchain.ops.detection.decode_boxes import OUTPUTS
from toolchain.preprocess.option import Bound, Preprocess, bound_source, preprocess_from_json
from toolchain.report.ends import end_from_json

PLAN_FILE = "plan.json"
KEYS_FILE = "kernels.json"
PREPROCESS = "preprocess"
"""The field of PLAN_FILE with the parameters of `--preprocess`."""


@dataclass(frozen=True)
class CompiledModel:
    """A model as `plan.json` describes it. `stateful`: it keeps values from run to run; `labels`:
    names of the classes of its outputs, by output; `boxes`: the outputs that hold the "boxes",
    "classes", "scores" and "count" of `--decode`; `preprocess`: what makes its input;
    `index_limits`: for inputs that choose from a table, the table's length.
    """

    board: Board
    inputs: tuple[End, ...]
    outputs: tuple[End, ...]
    stateful: bool
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    boxes: Mapping[str, str] | None = None
    preprocess: Preprocess | None = None
    index_limits: Mapping[str, int] = field(default_factory=dict)

    def source(self) -> Bound | None:
        """The `--preprocess` that was compiled in, for the one input; None without."""
        if self.preprocess is None:
            return None
        (end,) = self.inputs
        return bound_source(self.preprocess, end.tensor, stateful=self.stateful)


def compiled_model(folder: str | Path) -> CompiledModel:
    """The model compiled into `folder`. Raises InputError if there is none, or files are
    missing."""
    file, data = _read(Path(folder))
    where = str(file)
    if "models" in data:
        names = field_of(data, "models", tuple[str, ...], where)
        folders = ", ".join(str(Path(folder) / name) for name in names)
        raise InputError(f"{folder} holds several models; name one of: {folders}")
    try:
        sides = [
            [
                end_from_json(entry, f"{where}: {side}[{i}]")
                for i, entry in enumerate(field_of(data, side, tuple[Any, ...], where))
            ]
            for side in ("inputs", "outputs")
        ]
        stateful = bool(field_of(data, "states", Any, where))
        labels = field_of(data, "labels", Mapping[str, tuple[str, ...]], where, {})
        boxes = field_of(data, "boxes", Mapping[str, str] | None, where, None)
        limits = field_of(data, "index_limits", Mapping[str, int], where, {})
        if min(limits.values(), default=1) < 1:
            raise InputError(f"{where}: index_limits: a table has at least one row")
        kept = field_of(data, PREPROCESS, Any, where, None)
        at = f"{where}: {PREPROCESS}"
        preprocess = None if kept is None else preprocess_from_json(kept, at)
        if boxes is not None and not set(OUTPUTS) <= boxes.keys():
            raise InputError(f"{where}: boxes are {', '.join(boxes)}, not {', '.join(OUTPUTS)}")
    except InputError as error:
        raise InputError(f"{error}: the folder is damaged, compile again") from error
    board = find_board(named_in(data, where))
    return CompiledModel(
        board, tuple(sides[0]), tuple(sides[1]), stateful, labels, boxes, preprocess, limits
    )


def compiled_board(folder: str | Path) -> Board:
    """The board that a folder was compiled for. Raises InputError if nothing was compiled."""
    file, data = _read(Path(folder))
    return find_board(named_in(data, str(file)))


def last_board(folder: str | Path) -> str:
    """The name of the board that a folder was compiled for; '' where it holds nothing compiled that
    can be read.
    """
    file = Path(folder) / PLAN_FILE
    if not file.is_file():
        return ""
    with contextlib.suppress(InputError):
        return named_in(decode(Mapping[str, Any], read_json(file), str(file)), str(file))
    return ""


def _read(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """Read PLAN_FILE: its path, and the object in it."""
    file = folder / PLAN_FILE
    check_result(folder)
    if not file.exists():
        meant = "" if folder.exists() else did_you_mean_beside(folder, holding=PLAN_FILE)
        raise InputError(f"{folder} holds no compiled model: `thimble compile` makes one{meant}")
    data: Mapping[str, Any] = decode(Mapping[str, Any], read_json(file), str(file))
    return file, data


def check_result(folder: Path) -> str:
    """Return a digest of all that was compiled. Raise InputError where a part of it is missing."""
    return check_whole(folder, "compile again")


def check_unchanged(folder: Path, before: str) -> None:
    """Raise InputError where another result came into `folder` while this one was read."""
    if check_result(folder) != before:
        raise InputError(f"{folder} was replaced while it was read: run again")
