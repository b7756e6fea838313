"""The bound on the stack against what runs take of a painted one, on emulated boards."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.pure.test_block_code import small_network
from tests.support.host import random_inputs
from toolchain import passes
from toolchain.boards import board
from toolchain.codegen import generate
from toolchain.codegen.stack import with_stack
from toolchain.device.build import BuildOptions, ModelFiles, build_files
from toolchain.device.firmware import FirmwarePart, firmware_model
from toolchain.device.session import open_board
from toolchain.device.stack import stack_need
from toolchain.frontends import load_model
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.memory.firmware_size import firmware_layout
from toolchain.ops import forms
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.resources import BOARDS, RUNTIME_C

SOURCE = Path(__file__).parents[1] / "support" / "firmware" / "painted.c"
DIGITS = BOARDS.parent / "examples" / "digits" / "digits_int8.tflite"
STACK_BYTES = 8192

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


def _softmax() -> Graph:
    """In float: on a core without an FPU, functions of libgcc."""
    return forms()["softmax.float32"].sample(np.random.default_rng(1))


@pytest.mark.parametrize(
    ("name", "graph_of", "assembly"),
    [
        ("netduinoplus2", lambda: passes.prepare(load_model(DIGITS)).graph, "memcpy"),
        ("mps3-an547", lambda: small_network()[1], "memcpy"),
        ("mps2-an385-v6m", _softmax, "__aeabi_fmul"),
    ],
    ids=["digits", "blocks", "float"],
)
def test_a_run_takes_no_more_than_the_bound(
    name: str, graph_of: Callable[[], Graph], assembly: str, tmp_path: Path
) -> None:
    target, graph = board(name), graph_of()
    plan = plan_graph(graph, target, replace(PlanOptions().unsplit, one_bank=True))
    kernels = cmsis_nn.find()
    sources = generate(plan, target.core, kernels, name="net")
    model = firmware_model(plan, sources, (FirmwarePart(plan.arena.size_bytes),))
    offset = f"#define OUTPUT_OFFSET {model.outputs[0].offset_bytes}\n"
    for file, text in {**sources.files, SOURCE.name: offset + SOURCE.read_text()}.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    firmware = build_files(
        target,
        [replace(model, name="painted")],
        ModelFiles(
            (tmp_path / "net.c", tmp_path / SOURCE.name),
            tuple(RUNTIME_C / path for path in sources.runtime),
            tuple(kernels / path for path in sources.cmsis_nn),
            kernels / "Include",
        ),
        tmp_path / "firmware",
        firmware_layout(target, [plan], STACK_BYTES),
        BuildOptions(stack_bytes=STACK_BYTES),
    )
    need = stack_need("net", firmware.objects, firmware.elf, "gcc")
    assert need.size_bytes is not None and not need.unknown and assembly in need.assembly
    with open_board(firmware) as session:
        outputs = session.run(random_inputs(graph, np.random.default_rng(3))).outputs
    used = int(np.frombuffer(outputs[graph.outputs[0]].tobytes()[:4], np.uint32)[0])
    assert need.size_bytes / 2 < used <= need.size_bytes
    header = with_stack(sources, need).files["net.h"]
    assert f"#define NET_STACK_BYTES {need.size_bytes}\n" in header
    assert "NET_STACK_BYTES is not defined" in sources.files["net.h"]
