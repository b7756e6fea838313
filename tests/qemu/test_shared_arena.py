"""Several models in one firmware and one arena: each answers as if it were alone."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.graphs import dense_chain
from tests.support.host import random_inputs, reference_outputs
from tests.support.long import mostly_long
from toolchain.boards import board
from toolchain.codegen import generate
from toolchain.deployment.compile import compile_shared
from toolchain.deployment.run import deployed
from toolchain.device.build import build
from toolchain.device.firmware import Firmware, load_firmware
from toolchain.device.link import RefusedError
from toolchain.device.protocol import ErrorCode
from toolchain.device.session import open_board
from toolchain.errors import InputError, LinkError
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array
from toolchain.planner import plan_graph

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


def graphs() -> list[Graph]:
    """Small, large, and two that keep state from run to run."""
    rng = np.random.default_rng(1)
    stateful = [forms()[kind].sample(rng) for kind in ("assign", "svdf")]
    return [dense_chain("small", (6, 5)), dense_chain("large", (96, 64, 80)), *stateful]


def shared_firmware(name: str, folder: Path) -> tuple[list[Graph], Firmware]:
    target = board(name)
    plans = [plan_graph(graph, target) for graph in graphs()]
    made = [generate(p, target.core, cmsis_nn.find(), name=f"m{i}") for i, p in enumerate(plans)]
    firmware = build(list(zip(plans, made, strict=True)), target, folder)
    alone = [plan.arena.size_bytes for plan in plans]
    assert firmware.sizes.arena_bytes - max(alone[:2]) - sum(alone[2:]) in range(32)
    return [plan.graph for plan in plans], firmware


@pytest.mark.parametrize("name", mostly_long(["netduinoplus2", "mps3-an547"], ["mps3-an547"]))
def test_they_take_turns_on_one_board(name: str, tmp_path: Path) -> None:
    found, firmware = shared_firmware(name, tmp_path)
    rng = np.random.default_rng(4)
    memories: list[dict[str, Array]] = [{} for _ in found]
    with open_board(firmware) as session:
        assert session.hello.models == len(found)
        for index in (0, 1, 2, 3, 1, 2, 0, 3, 2, 2, 1, 3):
            session.choose(index)
            assert session.hello.model == f"m{index}"
            inputs = random_inputs(found[index], rng)
            done = session.run(inputs)
            expected = interpret(found[index], inputs, memories[index])
            for output, want in zip(found[index].outputs, expected, strict=True):
                np.testing.assert_array_equal(done.outputs[output], want)
            assert sum(c.count for c in session.operator_counts()) <= done.count
            assert session.memory_use().arena_bytes <= session.firmware.model.arena_bytes
        with pytest.raises(InputError, match="m0, m1, m2, m3"):
            session.choose(4)


def test_an_answer_of_another_model_is_not_taken(tmp_path: Path) -> None:
    """As when an old HELLO comes late and chooses the model that it asked for."""
    found, firmware = shared_firmware("netduinoplus2", tmp_path)
    inputs = random_inputs(found[0], np.random.default_rng(1))
    with open_board(firmware) as session:
        session.link.handshake(5.0, 1)  # not the session's model, which is 0
        done = session.run(inputs)
        (want,) = reference_outputs(found[0], inputs)
        np.testing.assert_array_equal(done.outputs[found[0].outputs[0]], want)
        with pytest.raises(RefusedError) as refused:
            session.link.handshake(5.0, 9)
        assert refused.value.code is ErrorCode.INDEX


def test_each_model_has_a_folder_that_runs(tmp_path: Path) -> None:
    made = compile_shared([DIGITS, DIGITS], "netduinoplus2", tmp_path / "out")
    names = [compiled.folder.name for compiled in made.models]
    assert names == ["digits_int8", "digits_int8_2"]
    outputs = []
    for compiled in made.models:
        with deployed(compiled.folder) as deployment:
            (end,) = deployment.inputs
            given = {end.name: end.random(np.random.default_rng(8))}
            outputs.append(next(iter(deployment.run(given).outputs.values())))
    np.testing.assert_array_equal(*outputs)
    with pytest.raises(InputError, match="digits_int8_2"), deployed(tmp_path / "out"):
        pass
    (tmp_path / "out" / names[1] / "firmware.json").write_text('{"firmware": "..", "index": 2}')
    with pytest.raises(InputError, match="damaged"):
        load_firmware(tmp_path / "out" / names[1])


def test_the_board_says_which_models_it_has(tmp_path: Path) -> None:
    """A folder of another build is refused, whichever model it names."""
    _, firmware = shared_firmware("netduinoplus2", tmp_path)
    with open_board(firmware) as session:
        session.firmware = replace(firmware, build_id="00" * 16)
        with pytest.raises(LinkError, match="another firmware"):
            session.choose(1)
