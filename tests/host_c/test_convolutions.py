"""The convolution family's portable C under sanitizers, and CMSIS-NN's own idea of its scratch."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.support.convolutions import (
    above_zero,
    convolutions,
    depthwise_lines,
    depthwise_windows,
    first_layers,
    in_whole_words,
    rounded_as_onnx,
    with_weight_zero_point,
)
from tests.support.host import (
    model_of,
    plan_of,
    random_inputs,
    reference_outputs,
    with_room,
)
from toolchain.boards import HOST, Core
from toolchain.device.host import HostProgram, build
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms, kernel_of
from toolchain.ops.preference import Preference

KINDS = ("conv2d", "depthwise_conv2d", "fully_connected", "transpose_conv2d", "batch_matmul")
PARTS = ("partial_conv2d", "partial_fully_connected")
M3 = Core("cortex-m3")
M4 = Core("cortex-m4", dsp=True, fpu=True)
M55 = Core("cortex-m55", dsp=True, mve=True, fpu=True)


@pytest.mark.parametrize(
    ("kind", "core"),
    [
        *((kind, core) for kind in KINDS for core in (HOST, M55)),
        *((kind, M3) for kind in ("conv2d", "depthwise_conv2d")),
    ],
    ids=lambda value: value.name if isinstance(value, Core) else value,
)
def test_any_padding_scale_and_batch(kind: str, core: Core) -> None:
    """Thimble's kernels; those for Helium in their portable form."""
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    graphs = convolutions(kind, 18, rng)
    if kind in ("conv2d", "depthwise_conv2d"):
        graphs += in_whole_words(kind, 24, rng)
    _check(graphs, rng, core)


@pytest.mark.parametrize("room", (0, 400, 6000))
def test_depthwise_rows_of_any_length(room: int) -> None:
    """With scratch for three lines, for bands of few rows, and for all of them."""
    rng = np.random.default_rng(3 + room)
    _check(depthwise_lines(40, rng), rng, HOST, room)


@pytest.mark.parametrize("room", (0, 6000))
def test_first_layers_of_few_channels(room: int) -> None:
    """Two windows at once, and four."""
    rng = np.random.default_rng(41 + room)
    _check(first_layers(30, rng), rng, HOST, room)


def test_vectors_of_whole_windows_and_sums_rounded_once() -> None:
    """The portable form of Helium's kernels."""
    rng = np.random.default_rng(5)
    graphs = [above_zero(forms()[kind].sample(rng)) for kind in KINDS[:2] for _ in range(8)]
    graphs += [rounded_as_onnx(above_zero(forms()["conv2d"].sample(rng))) for _ in range(8)]
    _check(depthwise_windows(40, rng) + graphs, rng, M55)


def test_vectors_of_weights_with_a_zero_point() -> None:
    """The portable form of Helium's kernel; windows of one vector and of more."""
    rng = np.random.default_rng(8)
    graphs = [*convolutions("conv2d", 18, rng), *in_whole_words("conv2d", 18, rng)]
    graphs = [with_weight_zero_point(graph, rng) for graph in graphs]
    taken = {kernel_of(graph.ops[0], graph, M55).functions for graph in graphs}
    assert ("thimble_convolve_offset_lanes_s8",) in taken
    _check(graphs, rng, M55)


@pytest.mark.parametrize("kind", PARTS)
def test_vectors_of_partial_sums(kind: str) -> None:
    """The portable form of Helium's kernels; odd pixels, channels and taps."""
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    _check([forms()[kind].sample(rng) for _ in range(30)], rng, M55)


def _check(graphs: list[Graph], rng: np.random.Generator, core: Core, room: int = 0) -> None:
    """Compiled with sanitizers, against the references."""
    plans = [
        with_room(plan_of(graph, core, preference=Preference.THIMBLE), room) for graph in graphs
    ]
    models = [model_of(plan, f"m{index}") for index, plan in enumerate(plans)]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, graph in enumerate(graphs):
                inputs = random_inputs(graph, rng)
                want = reference_outputs(graph, inputs)[0]
                have = running.run(inputs, index)[0]
                np.testing.assert_array_equal(have, want, err_msg=f"{index} {graph.ops[0]}")


class _Dims(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in "nhwc"]


class _ConvParams(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int32)
        for name in (
            *("input_offset", "output_offset", "stride_w", "stride_h", "padding_w", "padding_h"),
            *("dilation_w", "dilation_h", "activation_min", "activation_max"),
        )
    ]


class _DepthwiseParams(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int32)
        for name in (
            *("input_offset", "output_offset", "ch_mult", "stride_w", "stride_h", "padding_w"),
            *("padding_h", "dilation_w", "dilation_h", "activation_min", "activation_max"),
        )
    ]


@pytest.fixture(scope="module")
def buffer_sizes(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """CMSIS-NN's functions that tell the scratch a wrapper needs, compiled for this machine."""
    library = tmp_path_factory.mktemp("sizes") / "sizes.so"
    tree = cmsis_nn.tree(cmsis_nn.find())
    names = ("arm_convolve_get_buffer_sizes_s8.c", "arm_depthwise_conv_get_buffer_sizes_s8.c")
    sources = [next(tree.include.parent.rglob(name)) for name in names]
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", f"-I{tree.include}", *sources, "-o", library], check=True
    )
    return ctypes.CDLL(str(library))


@pytest.mark.parametrize(("core", "suffix"), [(M55, "mve"), (M4, "dsp")])
def test_scratch_is_what_cmsis_nn_asks_for(
    buffer_sizes: ctypes.CDLL, core: Core, suffix: str
) -> None:
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(200):
        kind = str(rng.choice(["conv2d", "depthwise_conv2d"]))
        graph = forms()[kind].sample(rng)
        op = graph.ops[0]
        lowering = kernel_of(op, graph, core, Preference.CMSIS_NN)
        function = lowering.functions[0]
        if not function.startswith("arm_") or graph.input(op, 1).shape[1:3] == (1, 1):
            continue
        if function == "arm_depthwise_conv_s8":  # needs none, and takes what the others would not
            continue
        seen.add(function)
        x, weights, y, a = graph.input(op, 0), graph.input(op, 1), graph.output(op), op.attributes
        size, kernel, out = _Dims(*x.shape), _Dims(*weights.shape), _Dims(*y.shape)
        stride, dilation, pad = a.stride[::-1], a.dilation[::-1], (a.padding.left, a.padding.top)
        if kind == "conv2d":
            params = _ConvParams(0, 0, *stride, *pad, *dilation, -128, 127)
            asked = buffer_sizes[f"arm_convolve_wrapper_s8_get_buffer_size_{suffix}"]
        else:
            params = _DepthwiseParams(0, 0, 1, *stride, *pad, *dilation, -128, 127)
            asked = buffer_sizes[f"arm_depthwise_conv_wrapper_s8_get_buffer_size_{suffix}"]
        wanted = asked(*(ctypes.byref(v) for v in (params, size, kernel, out)))
        assert lowering.scratch_bytes >= wanted, (function, op)
        if function != "arm_convolve_s8" or x.shape[1] > 1:
            assert lowering.scratch_bytes == wanted, (function, op)
    assert {"arm_convolve_s8", "arm_depthwise_conv_s8_opt"} <= seen
