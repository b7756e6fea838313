"""A profile as JSON and tables: in modelled cycles, in measured ones, in instructions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from toolchain.cli._command import filled
from toolchain.cli._profiles import print_comparison, print_profile, whole_lines
from toolchain.cost.basis import Basis
from toolchain.deployment.profile import Function, Part, Profile, profile_json
from toolchain.report.tuning import tuning_table
from toolchain.timing.tuning import Round

TRACED = Profile(
    model="net",
    board="nucleo-h743zi",
    ran_on="mps2-an500",
    unit="cycles",
    basis=Basis.TRACE,
    clock_hz=480_000_000,
    totals=(2_500_000, 2_400_000, 2_400_000),
    operators=(
        Part("first", "conv2d", "stem", (1_700_000, 1_600_000, 1_600_000), 3_200_000, 9_000, 1,
             1_000_000),
        Part("second", "conv2d", "head", (500_000,) * 3, 600_000, 4_000, 2, 420_000),
        Part("last", "softmax", "head", (200_000,) * 3, 0, 20, 1, 90_000),
    ),
    instructions=1_600_000,
    functions=(
        Function("arm_nn_mat_mult_kernel_s8_s16", 1_900_000, 1_200_000),
        Function("arm_softmax_s8", 200_000, 90_000),
    ),
)  # fmt: skip
MEASURED = replace(
    TRACED,
    ran_on="nucleo-h743zi",
    basis=Basis.MEASURED,
    operators=tuple(replace(part, instructions=None) for part in TRACED.operators),
    instructions=None,
    functions=(),
)
COUNTED = replace(
    TRACED,
    board="mps2-an500",
    unit="instructions",
    clock_hz=25_000_000,
    functions=(),
    no_cycles="gcc is not installed, which builds the plugin that counts",
)


def shown(profile: Profile) -> str:
    console = Console(width=160, record=True, force_terminal=False, file=None, quiet=False)
    with console.capture() as capture:
        print_profile(console, profile)
    return capture.get()


def test_cycles_by_a_trace_come_with_their_instructions_and_their_time() -> None:
    found = profile_json(TRACED)
    assert (found["board"], found["ran_on"]) == ("nucleo-h743zi", "mps2-an500")
    assert (found["unit"], found["basis"]) == ("cycles", "trace")
    assert (found["total"], found["instructions"]) == (2_400_000, 1_600_000)
    assert found["milliseconds"] == pytest.approx(5.0)
    assert found["outside"] == 100_000 and found["spread"] == 100_000
    first, second, _ = found["operators"]
    assert (first["name"], first["kind"], first["count"]) == ("first", "conv2d", 1_600_000)
    assert first["instructions"] == 1_000_000 and first["milliseconds"] == pytest.approx(10 / 3)
    (convolutions, _) = found["kinds"]
    assert convolutions["instructions"] == first["instructions"] + second["instructions"]
    assert [f["name"] for f in found["functions"]] == [f.name for f in TRACED.functions]
    said = shown(TRACED)
    for text in ("cycles", "ms", "MACs/cycle", "instructions", "arm_softmax_s8", "1.58"):
        assert text in said
    assert whole_lines(TRACED) == [
        "net on nucleo-h743zi: 2,400,000 cycles (5.00 ms at 480 MHz), modelled from a trace of "
        "1,600,000 instructions on mps2-an500 in QEMU; median of 3 runs, spread 100,000; 4.2% "
        "outside the operators."
    ]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["out", "--annotate"], ["out", "--annotate", "5"]),
        (["--annotate", "out"], ["--annotate", "5", "out"]),
        (["--annotate", "3", "out"], ["--annotate", "3", "out"]),
        (["--annotate", "--runs", "2"], ["--annotate", "5", "--runs", "2"]),
        (["--runs", "2"], ["--runs", "2"]),
    ],
)
def test_a_number_may_be_left_out(given: list[str], read: list[str]) -> None:
    assert list(filled(given, {"--annotate"})) == read


def test_chips_stand_side_by_side() -> None:
    slower = replace(TRACED, board="stm32f746", clock_hz=216_000_000, totals=(2_700_000,) * 3)
    console = Console(width=160)
    with console.capture() as capture:
        print_comparison(console, [TRACED, slower])
    said = " ".join(capture.get().replace("│", " ").replace("┃", " ").split())
    assert "operator nucleo-h743zi stm32f746" in said
    assert "first 1,600,000 1,600,000" in said and "the whole 2,400,000 2,700,000" in said
    assert "milliseconds 5.000 12.500" in said


def test_measured_cycles_have_no_instructions() -> None:
    found = profile_json(MEASURED)
    assert (found["unit"], found["basis"], found["instructions"]) == ("cycles", "measured", None)
    assert {part["instructions"] for part in (*found["operators"], *found["kinds"])} == {None}
    assert found["milliseconds"] == pytest.approx(5.0) and found["functions"] == []
    said = shown(MEASURED)
    assert "instructions" not in said and "per function" not in said
    assert "2,400,000 cycles (5.00 ms at 480 MHz), measured; median" in " ".join(said.split())


def test_instructions_say_why_there_are_no_cycles() -> None:
    found = profile_json(COUNTED)
    assert (found["unit"], found["basis"], found["milliseconds"]) == ("instructions", "trace", None)
    assert found["total"] == 2_400_000 and "gcc" in found["no_cycles"]
    said = " ".join(shown(COUNTED).split())
    assert "MACs/instruction" in said and " ms " not in said
    assert "2,400,000 instructions, counted; median" in said
    assert "No cycles: gcc is not installed" in said


def test_tuning_compares_like_with_like() -> None:
    def found(predicted: int, unit: str) -> Round:
        return Round(predicted, unit, None, Basis.PREDICTED, 0.5, 100, 3, 2)

    console = Console(width=160)
    with console.capture() as capture:
        rounds = [found(900, "instructions"), found(1000, "cycles"), found(1100, "cycles")]
        console.print(tuning_table(rounds))
    first, second, third = (
        line.split("│")[4].strip() for line in capture.get().splitlines() if "predicted" in line
    )
    assert (first, second, third) == ("-", "-", "+10.0%")
