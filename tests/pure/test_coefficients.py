"""The files of fitted coefficients: their layout, and what is written into them."""

from __future__ import annotations

import json
import pkgutil
from pathlib import Path

import pytest

import benchmarks.cost as bench
from benchmarks import _cost_part
from benchmarks._cost_grid import drawn, families
from benchmarks._cost_part import Part
from benchmarks.cost import FITTED
from toolchain.boards import Core, board
from toolchain.cost.fitted import COEFFICIENTS, coefficients_text, fit_of
from toolchain.cost.key import Build
from toolchain.kernels import cmsis_nn
from toolchain.kernels.c_sources import CTree, reached_text
from toolchain.ops.convolution.kernels import cmsis_nn as convolutions
from toolchain.ops.matmul.kernels import cmsis_nn as layers
from toolchain.ops.pooling.kernels import cmsis_nn as pools

FILES = sorted(COEFFICIENTS.glob("*.json"))
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
