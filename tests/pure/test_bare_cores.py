"""Cores without a board: names, values, what is assumed, what is refused, and what stands in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolchain.boards import (
    MemoryTiming,
    as_target,
    board,
    board_files,
    core_files,
    core_names,
    named_in,
    naming,
    stand_in,
)
from toolchain.cli import run
from toolchain.cycles.core_timing import timing_of
from toolchain.deployment.compile import compile_library, compile_model
from toolchain.deployment.folder import compiled_board, last_board
from toolchain.device import stand_in as device_stand_in
from toolchain.errors import InputError
from toolchain.export.exporting import export_models
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions
from toolchain.resources import BOARDS

DIGITS = BOARDS.parent / "examples" / "digits" / "digits_int8.tflite"
KIB = 1024
QUICK = PlanOptions(nearly_free=False, split_seconds=0.0, fast=True)


@pytest.mark.parametrize("name", core_names())
def test_every_core_is_a_board_that_an_emulated_one_stands_for(name: str) -> None:
    core = board(name)
    assert core.is_core and core.name == name and len(core.assumed or ()) == 4
    assert [m.name for m in core.memories] == ["FLASH", "RAM"]
    other = stand_in(core)
    assert other is not None and other.emulator is not None and other.core == core.core
    assert other.name.endswith(f":{name}") and other.clock_hz == core.clock_hz
    assert other.ram_bytes == core.ram_bytes
    assert ("-mfloat-abi=hard" in core.compiler_flags) == core.core.fpu
    assert ("-mfloat-abi=hard" in other.compiler_flags) == core.core.fpu
    assert name == "cortex-m0" or timing_of(as_target(other.name).core.name)
    assert board_files(name)[-1].stem == name


def test_values_are_read_and_the_rest_is_assumed() -> None:
    core = board("M4F,ram=256KiB, clock=64MHz,waits=3")
    assert core.name == "cortex-m4f,ram=256K,clock=64M,waits=3"
    assert (core.ram_bytes, core.clock_hz) == (256 * KIB, 64_000_000)
    assert core.assumed == (f"{core_files()['cortex-m4f'].flash_bytes // KIB} KiB of flash",)
    flash, ram = core.memories
    assert flash.timing == MemoryTiming(3, 16, burst_cycles=3, prefetch=True)
    assert ram.timing is not None and ram.timing.read_cycles == 0
    assert board(core.name).memories == core.memories
    assert board("m0+").name == "cortex-m0plus"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("cortex-m4f,rom=1K", "'rom=1K' is no value of a core"),
        ("cortex-m4f,ram=1K,ram=2K", "'ram=2K' is no value"),
        ("cortex-m4f,ram=much", "'much' is no amount of memory"),
        ("cortex-m4f,ram=2", "1024 bytes at least"),
        ("cortex-m4f,flash=1024M", "536,870,912 at most"),
        ("cortex-m4f,clock=0", "'0' is no clock"),
        ("cortex-m4f,waits=-1", "cycles that flash waits"),
        ("cortex-m4g", "Did you mean cortex-m4?"),
        ("nRF52840", "its core is a cortex-m4f"),
        ("nRF52820", "its core is a cortex-m4,"),
        ("rp2350", "--chip cortex-m33 with the --ram, --flash and --clock"),
    ],
)
def test_what_is_no_core_is_told(name: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        board(name)
    assert why in str(caught.value)


def test_a_machine_smaller_than_the_chip_does_not_stand_for_it() -> None:
    assert stand_in(board("cortex-m3,ram=20M")) is None
    smaller = stand_in(board("cortex-m55"))
    assert smaller is not None and smaller.flash_bytes < board("cortex-m55").flash_bytes


def test_a_library_remembers_its_core_and_firmware_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "library"
    monkeypatch.setenv("PATH", "")  # no compiler: the stack is not known, and the header says so
    made = compile_library(DIGITS, "m33,ram=64K", folder, QUICK)
    assert (
        "DIGITS_INT8_STACK_BYTES is not defined: no compiler" in made.sources.files["digits_int8.h"]
    )
    machine = plan_model(DIGITS, "mps2-an505", QUICK)
    assert made.plan.operators == machine.operators
    assert made.plan.arena.offsets == machine.arena.offsets
    told = json.loads((folder / "plan.json").read_text())
    assert told["stack"] is None
    assert (told["board"], told["chip"], told["core"]) == (None, "cortex-m33,ram=64K", "cortex-m33")
    assert last_board(folder) == compiled_board(folder).name == "cortex-m33,ram=64K"
    monkeypatch.setattr(device_stand_in, "_digest", lambda _: "of newer kernels")
    assert run(["run", str(folder)]) == 2
    assert "made with other kernels than are here now" in capsys.readouterr().err
    with pytest.raises(InputError, match="a core without a board") as caught:
        compile_model(DIGITS, "m33", tmp_path / "firmware")
    assert "--library" in str(caught.value) and not (tmp_path / "firmware").exists()
    export_models([DIGITS], "cmake", tmp_path / "package", "m33,ram=64K", QUICK)
    assert "Made for Cortex-M33" in (tmp_path / "package/README.md").read_text()


def test_names_in_json_go_both_ways() -> None:
    assert naming("nucleo-f446re") == {"board": "nucleo-f446re"}
    for name in ("nucleo-f446re", "cortex-m7,clock=600M"):
        assert named_in(naming(name), "here") == name
    with pytest.raises(InputError, match="here"):
        named_in({"board": None}, "here")


def test_options_say_what_the_chip_has(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", str(DIGITS), "--no-split", "--split-seconds", "0", "--plan", "fast"]
    words += ["--chip", "m4f,ram=64K", "--flash", "512K"]
    assert run([*words, "--clock", "96M", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["chip"] == "cortex-m4f,ram=64K,flash=512K,clock=96M"
    assert told["assumed"] == ["flash that does not wait"]
    assert told["latency"]["milliseconds"] == pytest.approx(told["latency"]["total"] / 96e3)
    assert "is assumed to have flash that does not wait" in " ".join(err.split())
    assert run([*words, "--chip", "m4f,clock=64M", "--clock", "96M"]) == 2
    assert "says clock=64M: leave out clock 96M" in " ".join(capsys.readouterr().err.split())
    assert run(["plan", str(DIGITS), "--board", "nucleo-f446re", "--wait-states", "3"]) == 2
    assert "nucleo-f446re has its own" in " ".join(capsys.readouterr().err.split())
