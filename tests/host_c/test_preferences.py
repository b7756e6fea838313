"""`--kernels`: CMSIS-NN's and Thimble's kernels of every kind against the NumPy references.

The C runs under sanitizers, on this machine: CMSIS-NN's plain C path. `tests/qemu/test_operators`
runs its DSP and Helium paths.
"""

from __future__ import annotations

import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.grids import convolutions, depthwise_convolutions
from tests.support.host import host_model, random_inputs, reference_outputs
from toolchain.boards import HOST, Core
from toolchain.codegen.bounds import check_call
from toolchain.device.host import HostProgram, build
from toolchain.errors import InputError, UnsupportedError
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms, kernel_of
from toolchain.ops.cmsis_structs import tile
from toolchain.ops.forms import Choice
from toolchain.ops.kernel import Struct
from toolchain.ops.preference import Preference
from toolchain.ops.spec import Array
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
SAMPLES = 24
REFUSED = ("softmax.int16", "svdf.int8")
"""Kinds whose function is never called; they say why."""
CHOICES = sorted(
    kind
    for kind, spec in forms().items()
    if isinstance(spec.select, Choice) and kind not in REFUSED
)
GRIDS = {"conv2d": convolutions, "depthwise_conv2d": depthwise_convolutions}
M55 = Core("cortex-m55", dsp=True, mve=True, fpu=True)


def _sampled(kind: str, preference: Preference) -> list[Graph]:
    """Samples whose kernels the preference changes."""
    rng = np.random.default_rng(zlib.crc32(f"{kind} {preference}".encode()))
    drawn = [forms()[kind].sample(rng) for _ in range(SAMPLES)]
    if kind in GRIDS:
        grid = GRIDS[kind]()
        drawn += [grid[i] for i in rng.permutation(len(grid))[:SAMPLES]]
    return [g for g in drawn if kernel_of(g.ops[0], g, HOST, preference).of_cmsis_nn]


def _run(graphs: list[Graph], preference: Preference, runs: int) -> list[list[tuple[Array, Array]]]:
    """What the C gives for each graph, and what the reference gives, on random inputs."""
    rng = np.random.default_rng(1)
    models = [
        host_model(graph, f"m{index}", spread=index % 2 == 1, preference=preference)
        for index, graph in enumerate(graphs)
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, graph in enumerate(graphs):
                pairs = []
                for _ in range(runs):
                    inputs = random_inputs(graph, rng)
                    wanted = reference_outputs(graph, inputs)
                    pairs += zip(running.run(inputs, index), wanted, strict=True)
                found.append(pairs)
    return found


@pytest.mark.parametrize("kind", CHOICES)
def test_cmsis_nn_computes_what_the_reference_does(kind: str) -> None:
    """Byte for byte, but for kernels that say why they are not exact: those differ somewhere."""
    graphs = _sampled(kind, Preference.CMSIS_NN)
    assert len(graphs) >= 3, f"CMSIS-NN takes {len(graphs)} of {SAMPLES} samples of {kind}"
    inexact = {kernel_of(g.ops[0], g, HOST, Preference.CMSIS_NN).inexact for g in graphs}
    assert len(inexact) == 1, "the samples cannot tell exact kernels from the others"
    differing, runs = 0, 3 if inexact == {""} else 200
    for graph, pairs in zip(graphs, _run(graphs, Preference.CMSIS_NN, runs), strict=True):
        for have, want in pairs:
            off = np.abs(have.astype(np.int64) - want.astype(np.int64))
            differing += int(np.count_nonzero(off))
            assert off.max(initial=0) <= (1 if inexact != {""} else 0), graph.ops
    assert bool(differing) == (inexact != {""}), (differing, inexact)


def test_transposed_convolutions_whose_padding_is_no_multiple_of_the_stride() -> None:
    """Of those, 7.0.0 leaves a row out; the pinned release does not."""
    rng = np.random.default_rng(233)
    drawn = [forms()["transpose_conv2d"].sample(rng) for _ in range(120)]
    graphs = [g for g in drawn if g.ops[0].attributes.padding.top % g.ops[0].attributes.stride[0]]
    assert len(graphs) >= 4
    for pairs in _run(graphs, Preference.CMSIS_NN, 1):
        for have, want in pairs:
            np.testing.assert_array_equal(have, want)


def test_windows_that_do_not_meet_the_pixels_of_a_transposed_convolution_are_refused() -> None:
    """With paddings as tflite-micro gives them, some sizes make the pinned release add the sums of
    one pixel to those of another: no code is generated for such a call.
    """
    graph = forms()["transpose_conv2d"].sample(np.random.default_rng(0))
    (op,) = graph.ops
    kernel = kernel_of(op, graph, HOST, Preference.CMSIS_NN)
    check_call(op, graph, kernel, {})
    (call,) = kernel.calls
    params = call.arguments["transpose_conv_params"]
    assert isinstance(params, Struct)
    astray = {**params.members, "padding_offsets": tile(999, 999)}
    arguments = {**call.arguments, "transpose_conv_params": replace(params, members=astray)}
    wrong = replace(kernel, calls=(replace(call, arguments=arguments),))
    with pytest.raises(UnsupportedError, match="its kernel writes 0 of bytes"):
        check_call(op, graph, wrong, {})


@pytest.mark.parametrize("core", [HOST, M55], ids=lambda core: core.name)
@pytest.mark.parametrize("kind", sorted(forms()))
def test_a_kernel_of_the_other_kind_says_why(kind: str, core: Core) -> None:
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    for _ in range(6):
        graph = forms()[kind].sample(rng)
        (op,) = graph.ops
        for preference in (Preference.CMSIS_NN, Preference.THIMBLE):
            kernel = kernel_of(op, graph, core, preference)
            asked = kernel.of_cmsis_nn == (preference is Preference.CMSIS_NN)
            assert asked or kernel.instead or not kernel.functions, (preference, kernel.functions)
        assert not kernel_of(op, graph, core).instead


@pytest.mark.parametrize("kind", ["depthwise_conv2d", "average_pool2d", "max_pool2d"])
def test_thimble_has_its_own_where_helium_takes_cmsis_nn(kind: str) -> None:
    rng = np.random.default_rng(2)
    graphs = [forms()[kind].sample(rng) for _ in range(12)]
    chosen = {kernel_of(g.ops[0], g, M55).of_cmsis_nn for g in graphs}
    ours = {kernel_of(g.ops[0], g, M55, Preference.THIMBLE).of_cmsis_nn for g in graphs}
    assert True in chosen
    assert ours == {False}


def test_the_python_interface_takes_names() -> None:
    assert PlanOptions(kernels="thimble").kernels is Preference.THIMBLE  # type: ignore[arg-type]
    with pytest.raises(InputError, match="auto, cmsis-nn, thimble"):
        PlanOptions(kernels="arm")  # type: ignore[arg-type]


def test_blocks_of_split_operators_are_computed_by_the_preferred_kernels() -> None:
    options = PlanOptions(kernels=Preference.CMSIS_NN, max_slowdown=0.5, split_seconds=3)
    plan = plan_model(DIGITS, "netduinoplus2", options)
    blocks = [
        kernel
        for op, kernel in zip(plan.graph.ops, plan.lowered.kernels, strict=True)
        if op.part_of and op.kind in ("conv2d", "depthwise_conv2d")
    ]
    assert blocks
    assert all(kernel.of_cmsis_nn for kernel in blocks)
    assert plan.lowered.preference is Preference.CMSIS_NN
