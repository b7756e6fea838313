"""The probe model of `probe_model.c`, which fails as its input asks, as a built firmware."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Board
from toolchain.device.build import BuildOptions, ModelFiles, build_files
from toolchain.device.firmware import Firmware, FirmwareModel, FirmwarePart, OperatorName, Port
from toolchain.ir import DType
from toolchain.memory.bank_layout import layout

BYTES = 600
BUS_FAULT, UNDEFINED, OVERFLOW, FAILS = 0xF1, 0xF2, 0xF3, 0xF4
WEIGHTS = (1, 2, 3, 4)
SOURCE = Path(__file__).with_suffix(".c")

PROBE = FirmwareModel(
    name="probe",
    parts=(FirmwarePart(1216),),
    inputs=(Port("probe/in:0", "in", 0, (BYTES,), DType.INT8),),
    outputs=(Port("probe/out:0", "out", BYTES, (BYTES,), DType.INT8),),
    operators=(OperatorName("scale it", "mul"), OperatorName("misbehave", "custom")),
)


def probe_firmware(board: Board, folder: Path, options: BuildOptions | None = None) -> Firmware:
    banks = layout(board, code_bytes=8192, weight_bytes=16, data_bytes=4096, arena_bytes=1216)
    return build_files(board, [PROBE], ModelFiles((SOURCE,)), folder, banks, options)


def probe_input(rng: np.random.Generator, first: int = 0) -> NDArray[np.int8]:
    """Random input that asks for no fault, or for the one that `first` stands for."""
    data = rng.integers(-128, 128, BYTES).astype(np.int8)
    data[0] = np.uint8(first).astype(np.int8)
    return data


def probe_output(data: NDArray[np.int8]) -> NDArray[np.int8]:
    factors = np.resize(np.array(WEIGHTS, np.uint8), BYTES)
    return (data.view(np.uint8) * factors).view(np.int8)
