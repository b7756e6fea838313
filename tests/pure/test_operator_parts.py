"""Walks the operator kinds that were discovered, and fails where a part of one is missing."""

from __future__ import annotations

import dataclasses
import sys
import zlib
from types import ModuleType

import numpy as np
import pytest

from tests.support.host import plan_of, random_inputs, reference_outputs
from toolchain.boards import HOST, Core
from toolchain.ir import Attributes, DType, Graph
from toolchain.ops import forms, kernel_of, spec_of
from toolchain.ops.moves import moves
from toolchain.resources import TEMPLATES

CORES = (
    HOST,
    Core("cortex-m3"),
    Core("cortex-m4", dsp=True, fpu=True),
    Core("cortex-m55", dsp=True, mve=True, fpu=True),
)
KINDS = sorted(forms())
SAMPLES = 5

MADE_WHILE_READING = ("assign", "branch", "while_loop")
"""By the front ends themselves."""


def _samples(kind: str) -> list[Graph]:
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    return [forms()[kind].sample(rng) for _ in range(SAMPLES)]


def test_there_are_kinds() -> None:
    assert {"conv2d", "fully_connected"} <= set(KINDS)


def declared(module: ModuleType) -> set[str]:
    """The kinds that a module makes: one that is named as it, or several."""
    own = getattr(module, "SPEC", None)
    assert own is None or own.kind == module.__name__.rpartition(".")[2]
    return {spec.kind for spec in (*getattr(module, "SPECS", ()), *([own] if own else ()))}


@pytest.mark.parametrize("kind", KINDS)
def test_is_described(kind: str) -> None:
    spec = forms()[kind]
    assert issubclass(spec.attributes, Attributes)
    assert dataclasses.is_dataclass(spec.attributes)
    assert spec.limits, "say in one line what is supported"
    modules = [own for name, own in sys.modules.items() if name.startswith("toolchain.ops.")]
    (module,) = (own for own in modules if spec.kind in declared(own))
    assert (module.__doc__ or "").strip()
    read = kind in MADE_WHILE_READING or spec.tflite is not None or spec.onnx is not None
    assert read != spec.made_by_passes, "either a front end reads it, or only passes make it"


@pytest.mark.parametrize("kind", KINDS)
def test_sample_is_one_operator_of_the_kind_and_reproducible(kind: str) -> None:
    for graph, again in zip(_samples(kind), _samples(kind), strict=True):
        assert [op.kind for op in graph.ops] == [forms()[kind].kind]
        assert isinstance(graph.ops[0].attributes, forms()[kind].attributes)
        assert graph.ops == again.ops
        assert [str(t) for t in graph.tensors.values()] == [str(t) for t in again.tensors.values()]


@pytest.mark.parametrize("kind", KINDS)
def test_shape_rule_and_reference_agree_with_the_sample(kind: str) -> None:
    for graph in _samples(kind):
        op = graph.ops[0]
        spec = spec_of(op.kind)
        assert spec.form(op, graph) is forms()[kind]
        outputs = [graph.tensors[name] for name in op.outputs]
        assert [(t.shape, t.dtype) for t in spec.infer(op, graph)] == [
            (t.shape, t.dtype) for t in outputs
        ]
        given = dict(zip(graph.inputs, random_inputs(graph, np.random.default_rng(0)), strict=True))
        given |= {state.input: state.initial for state in graph.states}
        constants = {n: t.constant for n, t in graph.tensors.items() if t.constant is not None}
        arrays = [(given | constants)[n] if n else np.zeros(0) for n in op.inputs]
        for result, tensor in zip(spec.reference(op, graph, arrays), outputs, strict=True):
            assert (result.shape, result.dtype) == (tensor.shape, tensor.dtype.numpy)
        assert spec.macs(op, graph) >= 0


@pytest.mark.parametrize("kind", KINDS)
def test_has_c_on_every_core(kind: str) -> None:
    """A kernel and its template, unless the operator only moves whole byte ranges."""
    for core in CORES:
        for graph in _samples(kind):
            kernel = kernel_of(graph.ops[0], graph, core)
            if moves(graph.ops[0], graph, plan_of(graph, core).arena) is None:
                assert kernel.calls or (TEMPLATES / "ops" / f"{kind}.c.j2").is_file()
                for call in kernel.calls:
                    assert (TEMPLATES / "ops" / f"{call.template}.c.j2").is_file()
                    assert call.function, "calls no function"


def test_every_template_belongs_to_a_kind() -> None:
    found = {path.name.removesuffix(".c.j2") for path in (TEMPLATES / "ops").glob("[!_]*.c.j2")}
    named = {
        call.template
        for kind in KINDS
        for graph in _samples(kind)
        for call in kernel_of(graph.ops[0], graph, HOST).calls
    }
    assert found <= set(KINDS) | named | {"body"}


@pytest.mark.parametrize("kind", KINDS)
def test_sums_in_parts_are_of_int8(kind: str) -> None:
    """Partial sums are int32 of int8 data: a kind made from an int8 one must not inherit them."""
    for graph in _samples(kind):
        (op,) = graph.ops
        if spec_of(op.kind).reductions(op, graph):
            assert graph.output(op).dtype is DType.INT8


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_that_are_not_read_change_nothing(kind: str) -> None:
    rng = np.random.default_rng(1)
    for graph in _samples(kind):
        (op,) = graph.ops
        given = dict(zip(graph.inputs, random_inputs(graph, rng), strict=True))
        changed = dict(given)
        for name, (begin, end) in zip(op.inputs, spec_of(op.kind).reads(op, graph), strict=True):
            if name in given:
                raw = bytearray(given[name].tobytes())
                assert 0 <= begin < end <= len(raw)
                others = bytes(255 - byte for byte in raw)
                raw[:begin], raw[end:] = others[:begin], others[end:]
                changed[name] = np.frombuffer(raw, given[name].dtype).reshape(given[name].shape)
        if any(not np.array_equal(changed[name], given[name]) for name in given):
            outputs = reference_outputs(graph, tuple(given.values()))
            again = reference_outputs(graph, tuple(changed.values()))
            assert all(map(np.array_equal, outputs, again))
