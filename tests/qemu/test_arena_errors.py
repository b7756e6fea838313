"""An arena that is missing or misaligned, on a core that faults at unaligned words: a status."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.host import plan_of
from toolchain.boards import board
from toolchain.codegen import generate
from toolchain.device.build import ModelFiles, build_files
from toolchain.device.firmware import FirmwareModel, FirmwarePart, OperatorName, Port
from toolchain.device.session import open_board
from toolchain.errors import LinkError
from toolchain.ir import DType
from toolchain.kernels import cmsis_nn
from toolchain.memory.bank_layout import layout
from toolchain.ops import forms
from toolchain.resources import RUNTIME_C

SOURCE = Path(__file__).parents[1] / "support" / "firmware" / "misplaced.c"
PLACED, ODD, NOWHERE = range(3)
MISPLACED = FirmwareModel(
    name="misplaced",
    parts=(FirmwarePart(16),),
    inputs=(Port("in", "in", 0, (8,), DType.INT8),),
    outputs=(Port("out", "out", 8, (8,), DType.INT8),),
    operators=(OperatorName("conv", "conv2d"),),
)


def test_the_firmware_reports_it_and_goes_on(tmp_path: Path) -> None:
    target = board("netduinoplus2")
    graph = forms()["conv2d"].sample(np.random.default_rng(2))
    sources = generate(plan_of(graph, target.core), target.core, cmsis_nn.find(), name="net")
    for name, text in sources.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    caller = tmp_path / SOURCE.name
    caller.write_text(SOURCE.read_text(encoding="utf-8"), encoding="utf-8")
    files = ModelFiles(
        (tmp_path / "net.c", caller), tuple(RUNTIME_C / path for path in sources.runtime)
    )
    banks = layout(target, code_bytes=16384, weight_bytes=4096, data_bytes=8192, arena_bytes=16)
    firmware = build_files(target, [MISPLACED], files, tmp_path / "firmware", banks)

    def where(place: int) -> list[np.ndarray]:
        return [np.full(8, place, np.int8)]

    with open_board(firmware) as session:
        session.run(where(PLACED))
        for place in (ODD, NOWHERE):
            with pytest.raises(LinkError, match=r"status -1 \(its arena is missing or misaligned"):
                session.run(where(place))
        session.run(where(PLACED))
