"""Connects the database of measurements with planning and measuring, for this machine's tools."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.cost import CostModel
from toolchain.cost.basis import Basis
from toolchain.cost.database import Database, Measurement
from toolchain.cost.key import Build, Key
from toolchain.cost.measured import measured_model
from toolchain.cost.predicted import predicted_model
from toolchain.device.build import BuildOptions
from toolchain.device.compiler import compiler_version
from toolchain.errors import MissingToolError
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
    """What the database has of `board`, otherwise predictions."""
    target = find_board(board)
    predicted = predicted_model(target)
    build = None if target.is_host else current_build(cmsis_nn_folder)
    if build is None:
        return predicted
    return measured_model((database or Database()).rows(board, build), predicted)


def basis_of(board: Board) -> Basis:
    """What counts on this board are: silicon measures, QEMU executes."""
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
