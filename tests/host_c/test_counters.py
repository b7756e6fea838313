"""Long operators: counters of 32 bits that wrap in the middle of a run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from toolchain.device.session import _check_wraps
from toolchain.errors import LinkError
from toolchain.resources import RUNTIME_C

FIRMWARE = RUNTIME_C / "firmware"
PROGRAM = Path(__file__).parent / "programs" / "wraps.c"

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def measured(folder: Path, takes: tuple[int, ...], wide: bool) -> tuple[int, list[int]]:
    """The whole and each operator as the firmware's C counts them."""
    header = folder / "simulated.h"
    header.write_text(
        "#include <stdint.h>\nextern volatile uint32_t simulated[64];\n"
        "#define THIMBLE_REGISTER(address) (simulated[(address) / 4u])\n"
    )
    sources = [str(PROGRAM), str(FIRMWARE / "measure.c")]
    defines = ["-DTHIMBLE_PROFILE", "-DTAKES={" + ",".join(f"{n}u" for n in takes) + "}"]
    if wide:
        defines += ["-DTHIMBLE_COUNTER_WIDE", "-DTHIMBLE_COUNTER_REGISTER=4u"]
        sources.append(str(FIRMWARE / "mps" / "counter_dual_timer.c"))
    else:
        defines.append("-DTHIMBLE_COUNTER_REGISTER=(&simulated[1])")
    flags = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1", "-include", str(header)]
    program = folder / "wraps"
    include = f"-I{FIRMWARE / 'include'}"
    subprocess.run(["gcc", *flags, *defines, include, *sources, "-o", str(program)], check=True)
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    total, *operators = map(int, said.split())
    return total, operators


@pytest.mark.parametrize(
    ("takes", "wide"),
    [
        pytest.param((1000, 2000, 3000), False, id="short, 32 bits"),
        pytest.param((3_000_000_000, 4_200_000_000, 2_500_000_000), False, id="the whole wraps"),
        pytest.param((1000, 2000, 3000), True, id="short, wide"),
        pytest.param((3_000_000_000, 5_000_000_001, 900_000_000_007), True, id="operators wrap"),
        pytest.param((2**32, 2**33 - 1, 255), True, id="at the wraps"),
    ],
)
def test_long_operators_are_counted_right(
    takes: tuple[int, ...], wide: bool, tmp_path: Path
) -> None:
    total, operators = measured(tmp_path, takes, wide)
    assert operators == list(takes)
    assert total == sum(takes) + 15


def test_a_wrap_of_silicons_counter_is_seen_by_the_computers_clock() -> None:
    clock_hz = 180_000_000
    _check_wraps(ticks=20 * clock_hz, seconds=20.4, clock_hz=clock_hz)
    _check_wraps(ticks=20 * clock_hz, seconds=24.0, clock_hz=clock_hz)  # a retry or two
    with pytest.raises(LinkError, match=r"longer than the 23\.9 s"):
        _check_wraps(ticks=20 * clock_hz - (1 << 32) % clock_hz, seconds=44.0, clock_hz=clock_hz)
