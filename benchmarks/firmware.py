"""Our firmware beside TensorFlow Lite Micro's, model by model.

    .venv/bin/python -m benchmarks.firmware [--board NAME] [--models DIR] [--json FILE]
                                            [--all] [--only TEXT] [--as BOARD|CHIP ...]
                                            [--no-cmsis-nn] [--no-split] [--optimise WAY]

Every model is compiled, run in QEMU on 3 random inputs and compared with its reference. Columns:
arena and all RAM (.data + .bss + arena + measured stack), code (flash apart from weights), flash,
instructions per inference; TFLM's figures beside ours, and the ratio. TFLM's RAM leaves out its
stack. Operators are split where that is nearly free, as `compile` does; with --no-split they stay
whole. A second table has cycles, milliseconds and estimated microjoules on chips with that core,
modelled from a trace of the same firmware (docs/time.md), beside those of the same model with
CMSIS-NN's kernels, and what others published for the chip (`silicon_published.json`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from benchmarks.silicon import PUBLISHED, SHARED_MODELS, read_published
from toolchain import compile_model, verify_model
from toolchain.boards import board as find_board
from toolchain.cost.basis import CYCLES
from toolchain.deployment.profile import Profile
from toolchain.deployment.profiling import profile_readings
from toolchain.errors import ThimbleError
from toolchain.ops.preference import Preference
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.report.time import microjoules

SMALLEST = ("--models {shared}/models --only ad_fcae",)


@dataclass(frozen=True)
class Anchor:
    """TFLM + CMSIS-NN (tflite-micro 90b983c, gcc 12.2.1, kernels -O2), measured in QEMU."""

    arena_bytes: int
    code_bytes: int
    flash_bytes: int
    m4_minstr: float
    m7_minstr: float


TFLM = {
    "mlperf_tiny_ic_resnet8_int8": Anchor(54_996, 79_460, 178_060, 29.86, 30.02),
    "mlperf_tiny_kws_dscnn_int8": Anchor(22_820, 84_472, 138_512, 7.70, 7.64),
    "mlperf_tiny_vww_mbv1_025_96_int8": Anchor(100_708, 84_472, 417_872, 24.10, 24.03),
    "mlperf_tiny_ad_fcae_int8": Anchor(2_580, 32_176, 309_252, 0.583, 0.584),
    "mlperf_tiny_sww_1dcnn_int8": Anchor(16_596, 81_360, 155_992, 2.23, 2.19),
    "tflm_person_detect_int8": Anchor(82_308, 70_984, 371_664, 22.93, 22.72),
    "openmv_fomo_face_detection": Anchor(237_412, 81_568, 138_712, 30.63, 30.73),
    "st_yamnet_256_64x96_esc10_int8": Anchor(161_776, 87_152, 273_128, 60.33, 59.61),
    "tinyengine_mcunet_vww_int8": Anchor(219_808, 96_056, 709_996, 48.60, 47.79),
    "gw_mcunet_512kb_2mb_imagenet_int8": Anchor(771_940, 78_096, 2_166_292, 449.2, 441.7),
    "tinyengine_mcunetv2_large_int8": Anchor(2_602_112, 104_260, 2_390_408, 847.5, 832.7),
    "tflm_xtensa_mobilenet_v2_pt_224_int8": Anchor(2_600_596, 94_552, 4_075_436, 797.9, 789.6),
}
CHIPS = {
    "cortex-m4": ("nucleo-l4r5zi", "nucleo-f446re"),
    "cortex-m33": ("stm32u575",),
    "cortex-m7": ("nucleo-h7a3zi-q", "nucleo-h743zi"),
    "cortex-m55": ("mps3-an547",),
}
"""As which boards and chips the firmware of a core is read."""
MLPERF_TINY = tuple(name for name in TFLM if name.startswith("mlperf"))


@dataclass(frozen=True)
class Row:
    """One model on one board. `matches`: no output byte differs from the reference. Cycles by chip,
    `cmsis_nn_cycles` with `--kernels cmsis-nn`.
    """

    model: str
    board: str
    matches: bool
    arena_bytes: int
    ram_bytes: int
    code_bytes: int
    flash_bytes: int
    instructions: int
    cycles: Mapping[str, int] = field(default_factory=dict)
    milliseconds: Mapping[str, float | None] = field(default_factory=dict)
    cmsis_nn_cycles: Mapping[str, int] = field(default_factory=dict)


def measure(
    file: Path, board: str, chips: Sequence[str], options: PlanOptions, *, beside_arm: bool
) -> Row:
    """Compile, verify and count one model; read what ran as each of the chips, and so what runs
    with CMSIS-NN's kernels, operators whole, if `beside_arm`.
    """
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "build"
        result = verify_model(file, board, runs=3, options=options, out=out)
        sizes = result.compiled.sizes
        assert sizes is not None
        profiles = profile_readings(out, chips, runs=2) if chips else ()
        theirs: tuple[Profile, ...] = ()
        if chips and beside_arm:
            arm = Path(scratch) / "arm"
            compile_model(file, board, arm, PlanOptions(kernels=Preference.CMSIS_NN).unsplit)
            theirs = profile_readings(arm, chips, runs=2)
    stack = result.memory.stack_bytes
    return Row(
        model=file.stem,
        board=board,
        matches=result.differing == 0,
        arena_bytes=sizes.arena_bytes,
        ram_bytes=sizes.ram_bytes - sizes.stack_bytes + stack,
        code_bytes=sizes.code_bytes,
        flash_bytes=sizes.flash_bytes,
        instructions=result.count,
        cycles={profile.board: profile.total for profile in _in_cycles(profiles)},
        milliseconds={p.board: p.milliseconds(p.total) for p in _in_cycles(profiles)},
        cmsis_nn_cycles={profile.board: profile.total for profile in _in_cycles(theirs)},
    )


def _in_cycles(profiles: Sequence[Profile]) -> list[Profile]:
    return [profile for profile in profiles if profile.unit == "cycles"]


def times(rows: list[Row], chips: Sequence[str]) -> Table:
    """Million cycles of each model on each chip: ours, CMSIS-NN's of the same model, and what was
    published for that chip. The ratios are ours by theirs.
    """
    result = Table(header_style="bold", title="M cycles of an inference, modelled from a trace")
    for heading in ("model", "as"):
        result.add_column(heading)
    for heading in ("ours", "ms", "uJ", "CMSIS-NN"):
        result.add_column(heading, justify="right", no_wrap=True)
    result.add_column("measured on silicon by others")
    for row in rows:
        for chip in (chip for chip in chips if chip in row.cycles):
            ours, arm = row.cycles[chip] / 1e6, row.cmsis_nn_cycles.get(chip)
            energy = microjoules(chip, row.cycles[chip], CYCLES)
            result.add_row(
                row.model,
                chip,
                f"{ours:.3f}",
                f"{row.milliseconds[chip]:.2f}",
                "-" if energy is None else f"{energy:,.0f}",
                "-" if arm is None else f"{arm / 1e6:.3f} ({1e6 * ours / arm:.2f})",
                ", ".join(
                    f"{software} {cycles:.3f} ({ours / cycles:.2f})"
                    for software, cycles in published(row.model, chip)
                ),
            )
    return result


def published(model: str, chip: str) -> list[tuple[str, float]]:
    """Software with kernels of its own, and its million cycles on that chip, least first."""
    names, rows = read_published(PUBLISHED)
    found = [
        (row.software, row.cycles[name])
        for row in rows
        for name in row.cycles
        if names[name] == model and row.target == chip and row.kernels is Preference.AUTO
    ]
    return sorted(found, key=lambda each: each[1])


def table(rows: list[Row], core: str) -> Table:
    result = Table(header_style="bold", title="ours / TFLM (ratio)")
    result.add_column("model")
    result.add_column("exact")
    for heading in ("arena B", "all RAM B", "code B", "flash B", "M instructions"):
        result.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        anchor = TFLM.get(row.model)
        counted = row.instructions / 1e6

        def beside(ours: float, theirs: float | None, form: str = ",") -> str:
            if theirs is None:
                return f"{ours:{form}}"
            return f"{ours:{form}} / {theirs:{form}} ({ours / theirs:.2f})"

        peer = (
            None
            if anchor is None
            else anchor.m7_minstr
            if core == "cortex-m7"
            else anchor.m4_minstr
        )
        result.add_row(
            row.model,
            "yes" if row.matches else "NO",
            beside(row.arena_bytes, anchor and anchor.arena_bytes),
            f"{row.ram_bytes:,}",
            beside(row.code_bytes, anchor and anchor.code_bytes),
            beside(row.flash_bytes, anchor and anchor.flash_bytes),
            beside(counted, peer if core in ("cortex-m4", "cortex-m7") else None, ".3f"),
        )
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--board", default="netduinoplus2")
    parser.add_argument(
        "--models", type=Path, default=SHARED_MODELS, help="folder of .tflite files"
    )
    parser.add_argument(
        "--all", action="store_true", help="every anchored model, not MLPerf's only"
    )
    parser.add_argument("--no-split", action="store_true", help="keep operators whole")
    parser.add_argument(
        "--optimise", type=Optimise, default=Optimise.BALANCED, help="as in `compile`"
    )
    parser.add_argument("--only", default="", help="models whose name contains this")
    json_option(parser)
    parser.add_argument(
        "--as",
        dest="chips",
        action="append",
        metavar="BOARD|CHIP",
        help="tell the time on it; may be repeated (default: some with the board's core)",
    )
    parser.add_argument(
        "--no-cmsis-nn",
        dest="arm",
        action="store_false",
        help="leave out the column of CMSIS-NN's kernels, and the time that it takes",
    )
    arguments = parser.parse_args()
    console = Console(width=200)
    if not arguments.models.is_dir():
        console.print(f"there is no folder {arguments.models}: name one with --models")
        return 2
    core = find_board(arguments.board).core.name
    chips = arguments.chips or CHIPS.get(core, ())
    rows, options = [], PlanOptions(nearly_free=not arguments.no_split, optimise=arguments.optimise)
    names = TFLM if arguments.all else MLPERF_TINY
    for name in (name for name in names if arguments.only in name):
        try:
            with console.status(f"{name} on {arguments.board}"):
                file = arguments.models / f"{name}.tflite"
                rows.append(
                    measure(file, arguments.board, chips, options, beside_arm=arguments.arm)
                )
        except ThimbleError as error:
            console.print(f"{name}: {error}", markup=False)
    console.print(f"{arguments.board} in QEMU; RAM is .data + .bss + arena + measured stack")
    console.print(table(rows, core))
    console.print(times(rows, chips))
    write_results(arguments.json, rows)
    return 0 if rows and all(row.matches for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
