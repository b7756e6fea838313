"""`--fail-on`: conditions on a result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolchain.cli import run as thimble
from toolchain.errors import GateError, InputError
from toolchain.report.gates import check, gates
from toolchain.resources import RUNTIME_C

DIGITS = RUNTIME_C.parent / "examples" / "digits" / "digits_int8.tflite"
RESULT = {
    "arena_bytes": 20_481,
    "slowdown_percent": 2.5,
    "proved_optimal": True,
    "latency": {"total": 1000, "milliseconds": 1.5, "unit": "cycles"},
    "outputs": [{"agreement": 0.97, "noise_db": 30.0}, {"agreement": 1.0, "noise_db": None}],
}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("arena > 20K", True),
        ("arena>20.5K", False),
        ("arena_bytes > 0.01M", True),
        ("arena == 20,481", True),
        ("ms >= 1.5", True),
        ("ms > 1.5ms", False),
        ("latency.total != 1000", False),
        ("cycles < 1e6", True),
        ("slowdown > 2%", True),
        ("agreement < 98%", True),
        ("agreement < 0.97", False),
        ("noise < 20", False),
        ("noise < 31dB", True),
        ("cycles > 1K", False),
        ("cycles >= 1K", True),
        ("agreement < 1", True),
    ],
)
def test_conditions(condition: str, holds: bool) -> None:
    (gate,) = gates([condition])
    assert gate.holds(RESULT) == holds


@pytest.mark.parametrize(
    "text", ["arena", "arena > ", "> 20K", "arena > x", "arena > 20G", "a b > 1"]
)
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(InputError, match='is no condition like "arena > 20K"'):
        gates([text])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("arena > 20%", "arena_bytes takes K, KiB, M, MiB, not %"),
        ("arena > 20ms", "not ms"),
        ("ms > 2K", "latency.milliseconds takes ms, not K"),
        ("cycles > 2MiB", "latency.total takes K, M, not MiB"),
        ("agreement < 98", "at most 1, or 100%: write 98%"),
    ],
)
def test_a_unit_of_something_else_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        gates([text])


@pytest.mark.parametrize(("noise", "fails"), [(None, False), (19.0, True), (float("nan"), True)])
def test_nothing_lost_passes_and_nan_does_not(noise: float | None, fails: bool) -> None:
    """No ratio in JSON: int8 is exact."""
    (gate,) = gates(["noise < 20"])
    assert gate.holds({"outputs": [{"noise_db": noise}]}) == fails


def test_an_unknown_field_lists_those_there_are() -> None:
    with pytest.raises(InputError, match=r"no number 'size'; it has .*arena.*latency\.total"):
        check(gates(["size > 1"]), RESULT)


def test_all_that_hold_are_told() -> None:
    conditions = gates(["arena > 20K", "ms > 100", "noise < 40"])
    with pytest.raises(
        GateError, match=r"arena_bytes is 20,481 .*; outputs.noise_db is 30"
    ) as told:
        check(conditions, RESULT)
    assert "milliseconds" not in str(told.value)


@pytest.mark.slow
@pytest.mark.parametrize(("condition", "code"), [("arena > 2K", 3), ("arena > 4K", 0), ("x", 2)])
def test_the_exit_code(
    condition: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(DIGITS), "-b", "netduinoplus2", "--fail-on", condition]
    assert thimble(["plan", *given]) == code
    assert thimble(["plan", *given, "--json", str(tmp_path / "plan.json")]) == code
    if code != 2:
        assert json.loads((tmp_path / "plan.json").read_text())["arena_bytes"] == 2560
        out = ["--board", "host", "-o", str(tmp_path / "out")]
        assert thimble(["compile", *given, *out]) == code
        assert (tmp_path / "out" / "plan.json").exists()
    told = capsys.readouterr().err
    assert ("--fail-on 'arena > 2K'" in " ".join(told.split())) == (code == 3)
