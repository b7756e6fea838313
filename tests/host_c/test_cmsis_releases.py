"""Another release of CMSIS-NN: what its functions take more, and what Thimble cannot give them.

The folders are the pinned sources, changed as 6.0.0 and 7.0.0 changed them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.grids import convolutions
from tests.support.host import plan_of, random_inputs, reference_outputs
from toolchain.boards import HOST, Core
from toolchain.codegen import generate
from toolchain.device.host import HostModel, HostProgram, build
from toolchain.errors import MissingToolError
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms, kernel_of
from toolchain.ops.preference import Preference

M55 = Core("cortex-m55", dsp=True, mve=True, fpu=True)
DIMS = "const cmsis_nn_dims *output_dims,"


def _changed(folder: Path, file: str, before: str, after: str) -> None:
    """Replace text in a header or source of `folder`, in which it must occur."""
    path = next(folder.rglob(file))
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def _declared(folder: Path, function: str, before: str, after: str) -> None:
    """Replace text in the prototype of a function."""
    path = folder / "Include/arm_nnfunctions.h"
    head, name, rest = path.read_text(encoding="utf-8").partition(f" {function}(")
    prototype, end, tail = rest.partition(";")
    assert before in prototype
    changed = prototype.replace(before, after)
    path.write_text(head + name + changed + end + tail, encoding="utf-8")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A copy of the pinned sources."""
    for part in ("Include", "Source"):
        shutil.copytree(cmsis_nn.find() / part, tmp_path / part)
    return tmp_path


def _sample(kind: str, function: str, core: Core) -> Graph:
    rng = np.random.default_rng(3)
    graphs = [forms()[kind].sample(rng) for _ in range(20)]
    for graph in (*graphs, *convolutions()):
        if kernel_of(graph.ops[0], graph, core, Preference.CMSIS_NN).functions == (function,):
            return graph
    raise AssertionError(f"no sample of {kind} calls {function}")


def test_a_parameter_that_came_later_is_null(release: Path) -> None:
    """`arm_convolve_s8` takes upscale_dims since 6.0.0."""
    more = f"const cmsis_nn_dims *upscale_dims, {DIMS}"
    _declared(release, "arm_convolve_s8", DIMS, more)
    _changed(release, "arm_convolve_s8.c", DIMS, more)
    _changed(release, "arm_convolve_s8.c", "(void)bias_dims;", "if (upscale_dims) return -9;")
    graph = _sample("conv2d", "arm_convolve_s8", HOST)
    plan = plan_of(graph, preference=Preference.CMSIS_NN)
    model = HostModel(generate(plan, HOST, release, name="m"), graph)
    inputs = random_inputs(graph, np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as folder:
        program = build([model], release, Path(folder))
        with HostProgram(program, [model]) as running:
            (have,) = running.run(inputs, 0)
    np.testing.assert_array_equal(have, reference_outputs(graph, inputs)[0])


def _wider_bias(folder: Path) -> None:
    bias = ("const int64_t *bias_data", "const cmsis_nn_bias_data *bias_data")
    _declared(folder, "arm_convolve_s16", *bias)


def _scratch_for_rows(folder: Path) -> None:
    dims = "const cmsis_nn_dims *input_dims"
    more = f"const cmsis_nn_conv_params *conv_params, {dims}"
    _declared(folder, "arm_convolve_1_x_n_s8_get_buffer_size", dims, more)


def _unknown(folder: Path) -> None:
    _declared(folder, "arm_max_pool_s8", "const int8_t *", "int32_t mode, const int8_t *")


@pytest.mark.parametrize(
    ("kind", "function", "core", "change"),
    [
        ("conv2d.int16", "arm_convolve_s16", HOST, _wider_bias),
        ("conv2d", "arm_convolve_1_x_n_s8", M55, _scratch_for_rows),
        ("max_pool2d", "arm_max_pool_s8", HOST, _unknown),
    ],
)
def test_what_cannot_be_given_is_refused(
    release: Path, kind: str, function: str, core: Core, change: Callable[[Path], None]
) -> None:
    graph = _sample(kind, function, core)
    plan = plan_of(graph, core, preference=Preference.CMSIS_NN)
    generate(plan, core, cmsis_nn.find())
    change(release)
    with pytest.raises(MissingToolError, match=f"{function} in .* --kernels thimble"):
        generate(plan, core, release)


def test_a_function_that_our_own_kernel_calls_must_be_there(release: Path) -> None:
    """`arm_nn_vec_mat_mul_result_acc_s8`, which the LSTM calls, is gone since 6.0.0."""
    next(release.rglob("arm_nn_vec_mat_mul_result_acc_s8.c")).unlink()
    graph = forms()["lstm"].sample(np.random.default_rng(0))
    with pytest.raises(MissingToolError, match=r"thimble_lstm_s8\.c calls arm_nn_vec_mat_mul"):
        generate(plan_of(graph), HOST, release)
