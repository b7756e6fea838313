"""Operands of other shapes: what LiteRT takes is taken, with its numbers; the rest is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import random_inputs, reference_outputs
from tests.support.litert import graph_judged_by_reference_kernels, run_litert
from tests.support.pairs import Shape, all_attributes, of_two, pair
from tests.support.tflite_writer import tflite_bytes
from toolchain.errors import ThimbleError
from toolchain.frontends import load_model
from toolchain.ir import Graph
from toolchain.ops import forms
from toolchain.ops.elementwise.compare import Relation
from toolchain.ops.spec import Array

SHAPES: tuple[tuple[Shape, Shape], ...] = (
    *(((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 3), ()), ((2, 3), (1,))),
    *(((1,), (2, 3)), ((2, 1), (1, 3)), ((2, 3), (2, 1)), ((1, 3), (2, 3)), ((6,), (2, 3))),
    *(((2, 3), (3, 2)), ((4,), (2,)), ((2, 1, 2, 3, 2), (2, 3, 2, 3, 2))),
    *(((2, 3, 2, 3, 2), (1, 3, 1, 3, 2)), ((2, 3, 2, 3, 2), (2,))),
    *(((2, 1, 2, 1, 2, 2), (2, 3, 1, 2, 2, 2)), ((2,) * 7, (1, 2, 1, 2, 1, 2, 1))),
)
READS_BEYOND = ("atan2",)
"""LiteRT compares ranks alone, and reads where the second operand has ended: it has no numbers."""
LAST_BITS = 1e-5


def sample(kind: str, one: Shape, two: Shape) -> Graph:
    spec = forms()[kind]
    given = all_attributes(spec)
    attributes = next(a for a in given if getattr(a, "relation", 0) in (0, Relation.EQUAL))
    return pair(spec, attributes, one, two)


KINDS = sorted(
    kind
    for kind, spec in forms().items()
    if spec.tflite is not None
    and any(of_two(spec, dtype) for dtype in spec.dtypes)
    and graph_judged_by_reference_kernels(sample(kind, (2, 3), (2, 3)))
)


def given(graph: Graph) -> list[Array]:
    """Random inputs, the second without the zero at which divisions stop."""
    first, second = random_inputs(graph, np.random.default_rng(3))
    b = graph.tensors["b"]
    zero = 0 if b.quantisation is None else b.q.zero_point
    beside = second.dtype.type(zero - 1 if zero > 0 else zero + 1)
    return [first, np.asarray(np.where(second == zero, beside, second))]


def by_litert(data: bytes, inputs: Sequence[Array]) -> Array | None:
    """None where it refuses the file."""
    try:
        (found,) = run_litert(data, inputs)
    except (RuntimeError, ValueError):
        return None
    return found


def by_thimble(data: bytes, inputs: Sequence[Array], file: Path) -> Array | None:
    file.write_bytes(data)
    try:
        graph = load_model(file)
    except ThimbleError:
        return None
    (found,) = reference_outputs(graph, inputs)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_litert_broadcasts_is_broadcast(kind: str, tmp_path: Path) -> None:
    for one, two in SHAPES:
        graph = sample(kind, one, two)
        data, inputs = tflite_bytes(graph), given(graph)
        want, got = by_litert(data, inputs), by_thimble(data, inputs, tmp_path / "model.tflite")
        if one != two and kind in READS_BEYOND:
            want = None
        assert (want is None) == (got is None), (one, two)
        if want is not None and got is not None:
            assert want.shape == got.shape, (one, two)
            close = LAST_BITS if got.dtype == np.float32 else 0
            np.testing.assert_allclose(got, want, rtol=close, err_msg=f"{one} {two}")


def test_the_kinds_are_those_of_two_operands() -> None:
    assert {"add", "atan2", "compare.bool", "floor_mod", "pow", "prelu.float32"} <= set(KINDS)
    assert len(KINDS) >= 35


def test_a_shape_that_litert_does_not_broadcast_is_told(tmp_path: Path) -> None:
    file = tmp_path / "model.tflite"
    file.write_bytes(tflite_bytes(sample("atan2", (2, 3), (2, 1))))
    with pytest.raises(ThimbleError, match=r"ATAN2 .*shape.*BROADCAST_TO"):
        load_model(file)
