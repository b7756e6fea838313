"""Every operator kind: generated C on the host against the NumPy reference, under sanitizers.

Every second sample lies spread out in its arena, and touching a byte between tensors is an error;
the others are placed as a user's model is, in place where that is allowed.
"""

from __future__ import annotations

import tempfile
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from benchmarks import _cases
from tests.support.groups import first_and_last, groups
from tests.support.host import (
    host_model,
    plan_of,
    random_inputs,
    reference_outputs,
    run_graph_on_host,
)
from tests.support.litert import run_litert
from tests.support.long import mostly_long
from tests.support.tflite_writer import tflite_bytes
from toolchain.boards import HOST
from toolchain.device.host import HostProgram, build
from toolchain.errors import ThimbleError
from toolchain.ir import Graph, Op, Quantisation
from toolchain.ir.verify import InvalidGraphError
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms, kernel_of
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.check import check
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.spec import Array

SAMPLES, MANY = 4, 30
GROUP = 6
WILD = 2
"""Samples with scales that no converter chooses: shifts and products at their extremes."""


def _wild(kind: str, rng: np.random.Generator) -> list[Graph]:
    """Those that are accepted, of WILD; floats have no scales."""
    found = []
    for _ in range(WILD):
        plain = forms()[kind].sample(rng)
        graph = _cases.wild(plain, rng)
        if graph.tensors != plain.tensors:
            with suppress(ThimbleError, InvalidGraphError):
                plan_of(check(graph))
                found.append(graph)
    return found


def _inputs(graph: Graph, rng: np.random.Generator) -> list[tuple[Array, ...]]:
    """Two random sets, and one in which each input holds one extreme value throughout."""
    flat = []
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.dtype.numpy.kind in "iu":
            info = np.iinfo(tensor.dtype.value)
            extreme = info.min if rng.random() < 0.5 else info.max
            flat.append(np.full(tensor.shape, extreme, tensor.dtype.numpy))
        else:
            flat.append(np.zeros(tensor.shape, tensor.dtype.numpy))
    return [random_inputs(graph, rng), random_inputs(graph, rng), tuple(flat)]


@pytest.mark.parametrize("samples", mostly_long([SAMPLES, MANY], [SAMPLES]))
@pytest.mark.parametrize("kinds", groups(forms(), GROUP), ids=first_and_last)
def test_c_equals_reference(kinds: list[str], samples: int) -> None:
    generators = {kind: np.random.default_rng(zlib.crc32(kind.encode())) for kind in kinds}
    cases = []
    for kind, rng in generators.items():
        graphs = [forms()[kind].sample(rng) for _ in range(samples)] + _wild(kind, rng)
        cases += [(kind, number, graph) for number, graph in enumerate(graphs)]
    models = [
        host_model(graph, f"{kind.replace('.', '_')}_{number}", spread=number % 2 == 1)
        for kind, number, graph in cases
    ]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, (kind, number, graph) in enumerate(cases):
                for inputs in _inputs(graph, generators[kind]):
                    expected = reference_outputs(graph, inputs)
                    got = running.run(inputs, index)
                    for name, want, have in zip(graph.outputs, expected, got, strict=True):
                        message = f"{kind}, sample {number}, {name}: {graph.ops}"
                        assert have.dtype == want.dtype, message
                        np.testing.assert_array_equal(have, want, err_msg=message)


@pytest.mark.parametrize("kind", ["softmax.int16", "mul.int16", "squared_difference"])
def test_factors_so_small_that_they_shift_by_31(kind: str) -> None:
    """The least factor that TFLite does not take for 0; a shift of 1 by 31 has no value in C."""
    rng = np.random.default_rng(31)
    graph = forms()[kind].sample(rng)
    smallest = {
        "softmax.int16": {"x": 2.0**-31.5 * 10 / 65535},
        "mul.int16": {"a": 2.0**-17, "b": 2.0**-17, "y": 2.0**-2.5},
        "squared_difference": {"a": 2.0**-20, "b": 2.0**-20, "y": 2.0**-20.5},
    }[kind]
    tensors = {
        name: replace(
            tensor,
            quantisation=Quantisation((float(np.float32(smallest[name])),), (0,))
            if name in smallest
            else tensor.quantisation,
        )
        for name, tensor in graph.tensors.items()
    }
    graph = replace(graph, tensors=MappingProxyType(tensors))
    (op,) = graph.ops
    if isinstance(op.attributes, Softmax):
        graph = replace(graph, ops=(replace(op, attributes=Softmax(1.0)),))
    (op,) = graph.ops
    shifts = [value for name, value in printed(op, graph) if "shift" in name]
    assert min(shifts) == -31, shifts
    inputs = random_inputs(graph, rng)
    (have,) = run_graph_on_host(graph, inputs, sanitize=True)
    np.testing.assert_array_equal(have, reference_outputs(graph, inputs)[0])


WRAPPING = (
    *("abs.int16", "leaky_relu.int16", "logistic.int16", "mean", "mean.int16", "mul", "mul.int16"),
    *("prelu", "prelu.int16", "reduce_prod", "relu.int16", "softmax.int16", "tanh.int16"),
)


@pytest.mark.parametrize("kind", WRAPPING)
def test_left_shifts_wrap_as_litert(kind: str) -> None:
    """The input's scale is 2^9, 2^14 ... 2^39 times as coarse, without an activation."""
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    graphs = []
    for _ in range(60):
        sample = forms()[kind].sample(rng)
        x = sample.tensors[sample.inputs[0]] if sample.inputs else None
        if x is None or (
            getattr(sample.ops[0].attributes, "activation", Activation.NONE) is not Activation.NONE
        ):
            continue
        scale = float(np.float32(x.q.scale * 2.0 ** (9 + 5 * rng.integers(7))))
        coarse = replace(x, quantisation=Quantisation((scale,), x.q.zero_points))
        graph = replace(sample, tensors={**sample.tensors, x.name: coarse})
        with suppress(ThimbleError):
            plan_of(check(graph))
            graphs.append(graph)
    graphs = graphs[:5]
    assert graphs
    models = [host_model(graph, f"m{index}") for index, graph in enumerate(graphs)]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, graph in enumerate(graphs):
                for inputs in _inputs(graph, rng):
                    (have,) = running.run(inputs, index)
                    (theirs,) = run_litert(tflite_bytes(graph), inputs)
                    np.testing.assert_array_equal(have, theirs, err_msg=f"{index} {graph.ops}")


def printed(op: Op, graph: Graph) -> list[tuple[str, int]]:
    """The numbers that are printed of an operator's parameters."""
    return [pair for call in kernel_of(op, graph, HOST).calls for pair in call.integers()]
