"""Float32 kinds of two operands, every special value with every other: C, NumPy and LiteRT agree.

Bit for bit, with the sign of zero; POW and ATAN2 within two units in the last place where the
result is an ordinary number, since C libraries differ so far among themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from tests.support.host import reference_outputs, run_graphs_on_host
from tests.support.litert import run_litert
from tests.support.pairs import FLOAT_PAIRS, SPECIALS, all_attributes, equal_bits, pair
from tests.support.tflite_writer import tflite_bytes
from toolchain.frontends import load_model
from toolchain.ir import Graph
from toolchain.ops import forms
from toolchain.ops.spec import Array

Case = tuple[Graph, tuple[Array, Array]]
OWN_FUNCTIONS = ("atan2", "pow")
UNITS = 2
ONE_EXPONENT = (1.0, 2.0, 3.0, 127.0, 2.000005, 2.0**23 + 1, 2.0**24, 2.0**31, 0.5, -1.0, -np.inf)
"""Whole ones are multiplied where one serves all bases, and clamped to finite numbers."""


def cases(kind: str) -> Iterator[Case]:
    """All pairs side by side, and by broadcasting; each exponent alone beside all bases."""
    spec = forms()[kind]
    rows, columns = (part.reshape(-1) for part in np.meshgrid(SPECIALS, SPECIALS, indexing="ij"))
    for attributes in all_attributes(spec):
        yield pair(spec, attributes, rows.shape, rows.shape), (rows, columns)
        if kind not in ("atan2", "prelu.float32"):  # LiteRT broadcasts neither so
            upright, flat = SPECIALS[:, None], SPECIALS[None]
            yield pair(spec, attributes, upright.shape, flat.shape), (upright, flat)
    if kind == "pow":  # other arithmetic where one exponent serves all
        for value in (*SPECIALS, *map(np.float32, ONE_EXPONENT)):
            one = np.full(1, value, np.float32)
            yield pair(spec, attributes, SPECIALS.shape, (1,)), (SPECIALS, one)


def near(got: Array, want: Array) -> bool:
    """Equal bits, or ordinary numbers within `UNITS` of each other."""
    same = equal_bits(got, want)
    ordinary = np.isfinite(got) & np.isfinite(want) & (np.sign(got) == np.sign(want)) & (want != 0)
    steps = np.abs(got.view(np.int32).astype(np.int64) - want.view(np.int32))
    return bool((same | (ordinary & (steps <= UNITS))).all())


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("kind", FLOAT_PAIRS)
def test_every_special_value_with_every_other(kind: str) -> None:
    compiled = []
    for graph, inputs in cases(kind):
        (wanted,) = reference_outputs(graph, inputs)
        compiled.append(((graph, inputs), wanted))
        if kind == "floor_div":  # LiteRT stops at a division by 0
            inputs = (inputs[0], np.where(inputs[1] == 0, np.float32(1), inputs[1]))
            (wanted,) = reference_outputs(graph, inputs)
        (theirs,) = run_litert(tflite_bytes(graph), inputs)
        theirs = theirs.reshape(wanted.shape)
        exact = kind not in OWN_FUNCTIONS
        told = graph.ops[0].attributes, graph.tensors["a"].shape, graph.tensors["b"].shape
        assert equal_bits(wanted, theirs).all() if exact else near(wanted, theirs), told
    results = run_graphs_on_host([case for case, _ in compiled])
    for ((graph, inputs), wanted), (got,) in zip(compiled, results, strict=True):
        assert equal_bits(got, wanted).all(), (graph.ops[0], inputs)


@pytest.mark.parametrize("kind", FLOAT_PAIRS)
def test_constants_give_the_same_bits_while_a_file_is_read(kind: str, tmp_path: Path) -> None:
    """Finite ones: a constant holds no others. No divisor is 0."""
    finite = SPECIALS[np.isfinite(SPECIALS)]
    divisors = finite[finite != 0] if "div" in kind or "mod" in kind else finite
    data = [part.reshape(-1) for part in np.meshgrid(finite, divisors, indexing="ij")]
    spec = forms()[kind]
    graph = pair(spec, next(iter(all_attributes(spec))), data[0].shape, data[1].shape)
    ends = {
        name: replace(graph.tensors[name], constant=part)
        for name, part in zip("ab", data, strict=True)
    }
    held = replace(graph, tensors=MappingProxyType({**graph.tensors, **ends}), inputs=())
    file = tmp_path / "model.tflite"
    file.write_bytes(tflite_bytes(held))
    (theirs,) = run_litert(file.read_bytes(), [])
    with np.errstate(all="ignore"):
        (got,) = reference_outputs(load_model(file), [])
    assert equal_bits(got, theirs).all() if kind not in OWN_FUNCTIONS else near(got, theirs)
