"""`thimble export --for zephyr`: the module by Zephyr's rules; with a Zephyr, built and run.

Building needs fetched sources, named by environment variables:

THIMBLE_ZEPHYR_BASE     zephyr's folder (tried: 3.0.99)
THIMBLE_ZEPHYR_MODULES  folders of the modules cmsis and hal_stm32 that its west.yml names, with `;`
THIMBLE_ZEPHYR_PYTHON   a Python with PyYAML, pykwalify, packaging, pyelftools (default: this)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.support.examples import GRADED, graded
from tests.support.tflite_writer import tflite_bytes
from toolchain import compile_model, deployed, export_models
from toolchain.boards import board
from toolchain.cycles.trace import read_trace
from toolchain.device import trace_plugin
from toolchain.device.qemu import TraceRequest
from toolchain.ops import forms
from toolchain.planning.options import PlanOptions
from toolchain.resources import RUNTIME_C

DIGITS = RUNTIME_C.parent / "examples" / "digits" / "digits_int8.tflite"
PATIENCE_SECONDS = 300.0


@dataclass(frozen=True)
class Machine:
    """A board of Zephyr's, and ours with that core. Emulated with `machine`, if at all."""

    zephyr: str
    ours: str
    machine: str = ""


MACHINES = (
    Machine("mps2_an385", "mps2-an385", "mps2-an385"),
    # Its first core, on which Zephyr runs, is a Cortex-M33 without the DSP extension.
    Machine("mps2_an521", "mps2-an385", "mps2-an521"),
    Machine("mps3_an547", "mps3-an547", "mps3-an547"),
    Machine("nucleo_f446re", "nucleo-f446re"),
    Machine("b_u585i_iot02a", "STM32U575ZI"),
)
EMULATED = [m for m in MACHINES if m.machine]


def exported(ours: str, folder: Path, copies: int = 1) -> Path:
    """A module of digits, or of several of it (the package is then named thimble_models)."""
    named = {} if copies > 1 else {"name": "digits"}
    return export_models([DIGITS] * copies, "zephyr", folder, ours, **named).folder


def symbols(module: Path, zephyr: str) -> dict[str, str]:
    """The values of Kconfig symbols in a program that has the module, among those of Zephyr."""
    kconfiglib = pytest.importorskip("kconfiglib")
    around = module.parent / "Kconfig"
    around.write_text(zephyr + f'source "{module}/Kconfig"\n')
    kconfig = kconfiglib.Kconfig(str(around), warn_to_stderr=False)
    (config,) = (module / "samples").glob("*/prj.conf")
    kconfig.load_config(str(config))
    return {name: symbol.str_value for name, symbol in kconfig.syms.items()}


CORTEX_M55 = """
config MAIN_STACK_SIZE
\tint "stack"
config CPU_HAS_FPU
\tdef_bool y
config ARMV8_M_DSP
\tdef_bool y
config ARMV8_1_M_MAINLINE
\tdef_bool y
config ARMV8_1_M_MVEI
\tbool
\tdepends on ARMV8_1_M_MAINLINE && ARMV8_M_DSP
config ARMV8_1_M_MVEF
\tbool
\tdepends on ARMV8_1_M_MVEI
config FPU
\tbool "FPU"
\tdepends on CPU_HAS_FPU
config CPU_CORTEX_M4
\tbool
config CPU_CORTEX_M7
\tbool
"""
CORTEX_M33_PLAIN = re.sub(r"(config (\w+)\n)\tdef_bool y", r"\1\tbool", CORTEX_M55)
CORTEX_M4 = CORTEX_M33_PLAIN.replace("M4\n\tbool", "M4\n\tdef_bool y")


