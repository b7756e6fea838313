"""What a kernel touches, by its arguments, against its tensors: every kind, every operand."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from toolchain.boards import HOST, Core, board
from toolchain.codegen import generate
from toolchain.codegen.bounds import call_extents, check_call
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ir.verify import InvalidGraphError
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms, kernel_of
from toolchain.ops.check import check
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.extents import Extent
from toolchain.ops.kernel import Kernel, Row, Struct
from toolchain.ops.kernel import constant as given
from toolchain.ops.lowering import lower
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.preference import Preference
from toolchain.ops.resize.common import Resize
from toolchain.planner import plan_graph

CORES = (
    HOST,
    Core("cortex-m4", dsp=True, fpu=True),
    Core("cortex-m55", dsp=True, mve=True, fpu=True),
)
SAMPLES = 8
KINDS = sorted(set(forms()) - {"assign"})
"""An assign is always a view: it has no kernel."""


def _calls(kind: str) -> Iterator[tuple[Op, Graph, Kernel]]:
    """Every kernel that some core and preference choose for a sample, each once."""
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    for _ in range(SAMPLES):
        graph = forms()[kind].sample(rng)
        op = graph.ops[0]
        chosen = [(core, kernel_of(op, graph, core)) for core in CORES]
        tried = {(core, kernel.functions) for core, kernel in chosen}
        for core, preference in itertools.product(CORES, Preference):
            kernel = kernel_of(op, graph, core, preference)
            if (core, kernel.functions) not in tried:
                tried.add((core, kernel.functions))
                chosen.append((core, kernel))
        yield from ((op, graph, kernel) for _, kernel in chosen)


def _resized(graph: Graph, name: str, size_bytes: int) -> Graph | None:
    """The graph with a tensor of so many bytes; None where its elements do not fit in."""
    tensor = graph.tensors[name]
    elements, rest = divmod(size_bytes, tensor.dtype.size_bytes)
    if rest or elements < 1:
        return None
    data = None if tensor.constant is None else np.resize(tensor.constant, elements)
    changed = Tensor(name, (elements,), tensor.dtype, tensor.quantisation, data)
    return replace(graph, tensors=MappingProxyType({**graph.tensors, name: changed}))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_operand_that_is_too_small_is_refused(kind: str) -> None:
    """The kernel's arguments stay as they were: only a tensor shrinks (or an output grows)."""
    tried = 0
    for op, graph, lowering in _calls(kind):
        check_call(op, graph, lowering, {})
        found = call_extents(op, graph, lowering, {})
        ends = [(op.inputs[i], e.last, -1) for i, e in found.inputs.items()]
        ends += [
            (op.outputs[i], e.last, step) for i, e in found.outputs.items() for step in (-1, 1)
        ]
        assert len(found.outputs) == len(op.outputs)
        for name, last, step in ends:
            own = graph.tensors[name].dtype.size_bytes
            other = _resized(graph, name, last // own * own + step * own)
            if other is not None:
                tried += 1
                with pytest.raises(UnsupportedError, match=f"{op.name}.*{name}"):
                    check_call(op, other, lowering, {})
    assert tried >= SAMPLES


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_packed_constants_and_scratch_are_as_long_as_is_read(kind: str) -> None:
    for op, graph, lowering in _calls(kind):
        found = call_extents(op, graph, lowering, {})
        assert set(found.constants) == {constant.key for constant in lowering.constants}
        for place, constant in enumerate(lowering.constants):
            assert found.constants[constant.key] == constant.data.nbytes, constant.key
            short = given(constant.key, constant.data.reshape(-1)[:-1])
            constants = (*lowering.constants[:place], short, *lowering.constants[place + 1 :])
            with pytest.raises(UnsupportedError, match=constant.key):
                check_call(op, graph, replace(lowering, constants=constants), {})
        assert found.scratch == lowering.scratch_bytes
        if found.scratch:
            less = replace(lowering, scratch_bytes=lowering.scratch_bytes - 1)
            with pytest.raises(UnsupportedError, match="scratch"):
                check_call(op, graph, less, {})


def _with_number(kernel: Kernel, name: str, value: int) -> Kernel:
    """The kernel with one more argument."""
    call = kernel.calls[0]
    extra = {"extra": Struct("extra", {"row": Row((Struct("one", {name: value}),))})}
    return replace(kernel, calls=(replace(call, arguments={**call.arguments, **extra}),))


def test_an_argument_beyond_32_bits_is_refused() -> None:
    graph = forms()["add"].sample(np.random.default_rng(0))
    wide = _with_number(kernel_of(graph.ops[0], graph, HOST), "offset", 1 << 31)
    with pytest.raises(UnsupportedError, match=r"offset = 2,147,483,648"):
        check_call(graph.ops[0], graph, wide, {})


@pytest.mark.parametrize("shift", [-32, 32])
def test_a_shift_beyond_a_word_is_refused(shift: int) -> None:
    graph = forms()["add"].sample(np.random.default_rng(0))
    wrong = _with_number(kernel_of(graph.ops[0], graph, HOST), "shift", shift)
    with pytest.raises(UnsupportedError, match=f"shift = {shift} is no shift"):
        check_call(graph.ops[0], graph, wrong, {})


def _image_graph() -> tuple[Graph, Kernel]:
    q = forms()["add"].sample(np.random.default_rng(0)).tensors["y"].quantisation
    images = [Tensor(n, (1, 4, 3, 2), DType.INT8, q) for n in "xzy"]
    op = Op("add", "op", ("x", "z"), ("y",), Sum())
    graph = Graph.build("image", images, [op], ["x", "z"], ["y"])
    return graph, kernel_of(op, graph, HOST)


def test_a_kernel_that_knows_no_lines_may_not_have_an_image_whose_lines_lie_apart() -> None:
    graph, kernel = _image_graph()
    check_call(graph.ops[0], graph, kernel, {})
    with pytest.raises(UnsupportedError, match="'x'"):
        check_call(graph.ops[0], graph, kernel, {"x": 10})


@pytest.mark.parametrize(
    ("extent", "whole"),
    [
        (Extent(0, 8), True),
        (Extent(1, 8), False),
        (Extent(0, 8, touched=7), False),
        (Extent(0, 4, 4, 2), True),
        (Extent(0, 4, 5, 2), False),
    ],
)
def test_whole_extents_have_no_gap(extent: Extent, whole: bool) -> None:
    assert extent.whole is whole


def _dense(dtype: DType, *, keep_dims: bool, depth: int, outputs: int) -> Graph:
    """Weights of 3 units of depth 4; an input of 8 elements in rows of `depth`."""
    q = None if dtype is DType.FLOAT32 else Quantisation((0.5,), (0,))
    kept = np.float32 if q is None else np.int8
    weights = np.ones((3, 4), kept)
    tensors = [
        Tensor("x", (8 // depth, depth), dtype, q),
        Tensor("weights", (3, 4), dtype if q is None else DType.INT8, q, weights),
        Tensor("y", (outputs // 3, 3), dtype, q),
    ]
    attributes = FullyConnected(keep_dims=keep_dims)
    op = Op("fully_connected", "fc", ("x", "weights"), ("y",), attributes)
    return Graph.build("dense", tensors, [op], ["x"], ["y"])


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16, DType.FLOAT32])
def test_rows_that_are_kept_are_as_long_as_the_weights(dtype: DType) -> None:
    check(_dense(dtype, keep_dims=True, depth=4, outputs=6))
    check(_dense(dtype, keep_dims=False, depth=8, outputs=6))
    with pytest.raises(InvalidGraphError, match="not 4 long"):
        check(_dense(dtype, keep_dims=True, depth=8, outputs=3))
    with pytest.raises(InvalidGraphError, match="not 4 long"):
        check(_dense(dtype, keep_dims=True, depth=2, outputs=12))


@pytest.mark.parametrize("outputs", [3, 9])
def test_the_planner_and_the_generator_refuse_what_no_shape_rule_has_seen(outputs: int) -> None:
    """A graph whose output is smaller, or larger, than what is computed: no verifier ran."""
    wrong = _dense(DType.INT8, keep_dims=False, depth=8, outputs=outputs)
    with pytest.raises(UnsupportedError, match=r"'fc' \(fully_connected\): its kernel writes.*'y'"):
        plan_graph(wrong, board("netduinoplus2"))
    sound = plan_graph(_dense(DType.INT8, keep_dims=False, depth=8, outputs=6), board("host"))
    with pytest.raises(UnsupportedError, match="writes bytes 0 to 6 of output 'y'"):
        generate(replace(sound, lowered=lower(wrong, HOST)), HOST, cmsis_nn.find())


@pytest.mark.parametrize(
    "kind", ["resize_bilinear", "resize_bilinear.int16", "resize_bilinear.float32"]
)
def test_corners_and_centres_at_once_are_refused(kind: str) -> None:
    graph = forms()[kind].sample(np.random.default_rng(1))
    (op,) = graph.ops
    assert isinstance(op.attributes, Resize)
    both = replace(op.attributes, align_corners=True, half_pixel_centers=True, legacy=False)
    with pytest.raises(InvalidGraphError, match="exclude each other"):
        check(replace(graph, ops=(replace(op, attributes=both),)))


def test_places_between_pixels_beyond_the_image_are_refused() -> None:
    """The kernel clamps each neighbour on one side: corners and centres lead it out."""
    images = [Tensor(n, (1, size, 1, 1), DType.FLOAT32) for n, size in (("x", 1000), ("y", 2))]
    attributes = Resize(2, 1, align_corners=True, half_pixel_centers=True)
    op = Op("resize_bilinear", "op", ("x",), ("y",), attributes)
    graph = Graph.build("both", images, [op], ["x"], ["y"])
    lowering = kernel_of(op, graph, HOST)
    with pytest.raises(UnsupportedError, match="reads bytes 1,996 to 5,996 of input 'x'"):
        check_call(op, graph, lowering, {})
