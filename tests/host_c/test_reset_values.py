"""Registers that the start-up writes whole: what a reset leaves in them, and which bits of it go.

tests/support/firmware/written_whole.csv is the list (scripts/reset_values.py finds it): a bit that
goes has a reason there. FLASH_ACR of a G4 had none: DBG_SWEN, bit 18, lets a probe in
(stm32g474xx.h:5113; HAL_FLASHEx_DisableDebugger, stm32g4xx_hal_flash_ex.c:505: "Debugger is
disabled"; of a C0 stm32c031xx.h:2290, of a G0 stm32g071xx.h:2987; zephyrproject-rtos/hal_stm32 at
fe7d2e2b).
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.host_c.test_clocks import programs, start
from tests.support import written_whole
from tests.support.registers import registers
from tests.support.written_whole import assigned, silicon
from toolchain.boards import board

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

UNDESCRIBED = {"nucleo-h7a3zi-q", "nucleo-u385rg-q", "nucleo-wba55cg"}
"""Boards whose chip's description was not to be had; their families' others stand for them."""
OF_THE_CORE = ("SysTick_", "SCB_", "SAU_")
"""Registers that no description of ST's has."""
ROWS = written_whole.rows()


@pytest.fixture(scope="session")
def folder(shared_folder: Path) -> Path:
    return programs(shared_folder)


def test_every_register_that_is_written_whole_is_listed() -> None:
    listed = {(row.source, row.register, name) for row in ROWS for name in row.boards}
    for target in silicon():
        if target.name in UNDESCRIBED:
            continue
        found = {(source, name, target.name) for source, name in assigned(target)}
        assert {f for f in found if not f[1].startswith(OF_THE_CORE)} <= listed, target.name


@pytest.mark.parametrize("name", [b.name for b in silicon() if b.name not in UNDESCRIBED])
def test_what_a_reset_sets_survives_or_has_a_reason_to_go(name: str, folder: Path) -> None:
    """The start-up after a reset: each bit of the reset value that it clears is one that may go."""
    chip = registers(name)
    rows = {row.register: row for row in ROWS if name in row.boards}
    started = start(board(name), folder, {n: r.reset & chip.bits[n] for n, r in rows.items()})
    for register, row in rows.items():
        cleared = row.reset & chip.bits[register] & ~started.register(register)
        assert not cleared & ~row.cleared, f"{register} {cleared:08X}"
        assert bool(row.reason) == bool(row.cleared), register


@pytest.mark.parametrize(
    "name", ["nucleo-g431rb", "nucleo-g474re", "nucleo-g071rb", "nucleo-g0b1re", "nucleo-c031c6"]
)
@pytest.mark.parametrize("left", [0, 1])
def test_a_probe_is_let_in(name: str, left: int, folder: Path) -> None:
    """DBG_SWEN of a G0, C0 and G4 is on after the start-up, also where other firmware, such as an
    older Thimble's, left it off and started this one without a reset."""
    _, allowed = registers(name).fields["FLASH_ACR_DBG_SWEN"]
    started = start(board(name), folder, {"FLASH_ACR": left * allowed})
    assert started.field("FLASH_ACR_DBG_SWEN") == 1
    assert all(value & allowed for value in started.values("FLASH_ACR"))
