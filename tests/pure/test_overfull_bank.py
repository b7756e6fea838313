"""Code and weights that turn out larger than estimated move to a bank with room."""

from __future__ import annotations

import pytest

from tests.support.floats import mixed
from toolchain.boards import board
from toolchain.device.build import BuildOptions, roomier_banks
from toolchain.device.compiler import BankOverflowError
from toolchain.memory.firmware_size import firmware_layout
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions


@pytest.mark.parametrize(
    ("board_name", "overfull", "excess", "weights_in"),
    [
        ("mps3-an547", "ITCM", 100, "SRAM"),
        ("mps3-an547", "ITCM", 10**6, ""),
        ("mps3-an547", "DTCM", 100, ""),
        ("netduinoplus2", "FLASH", 100, ""),
    ],
)
def test_weights_move_where_they_may(
    board_name: str, overfull: str, excess: int, weights_in: str
) -> None:
    target = board(board_name)
    plans = [plan_graph(mixed(), target, PlanOptions().unsplit)]
    banks = firmware_layout(target, plans)
    overflow = BankOverflowError([(overfull, excess)])
    assert f"{excess:,} bytes too many in {overfull}" in str(overflow)
    other = roomier_banks(target, plans, BuildOptions(), banks, overflow)
    assert (other.weights.name if other else "") == weights_in
    if other is not None:
        assert other.code == banks.code
