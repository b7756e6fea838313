"""Long operators: counters of 32 bits that wrap in the middle of a run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from toolchain.device.answers import check_wraps
from toolchain.errors import LinkError
from toolchain.resources import RUNTIME_C

FIRMWARE = RUNTIME_C / "firmware"
PROGRAM = Path(__file__).parent / "programs" / "wraps.c"

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def measured(
    folder: Path, takes: tuple[int, ...], wide: bool, systick_lag: int | None = None
) -> tuple[int, list[int]]:
    """The whole and each operator as the firmware's C counts them; `systick_lag`: with SysTick, in
    cycles that TIM3 starts later."""
    header = folder / "simulated.h"
    header.write_text(
        "#include <stdint.h>\nextern volatile uint32_t simulated[64];\n"
        "volatile uint32_t *simulated_register(uint32_t address);\n"
        "#ifdef SYSTICK_LAG\n#define THIMBLE_REGISTER(address) (*simulated_register(address))\n"
        "#else\n#define THIMBLE_REGISTER(address) (simulated[(address) / 4u])\n#endif\n"
    )
    sources = [str(PROGRAM), str(FIRMWARE / "measure.c")]
    defines = ["-DTHIMBLE_PROFILE", "-DTAKES={" + ",".join(f"{n}u" for n in takes) + "}"]
    if systick_lag is not None:
        defines += ["-DTHIMBLE_COUNTER_WIDE", f"-DSYSTICK_LAG={systick_lag}"]
        defines += ["-DTHIMBLE_TIM3_ENABLE=0u", "-DTHIMBLE_TIM3_ENABLE_BITS=0u"]
        sources.append(str(FIRMWARE / "stm32" / "counter_systick.c"))
    elif wide:
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


@pytest.mark.parametrize("lag", [-60, 0, 60, 65_535, 1_000_000])
@pytest.mark.parametrize(
    "takes",
    [
        pytest.param((1000, 2000, 3000), id="short"),
        pytest.param((2**24 - 1, 2**24, 2**24 + 1), id="at SysTick's wraps"),
        pytest.param((15_542_647, 1, 2**16), id="from before a wrap to after it"),
        pytest.param((3_000_000_000, 2**32 - 1, 2_500_000_000), id="the whole beyond 32 bits"),
    ],
)
def test_systick_counts_cycles_though_it_has_24_bits(
    takes: tuple[int, ...], lag: int, tmp_path: Path
) -> None:
    """Two clocks that do not begin at one instant: a step of TIM3 may be seen before or after."""
    total, operators = measured(tmp_path, takes, wide=True, systick_lag=lag)
    assert operators == list(takes)
    assert total == sum(takes) + 15


def test_a_wrap_of_silicons_counter_is_seen_by_the_computers_clock() -> None:
    clock_hz = 180_000_000
    check_wraps(ticks=20 * clock_hz, seconds=20.4, clock_hz=clock_hz)
    check_wraps(ticks=20 * clock_hz, seconds=24.0, clock_hz=clock_hz)  # a retry or two
    with pytest.raises(LinkError, match=r"longer than the 23\.9 s"):
        check_wraps(ticks=20 * clock_hz - (1 << 32) % clock_hz, seconds=44.0, clock_hz=clock_hz)
