"""Connects the database of measurements with planning and measuring, for this machine's tools."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from toolchain import cycles
from toolchain.boards import Board, board_files
from toolchain.boards import board as find_board
from toolchain.cost import CostModel
from toolchain.cost.basis import CYCLES, Basis
from toolchain.cost.database import ENVIRONMENT_VARIABLE, Database, Measurement
from toolchain.cost.key import Build, Key
from toolchain.cost.measured import measured_model
from toolchain.cost.predicted import predicted_model
from toolchain.device import trace_plugin
from toolchain.device.build import BuildOptions
from toolchain.device.compiler import compiler_version
from toolchain.errors import MissingToolError
from toolchain.files import files_digest
from toolchain.kernels import cmsis_nn


def current_build(cmsis_nn_folder: Path | None = None) -> Build | None:
    """The compiler and CMSIS-NN of this machine; None if either is not installed."""
    try:
        folder = cmsis_nn.installed(cmsis_nn_folder)
        compiler = compiler_version()
    except MissingToolError:
        return None
    if folder is None:
        return None
    optimisation = BuildOptions().kernel_optimisation
    return Build(f"{compiler} {optimisation}", cmsis_nn.version(folder))


def cost_model(
    board: str, cmsis_nn_folder: Path | None = None, database: Database | None = None
) -> CostModel:
    """Known costs from the database of `board`, otherwise predictions."""
    target = find_board(board)
    predicted = predicted_model(target)
    build = None if target.is_host else current_build(cmsis_nn_folder)
    if build is None:
        return predicted
    store = database or Database()
    rows, corrections = known_rows(store, board, build), store.corrections(board, build)
    return measured_model(rows, predicted, corrections)


def kept_line(board: str, database: Database | None = None) -> str:
    """A sentence on the kept times that plans for a board rest on, and how to refuse them; '' where
    there are none.
    """
    build = None if find_board(board).is_host else current_build()
    if build is None:
        return ""
    store = database or Database()
    rows, corrected = known_rows(store, board, build), store.corrections(board, build)
    kept = []
    if rows:
        last = datetime.fromtimestamp(max(row.measured_at for row in rows), UTC).date()
        text = " and ".join(sorted({row.basis.text for row in rows}))
        kept.append(f"{len(rows)} kept times of kernels on {board} ({text}, the last on {last})")
    if corrected:
        kept.append(f"corrections of {len(corrected)} kernels on {board}")
    if not kept:
        return ""
    return (
        f"The plan rests on {' and '.join(kept)}: `thimble cost list` shows them, "
        f"{ENVIRONMENT_VARIABLE}=none before the command refuses them."
    )


def known_rows(database: Database, board: str, build: Build) -> tuple[Measurement, ...]:
    """Rows of a board in the database. Measured rows come behind those read from a trace.

    Rows that another version of the timing models or of the chips' files read from a trace are left
    out.
    """
    return (*database.rows(board, _traced(build, board)), *database.rows(board, build))


def _traced(build: Build, board: str) -> Build:
    """The build under which cycles modelled from a trace are kept: beside measured ones, never in
    their place. They depend on how traces are read.
    """
    return replace(build, compiler=f"{build.compiler}, read by {_reading_digest(board)}")


def _reading_digest(board: str) -> str:
    """A digest of the plugin, the timing models, and the files that say how a board's memories
    wait. A user's board may have changed since it was asked for last.
    """
    both = _models_digest() + files_digest(board_files(board))
    return hashlib.sha256(both.encode()).hexdigest()[:8]


@cache
def _models_digest() -> str:
    """A digest of this package's files, which do not change."""
    room = Path(str(cycles.__file__)).parent
    models = sorted(file for file in room.rglob("*") if file.suffix in (".py", ".json"))
    return files_digest((trace_plugin.SOURCE, *models))


def basis_of(board: Board) -> Basis:
    """The basis of counts on this board: silicon measures, QEMU executes."""
    return Basis.TRACE if board.emulator else Basis.MEASURED


def taken(
    board: str,
    key: Key,
    build: Build,
    unit: str,
    basis: Basis,
    counts: Sequence[int],
    estimate: int,
) -> Measurement:
    """A measurement made now, from one count per run."""
    ordered = sorted(counts)
    if unit == CYCLES and basis is Basis.TRACE:
        build = _traced(build, board)
    return Measurement(
        board=board,
        key=key,
        build=build,
        unit=unit,
        basis=basis,
        count=ordered[(len(ordered) - 1) // 2],
        spread=ordered[-1] - ordered[0],
        runs=len(ordered),
        estimate=estimate,
        measured_at=int(time.time()),
    )
