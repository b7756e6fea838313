"""An inference without end on an emulated board: one message, and no emulator is left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.endless import endless_loop
from toolchain.deployment.compile import compile_model
from toolchain.deployment.run import deployed
from toolchain.errors import InputError
from toolchain.planning.options import PlanOptions


def test_a_loop_without_end_is_stopped(tmp_path: Path) -> None:
    model = tmp_path / "endless.tflite"
    model.write_bytes(endless_loop())
    compile_model(model, "netduinoplus2", tmp_path / "out", PlanOptions(allow_float=True))
    with deployed(tmp_path / "out", limit_seconds=1.0) as deployment:
        machine = deployment.session.machine
        with pytest.raises(InputError, match=r"endless on netduinoplus2, in QEMU, did not end"):
            deployment.run({"tensor_0": np.zeros(1, np.float32)})
    assert machine._process.returncode is not None