def test_kconfig_selects_what_the_core_must_have(tmp_path: Path) -> None:
    helium = exported("mps3-an547", tmp_path / "helium")
    found = symbols(helium, CORTEX_M55)
    wanted = ("THIMBLE_DIGITS", "ARMV8_1_M_MVEI", "ARMV8_1_M_MVEF", "FPU")
    assert [found[name] for name in wanted] == ["y"] * 4
    assert symbols(helium, CORTEX_M4)["THIMBLE_DIGITS"] == "n"
    dsp = exported("nucleo-f446re", tmp_path / "dsp")
    found = symbols(dsp, CORTEX_M4)
    assert (found["THIMBLE_DIGITS"], found["FPU"]) == ("y", "n")
    assert symbols(dsp, CORTEX_M33_PLAIN)["THIMBLE_DIGITS"] == "n"
    plain = exported("mps2-an385", tmp_path / "plain")
    assert symbols(plain, CORTEX_M33_PLAIN)["THIMBLE_DIGITS"] == "y"
    assert symbols(plain, CORTEX_M4)["THIMBLE_DIGITS"] == "n"


def test_floats_get_their_unit(tmp_path: Path) -> None:
    float_model = tmp_path / "float.tflite"
    form = next(name for name in forms() if name.endswith(".float32"))
    float_model.write_bytes(tflite_bytes(forms()[form].sample(np.random.default_rng(0))))
    floats, out = PlanOptions(allow_float=True), tmp_path / "out"
    made = export_models([float_model], "zephyr", out, "nucleo-f446re", floats, name="digits")
    with_unit = CORTEX_M4.replace("CPU_HAS_FPU\n\tbool", "CPU_HAS_FPU\n\tdef_bool y")
    assert symbols(made.folder, with_unit)["FPU"] == "y"
    assert symbols(made.folder, CORTEX_M4)["THIMBLE_DIGITS"] == "n"


MODULE_KEYS = {"name": str, "build": dict, "samples": list}


@pytest.mark.parametrize(("name", "copies"), [("digits", 1), ("thimble_models", 2)])
def test_module_yml_has_what_zephyr_reads(name: str, copies: int, tmp_path: Path) -> None:
    """The rules of Zephyr's scripts/zephyr_module.py, as far as they are about these keys."""
    yaml = pytest.importorskip("yaml")
    folder = exported("mps2-an385", tmp_path / "out", copies)
    read = yaml.safe_load((folder / "zephyr" / "module.yml").read_text())
    assert {key: type(value) for key, value in read.items()} == MODULE_KEYS
    assert read["name"] == f"thimble_{name.removeprefix('thimble_')}"
    assert set(read["build"]) == {"cmake", "kconfig"}
    assert (folder / read["build"]["cmake"] / "CMakeLists.txt").is_file()
    assert (folder / read["build"]["kconfig"]).is_file()
    for sample in read["samples"]:
        (found,) = (folder / sample).rglob("sample.yaml")
        told = yaml.safe_load(found.read_text())
        assert set(told) == {"sample", "common", "tests"} and told["tests"]
    config = (folder / "samples" / name / "prj.conf").read_text()
    assert f"CONFIG_{read['name'].upper()}=y" in config


def zephyr() -> dict[str, str]:
    """The environment to build in. Skips, saying what is missing."""
    missing = [tool for tool in ("cmake", "ninja", "arm-none-eabi-gcc") if not shutil.which(tool)]
    names = ("THIMBLE_ZEPHYR_BASE", "THIMBLE_ZEPHYR_MODULES")
    missing += [f"${name}" for name in names if not os.environ.get(name)]
    if missing:
        pytest.skip(f"to build with Zephyr: {', '.join(missing)} (see this file's first lines)")
    gcc = shutil.which("arm-none-eabi-gcc")
    assert gcc is not None
    return {
        **os.environ,
        "ZEPHYR_BASE": os.environ["THIMBLE_ZEPHYR_BASE"],
        "ZEPHYR_TOOLCHAIN_VARIANT": "gnuarmemb",
        "GNUARMEMB_TOOLCHAIN_PATH": str(Path(gcc).resolve().parents[1]),
    }


