"""What does not fit: every memory that overflows, and only remedies that can help."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from toolchain import partition
from toolchain.boards import board
from toolchain.cli._remedies import more_remedies
from toolchain.errors import DoesNotFitError, Overflow
from toolchain.memory.bank_layout import layout
from toolchain.memory.firmware_size import check_fit, estimated_need, least_ram_bytes, ram_bytes
from toolchain.memory.plan import Plan
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions

DIGITS = Path(__file__).parents[2] / "examples/digits/digits_int8.tflite"
BOARD = "netduinoplus2"
KIB = 1024


def _plan(**changed: int) -> Plan:
    plan = plan_model(DIGITS, BOARD, PlanOptions().unsplit)
    arena = replace(plan.arena, size_bytes=changed.get("arena", plan.arena.size_bytes))
    return replace(plan, arena=arena, weight_bytes=changed.get("weights", plan.weight_bytes))


def _refused(plan: Plan) -> DoesNotFitError:
    with pytest.raises(DoesNotFitError) as caught:
        check_fit(plan)
    return caught.value


def test_an_overflow_of_flash_has_no_remedy_that_is_for_ram() -> None:
    error = _refused(_plan(weights=2000 * KIB))
    (lack,) = error.overflows
    assert lack.is_flash
    assert lack.excess_bytes > 0
    assert f"{lack.excess_bytes:,} more than" in error.message
    text = " ".join(error.remedies)
    assert "--ram" not in text
    assert "scheduler" not in text
    assert "of flash" in text
    assert "peak" not in error.message


def test_an_overflow_of_ram_names_the_peak_and_the_ram_to_ask_for() -> None:
    error = _refused(_plan(arena=300 * KIB))
    (lack,) = error.overflows
    assert not lack.is_flash
    assert error.operator
    assert repr(error.operator) in error.message
    text = " ".join(error.remedies)
    assert f"--ram {lack.room_bytes // KIB}K" in text
    assert "flash" not in text
    assert "scheduler" not in text  # the order is proved to be the best


def test_both_memories_are_named() -> None:
    error = _refused(_plan(arena=300 * KIB, weights=2000 * KIB))
    assert [lack.is_flash for lack in error.overflows] == [True, False]
    for lack in error.overflows:
        assert f"{lack.excess_bytes:,} more than the {lack.room_bytes:,} bytes" in error.message


def test_the_largest_board_that_is_named_would_hold_it() -> None:
    need = 1025 * KIB
    with pytest.raises(DoesNotFitError) as caught:
        layout(board(BOARD), code_bytes=KIB, weight_bytes=need - KIB, data_bytes=0)
    assert caught.value.overflows == (Overflow("FLASH", need, KIB * KIB, is_flash=True),)


def test_hopeless_ram_is_refused_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: object, **__: object) -> None:
        raise AssertionError("searched")

    monkeypatch.setattr(partition, "single_outputs", search)
    with pytest.raises(DoesNotFitError, match="cannot fit 64 bytes of RAM") as caught:
        plan_model(DIGITS, BOARD, PlanOptions(ram_bytes=64))
    assert caught.value.overflows[0].room_bytes == 64
    with pytest.raises(AssertionError, match="searched"):
        plan_model(DIGITS, BOARD, PlanOptions(ram_bytes=caught.value.overflows[0].need_bytes))


def test_the_bound_is_below_every_plan() -> None:
    """Unsplit, and split as small as it goes."""
    for options in (PlanOptions().unsplit, PlanOptions(max_slowdown=0.5, split_seconds=0.5)):
        plan = plan_model(DIGITS, BOARD, options)
        assert least_ram_bytes(plan.graph) <= ram_bytes(plan)


def test_flash_that_is_asked_for_is_a_remedy_where_it_was_the_limit() -> None:
    plan = plan_model(DIGITS, BOARD, PlanOptions().unsplit)
    least = estimated_need(plan).flash_bytes - plan.spent.weight_bytes
    with pytest.raises(DoesNotFitError) as caught:
        plan_model(DIGITS, BOARD, PlanOptions(flash_bytes=least - 1))
    assert any(remedy.startswith("--flash ") for remedy in caught.value.remedies)
    assert "--ram" not in str(caught.value)


@pytest.mark.parametrize(
    ("lack", "options", "offered"),
    [
        (Overflow("RAM", 3000, 2950, is_flash=False), PlanOptions(), True),
        (Overflow("RAM", 3000, 2900, is_flash=False), PlanOptions(), False),
        (Overflow("RAM", 3000, 2950, is_flash=False), PlanOptions(stream_input=True), False),
        (Overflow("FLASH", 3000, 2950, is_flash=True), PlanOptions(), False),
    ],
)
def test_an_input_by_rows_is_offered_where_it_saves_enough(
    lack: Overflow, options: PlanOptions, offered: bool
) -> None:
    """The image of digits has 64 bytes."""
    with pytest.raises(DoesNotFitError) as caught, more_remedies(DIGITS, options):
        raise DoesNotFitError("too big", remedies=["less"], overflows=[lack])
    *first, last = caught.value.remedies
    assert last == "less" and caught.value.overflows == (lack,)
    assert [remedy.partition(" ")[0] for remedy in first] == ["--stream-input"] * offered
