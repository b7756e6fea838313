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
from toolchain.deployment import compile as compiling
from toolchain.deployment.run import deployed
from toolchain.deployment.stand_in import firmware_here
from toolchain.device.build import (
    BuildOptions,
    ModelFiles,
    build_files,
    firmware_stacks,
    stack_to_reserve,
)
from toolchain.device.firmware import Firmware, FirmwarePart, firmware_model
from toolchain.device.session import open_board
from toolchain.device.stack import stack_need
from toolchain.frontends import load_model
from toolchain.ir import Graph, StackNeed
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


@pytest.mark.parametrize(("bounds", "reserved"), [([], 0), ([None], 0), ([700, 9], 1216)])
def test_the_stack_to_reserve_has_room_for_the_firmware_s_frames(
    bounds: list[int | None], reserved: int
) -> None:
    stacks = [StackNeed(bound, "gcc") for bound in bounds]
    assert stack_to_reserve(stacks) == reserved


@pytest.mark.long
def test_firmware_is_linked_with_a_larger_stack_where_a_bound_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And runs on the board that stands for its own, whose stack is as large."""

    def larger(firmware: Firmware) -> tuple[StackNeed, ...]:
        return tuple(replace(need, size_bytes=3000) for need in firmware_stacks(firmware))

    monkeypatch.setattr(compiling, "firmware_stacks", larger)
    compiled = compiling.compile_model(DIGITS, "nucleo-f446re", tmp_path / "out")
    assert compiled.sizes is not None and compiled.sizes.stack_bytes == 3520
    with firmware_here(tmp_path / "out") as firmware:
        assert firmware is not None and firmware.sizes.stack_bytes == 3520
        with deployed(tmp_path / "out", firmware=firmware) as deployment:
            deployment.run(deployment.random(np.random.default_rng(0)))
            assert deployment.ran_on.startswith("mps2-an386")