def built(machine: Machine, sample: Path, build: Path) -> Path:
    """zephyr.elf of a sample."""
    environment = zephyr()
    python = os.environ.get("THIMBLE_ZEPHYR_PYTHON", sys.executable)
    options = (
        f"-DBOARD={machine.zephyr}",
        f"-DZEPHYR_MODULES={os.environ['THIMBLE_ZEPHYR_MODULES']}",
        f"-DPython3_EXECUTABLE={python}",
    )
    for command in (
        ("cmake", "-S", str(sample), "-B", str(build), "-GNinja", *options),
        ("ninja", "-C", str(build)),
    ):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        for line in (done.stdout + done.stderr).splitlines():
            assert not ("warning" in line and "thimble_digits" in line), line
    return build / "zephyr" / "zephyr.elf"


def printed(machine: Machine, elf: Path, trace: TraceRequest | None = None) -> str:
    """What the program prints until its line about digits is complete."""
    options = ["-machine", machine.machine, "-nographic", "-vga", "none", "-icount", "shift=7"]
    if trace is not None:
        options += ["-plugin", trace.option]
    with subprocess.Popen(
        ["qemu-system-arm", *options, "-kernel", str(elf)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        end, told = time.monotonic() + PATIENCE_SECONDS, b""
        while time.monotonic() < end and not re.search(rb"digits [^\n]*\n", told):
            told += process.stdout.read() or b""
            time.sleep(0.05)
        process.kill()
    return told.decode()


def marked(sample: Path) -> None:
    """Have the sample store where QEMU's plugin begins and ends to count."""
    main = sample / "src" / "main.c"
    call = "status = digits_run(digits_memory);"
    text = main.read_text()
    assert text.count(call) == 1
    text = text.replace(call, f"thimble_run_begins = 1; {call} thimble_run_ends = 1;")
    main.write_text("volatile unsigned thimble_run_begins, thimble_run_ends;\n" + text)


@dataclass(frozen=True)
class Ours:
    """Our own firmware's outputs and instructions."""

    outputs: list[int]
    instructions: int


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ours]:
    def run(name: str) -> Ours:
        folder = tmp_path_factory.mktemp(name) / "firmware"
        compile_model(DIGITS, name, folder)
        with deployed(folder) as deployment:
            (end,) = deployment.inputs
            done = deployment.run({end.name: GRADED})
        (outputs,) = done.outputs.values()
        return Ours(outputs.reshape(-1).tolist(), done.count)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("machine", EMULATED, ids=lambda m: m.zephyr)
def test_in_zephyr_as_in_our_own_firmware(
    machine: Machine, ours: Callable[[str], Ours], tmp_path: Path
) -> None:
    """The same outputs in at most 1.1 times the instructions."""
    zephyr()
    if trace_plugin.unavailable():
        pytest.skip(trace_plugin.unavailable())
    sample = exported(machine.ours, tmp_path / "module") / "samples" / "digits"
    graded(sample / "src" / "main.c")
    marked(sample)
    elf = built(machine, sample, tmp_path / "build")
    arguments = trace_plugin.marks(board(machine.ours), elf)
    request = TraceRequest(trace_plugin.build(), arguments, tmp_path / "trace")
    told = printed(machine, elf, request)
    wanted = ours(machine.ours)
    assert f"digits data: {' '.join(map(str, wanted.outputs))}" in told
    count = read_trace(request.file).whole.instructions
    print(f"{machine.zephyr}: {count:,} instructions; our own firmware {wanted.instructions:,}")
    assert 0 < count <= 1.1 * wanted.instructions


@pytest.mark.slow
@pytest.mark.parametrize("machine", [m for m in MACHINES if not m.machine], ids=lambda m: m.zephyr)
def test_links_for_boards_that_nothing_emulates(machine: Machine, tmp_path: Path) -> None:
    sample = exported(machine.ours, tmp_path / "module") / "samples" / "digits"
    elf = built(machine, sample, tmp_path / "build")
    listed = subprocess.run(
        ["arm-none-eabi-nm", str(elf)], capture_output=True, text=True, check=True
    )
    assert "digits_run" in listed.stdout
