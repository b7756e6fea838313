"""Runs in steps on emulated boards; and that they cost nothing where they are not used."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from tests.pure.test_block_code import small_network
from tests.support.host import random_inputs, reference_outputs
from tests.support.random_networks import random_network
from toolchain.boards import board
from toolchain.codegen import Costs, generate
from toolchain.device.build import ModelFiles, build, build_files
from toolchain.device.firmware import FirmwarePart, firmware_model
from toolchain.device.session import open_board
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.memory.firmware_size import firmware_layout
from toolchain.ops.check import check
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.report.latency import predict_latency
from toolchain.resources import RUNTIME_C

SOURCE = Path(__file__).parents[1] / "support" / "firmware" / "stepped.c"
KINDS_OF_STEPS = 5

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


def _graphs() -> list[Graph]:
    return [check(random_network(np.random.default_rng(5))), small_network()[1]]


@pytest.mark.parametrize("name", ["netduinoplus2", "mps3-an547"])
@pytest.mark.parametrize("which", [0, 1], ids=["whole", "in blocks"])
def test_the_bytes_are_those_of_the_reference(name: str, which: int, tmp_path: Path) -> None:
    target, graph = board(name), _graphs()[which]
    plan = plan_graph(graph, target, replace(PlanOptions().unsplit, one_bank=True))
    latency = predict_latency(plan)
    costs = Costs(latency.counts, latency.unit, latency.basis.text)
    kernels = cmsis_nn.find()
    sources = generate(plan, target.core, kernels, name="net", costs=costs)
    for file, text in {**sources.files, SOURCE.name: SOURCE.read_text()}.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    files = ModelFiles(
        (tmp_path / "net.c", tmp_path / SOURCE.name),
        tuple(RUNTIME_C / path for path in sources.runtime),
        tuple(kernels / path for path in sources.cmsis_nn),
        kernels / "Include",
    )
    model = firmware_model(plan, sources, (FirmwarePart(plan.arena.size_bytes),))
    firmware = build_files(
        target,
        [replace(model, name="stepped")],
        files,
        tmp_path / "firmware",
        firmware_layout(target, [plan]),
    )
    rng = np.random.default_rng(3)
    with open_board(firmware) as session:
        for _ in range(KINDS_OF_STEPS):
            inputs = random_inputs(graph, rng)
            got = session.run(inputs).outputs
            for tensor, want in zip(graph.outputs, reference_outputs(graph, inputs), strict=True):
                np.testing.assert_array_equal(got[tensor], want)


@pytest.mark.parametrize("which", [0, 1], ids=["whole", "in blocks"])
def test_firmware_that_does_not_use_steps_is_the_same_to_the_byte(
    which: int, tmp_path: Path
) -> None:
    """The linker drops the functions and their table; the code of a whole run is not touched."""
    target, graph = board("netduinoplus2"), _graphs()[which]
    plan = plan_graph(graph, target, PlanOptions().unsplit)
    costs = Costs(predict_latency(plan).counts, "cycles", "predicted")
    images = []
    for label, given in (("without", None), ("with", costs)):
        sources = generate(plan, target.core, cmsis_nn.find(), name="net", costs=given)
        assert ("net_step(" in sources.files["net.c"]) == (given is not None)
        firmware = build([(plan, sources)], target, tmp_path / label)
        with firmware.elf.open("rb") as file:
            symbols = {s.name for s in ELFFile(file).get_section_by_name(".symtab").iter_symbols()}
        assert "net_run" in symbols
        assert not any("net_step_costs" in name or name == "net_step" for name in symbols)
        images.append(firmware.bin.read_bytes().replace(bytes.fromhex(firmware.build_id), b"id"))
    assert images[0] == images[1]
