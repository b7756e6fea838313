"""The files of fitted coefficients: their layout, and what is written into them."""

from __future__ import annotations

import json
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

import benchmarks.cost as bench
from benchmarks import _cost_part
from benchmarks._cost_grid import drawn, families
from benchmarks._cost_part import SEEDS, Part
from benchmarks._cost_records import old_fits, records_of, sources_of
from benchmarks.cost import FITTED
from toolchain.boards import Core, board
from toolchain.cost.fitted import COEFFICIENTS, ROUGH, coefficients_text, fit_of
from toolchain.cost.key import COPIES, Build
from toolchain.kernels import cmsis_nn
from toolchain.kernels.c_sources import CTree, declared, reached_text
from toolchain.kernels.runtime_c import tree
from toolchain.ops.convolution.kernels import cmsis_nn as convolutions
from toolchain.ops.matmul.kernels import cmsis_nn as layers
from toolchain.ops.pooling.kernels import cmsis_nn as pools
from toolchain.resources import TEMPLATES

FILES = sorted(COEFFICIENTS.glob("*.json"))
BOARDS = {core: name for name, fitted in FITTED.items() for core in fitted.cores}
"""The emulated board on which each core was fitted."""
PLAIN = {"call", "product", "read element", "written element"}
"""The loops of kernels without a formula of their own."""
FORMULA, ROUGHLY = 0.1, 0.4
"""The largest mean errors on held-out shapes, of kernels with a formula and without."""
UNTRACED = {"thimble_frame_s16", "thimble_gather_nd"}
"""What they touch depends on operands, and a firmware that times kernels fills RAM at random."""
POORLY = {
    "add",
    "arm_convolve_fast_s16",
    "arm_convolve_s16",
    "arm_elementwise_mul_s16",
    "arm_softmax_s8",
    "bitwise_xor",
    "div",
    "float_function",
    "floor_div",
    "floor_mod",
    "leaky_relu",
    "maximum",
    "minimum",
    "mul",
    "prelu",
    "right_shift",
    "squared_difference",
    "sub",
    "thimble_arg_max_s32",
    "thimble_batch_matmul_s16",
    "thimble_clamp_f32",
    "thimble_convolve_s16",
    "thimble_convolve_s4",
    "thimble_decode_boxes",
    "thimble_depthwise_3x3_band_s8",
    "thimble_depthwise_3x3_band_step_2_s8",
    "thimble_dequantize_s16_f32",
    "thimble_detect",
    "thimble_exp_f32",
    "thimble_floor_div_f32",
    "thimble_floor_mod_f32",
    "thimble_fully_connected_s8",
    "thimble_gather",
    "thimble_l2_pool_f32",
    "thimble_local_response_norm_f32",
    "thimble_max_f32",
    "thimble_min_f32",
    "thimble_partial_fully_connected_s8",
    "thimble_pow_f32",
    "thimble_pow_multiplied_f32",
    "thimble_pow_s32",
    "thimble_pow_wrapped_s32",
    "thimble_prelu_s8",
    "thimble_resize_nearest",
    "thimble_reverse_sequence",
    "thimble_rfft2d_f32",
    "thimble_rfft_f32",
    "thimble_select",
    "thimble_sequence_lstm_hybrid_lanes_s8",
    "thimble_sequence_lstm_hybrid_s8",
    "thimble_top_k_f32",
    "thimble_top_k_s16",
    "thimble_top_k_s32",
    "thimble_transpose_conv_f32",
    "thimble_transpose_conv_lanes_s8",
    "thimble_transpose_conv_s16",
}
"""The kernels with larger errors on some core: their time depends on values, or the grid has few
shapes of them, or their formula lacks what they do.
"""
WORD = re.compile(r"\w+")
PACKAGES = (convolutions, pools, layers)
MODULES = {
    module.name
    for package in PACKAGES
    for module in pkgutil.iter_modules(package.__path__)
    if module.name.startswith("arm_")
}
"""CMSIS-NN's functions, by their modules."""
KINDS = {
    *("conv2d", "pointwise", "strided_pointwise", "row", "depthwise_conv2d", "depthwise_3x3"),
    *("transpose_conv2d", "fully_connected", "average_pool2d", "max_pool2d"),
}
FAMILIES = [name for name in families() if name.partition(".")[0] in KINDS]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_laid_out_as_it_would_be_written(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    data = json.loads(text)
    assert text == coefficients_text(data)
    lines = [line for line in text.splitlines() if line.startswith('  "')]
    kept = (data[field] for field in ("kernels", "fits") if field in data)
    assert [json.loads(f"{{{line.rstrip(',')}}}") for line in lines] == [
        {name: each} for kernels in kept for name, each in kernels.items()
    ]


def test_cmsis_nn_s_convolutions_and_pools_have_coefficients() -> None:
    """Each function that has a module, on every core whose operators get it. Without coefficients
    its time is estimated from elements and products alone, several times too low or too high.
    """
    reached = set()
    for name, fitted in FITTED.items():
        core = board(name).core
        found = {one.name for family in FAMILIES for one in drawn(family, 1, core, 24)}
        for each in fitted.cores:
            assert not (found & MODULES) - set(fit_of(Core(each)).kernels), each
        reached |= found
    assert reached >= MODULES


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m33", "cortex-m7"])
def test_a_pool_of_cmsis_nn_takes_longer_where_it_is_larger(core: str) -> None:
    """A fit of few shapes left a constant for each call."""
    kernels = fit_of(Core(core)).kernels
    assert "tap channel" in kernels["arm_avgpool_s8"]
    assert "tap channel" in kernels["arm_max_pool_s8"]


@cache
def sources(kind: tuple[bool, ...], count: int | None) -> dict[str, frozenset[str]]:
    """The kernels that operators of the grid get on cores of a kind, and digests of their C."""
    core = next(board(name).core for name in FITTED if kind_of(board(name).core) == kind)
    return dict(sources_of(core, SEEDS[:1] if count else SEEDS, count))


def kind_of(core: Core) -> tuple[bool, ...]:
    """What kernels are chosen by."""
    return core.dsp, core.mve, core.multiplies_alone


def check_kernels(core: str, count: int | None) -> None:
    wanted = sources(kind_of(board(BOARDS[core]).core), count)
    assert len(wanted) > 180
    lacking = set(wanted) - set(fit_of(Core(core)).kernels)
    assert lacking <= UNTRACED, "benchmarks.cost --stale --write fits them"
    old = old_fits(core, wanted) - UNTRACED
    assert not old, "their C has changed: benchmarks.cost --stale --write looks at them again"


@pytest.mark.parametrize("core", BOARDS)
def test_every_kernel_that_an_operator_gets_has_coefficients_of_its_c(core: str) -> None:
    """With every preference and form, of the first operators of each family of the grid."""
    check_kernels(core, 2)


@pytest.mark.long
@pytest.mark.parametrize("core", BOARDS)
def test_every_kernel_of_the_whole_grid_has_coefficients_of_its_c(core: str) -> None:
    check_kernels(core, None)


def test_every_function_that_operators_call_was_fitted() -> None:
    """The headers for generated C declare them; others there are called by C or by templates."""
    fitted = {
        part for core in BOARDS for name in fit_of(Core(core)).kernels for part in name.split("+")
    }
    by_templates = {word for path in TEMPLATES.rglob("*.j2") for word in words(path)}
    by_c = {path: words(path) - {path.stem} for path in tree().sources.rglob("*.[ch]")}
    of_operators = declared(tree()) - by_templates - frozenset().union(*by_c.values())
    assert len(of_operators) > 130
    assert not of_operators - fitted - UNTRACED


def words(path: Path) -> set[str]:
    return set(WORD.findall(path.read_text(encoding="utf-8")))


def wrong_kernels(core: str) -> set[str]:
    """Those whose errors on held-out shapes, as written with the coefficients, are larger."""
    kernels, records = fit_of(Core(core)).kernels, records_of(core)
    assert set(records) == set(kernels) - {*ROUGH, COPIES}
    most = {name: FORMULA if set(each) - PLAIN else ROUGHLY for name, each in kernels.items()}
    return {name for name, one in records.items() if one.held_out > most[name]}


def test_shapes_that_no_fit_has_seen_are_predicted() -> None:
    assert set.union(*map(wrong_kernels, BOARDS)) == POORLY


def test_the_library_is_the_pinned_one() -> None:
    files = [json.loads(file.read_text(encoding="utf-8")) for file in FILES]
    assert {data["cmsis_nn"] for data in files if "board" in data} == {
        cmsis_nn.cached_folder().name
    }


def test_what_is_written_of_a_part_leaves_kernels_that_others_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coefficients of a few shapes of a kernel once took the place of those of many."""
    monkeypatch.setattr(bench, "COEFFICIENTS", tmp_path)
    monkeypatch.setattr(_cost_part, "families", lambda: ("padded_image", "block_concat"))
    target, build = board("mps2-an386"), Build("a compiler", "a library")
    first = {"thimble_move": {"call": 1.0}, "thimble_pad": {"call": 1.0}, "int8": {"call": 1.0}}
    later = {name: {"call": 2.0} for name in first}
    bench.write("cortex-m4", {"kernels": first, "fits": {}}, target, build, Part())
    part = Part(kinds=("padded_image",))
    bench.write("cortex-m4", {"kernels": later, "fits": {}}, target, build, part)
    written = json.loads((tmp_path / "cortex-m4.json").read_text(encoding="utf-8"))["kernels"]
    assert {name: each["call"] for name, each in written.items()} == {
        "int8": 1.0,
        "thimble_move": 1.0,
        "thimble_pad": 2.0,
    }


def test_the_digest_is_of_what_runs(tmp_path: Path) -> None:
    """A comment, and what else a header holds, do not count; what is called through it does."""
    (tmp_path / "f.c").write_text('#include "h.h"\nint f(int x)\n{\n    return g(x);\n}\n')
    header = tmp_path / "h.h"

    def text(content: str) -> str:
        header.write_text(content)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for file in ("f.c", "h.h"):
            (folder / file).write_text((tmp_path / file).read_text())
        return reached_text(["f"], CTree(folder, folder))

    g = "static inline int g(int x)\n{\n    return x + 1;\n}\n"
    assert "return x + 1;" in text(g) and "return g(x);" in text(g)
    assert text(g) == text("/* One more. */\n" + g.replace("    ", "  "))
    assert text(g) == text(g + g.replace("g(", "unused("))
    assert text(g) != text(g.replace("1", "2"))
