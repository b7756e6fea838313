"""TFLM_DECODE: constants that tflite-micro unpacks at run time are unpacked while reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.tflite_subgraphs import File
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.tflite import FRONT_END
from toolchain.frontends.tflite.compressed import decoded
from toolchain.frontends.tflite.file import read_file
from toolchain.ir import Quantisation
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array
from toolchain.reference.process import Runtime, RuntimeProcess, open_model

pytestmark = pytest.mark.slow

PATH = Path("compressed.tflite")
RNG = np.random.default_rng(8)
X = RNG.integers(-128, 128, (1, 4)).astype(np.int8)
LUT, HUFFMAN, PRUNED = 0, 1, 2


def file(
    packed: Array,
    header: list[int],
    table: Array,
    shape: tuple[int, ...],
    dtype: str,
    q: Quantisation | None = None,
) -> bytes:
    """A RELU, and beside it the constant as a second output."""
    made = File()
    main = made.subgraph()
    own = Quantisation((0.5,), (3,))
    x, y = (main.tensor(X.shape, "int8", None, own) for _ in range(2))
    ancillary = np.frombuffer(
        bytes([*header, *[0] * (16 - len(header))]) + np.ascontiguousarray(table).tobytes(),
        np.uint8,
    )
    data, beside = (main.tensor(d.shape, "uint8", d) for d in (packed, ancillary))
    w = main.tensor(shape, dtype, None, q)
    main.op("RELU", [x], [y])
    main.op("CUSTOM", [data, beside], [w])
    made.model.operatorCodes[-1].customCode = "TFLM_DECODE"
    if q is not None and q.axis is not None:
        written: Any = main.written.tensors[w]
        written.quantization.quantizedDimension = q.axis
    main.inputs.append(x)
    main.outputs.extend([y, w])
    return made.data()


def bits(values: Array, width: int) -> Array:
    """The low bits of each value, in a row, and zeros to whole words."""
    rows = (values.reshape(-1, 1) >> np.arange(width - 1, -1, -1)) & 1
    packed = np.packbits(rows.astype(np.uint8).reshape(-1))
    return np.append(packed, np.zeros(-packed.size % 4 + 4, np.uint8))


def check(data: bytes) -> None:
    pytest.importorskip("tflite_micro")
    process = RuntimeProcess()
    want = open_model(process, Runtime.TFLITE_MICRO, data, 2).run([X])
    model = read_file(data)
    packed, ancillary, output = (model.tensors[i].tensor for i in (2, 3, 4))
    assert packed is not None and ancillary is not None and output is not None
    np.testing.assert_array_equal(decoded(packed, ancillary, output), want[1])
    if output.quantisation is not None and output.quantisation.per_channel:
        return  # weights, which are no output of a model
    graph = FRONT_END.read(data, PATH)
    assert {op.kind for op in graph.ops} == {"relu", "reshape"}
    for ours, theirs in zip(interpret(graph, [X]), want, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("width", range(1, 8))
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_tables(width: int, dtype: str) -> None:
    stored = RNG.integers(-100, 100, 1 << width).astype(dtype)
    indices = RNG.integers(0, 1 << width, (5, 7))
    q = None if dtype == "float32" else Quantisation((0.5,), (0,))
    check(file(bits(indices, width), [LUT, 1, 0, 0, 1, width, 0], stored, (5, 7), dtype, q))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("width", [2, 3, 4, 5])
def test_tables_of_channels(axis: int, width: int) -> None:
    shape = (3, 40)
    count = shape[axis]
    stored = RNG.integers(-100, 100, (count, 1 << width)).astype(np.int8)
    indices = RNG.integers(0, 1 << width, shape)
    q = Quantisation(tuple(0.5 + i for i in range(count)), (0,) * count, axis)
    header = [LUT, 1, 0, 0, 1, width, 1 << width]
    check(file(bits(indices, width), header, stored, shape, "int8", q))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("zero", [0, -7])
def test_pruned(axis: int | None, zero: int) -> None:
    shape = (3, 10)
    kept = RNG.integers(0, 2, shape)
    values = RNG.integers(-100, 100, int(kept.sum())).astype(np.int8)
    count = 1 if axis is None else shape[axis]
    zeros = tuple(zero + i if zero else 0 for i in range(count))
    q = Quantisation(tuple(0.5 + i for i in range(count)), zeros, axis)
    check(file(bits(kept, 1), [PRUNED, 1, 0, 0, 1], values, shape, "int8", q))


@pytest.mark.parametrize(("dtype", "wide"), [("int8", 0), ("int8", 1), ("int16", 1)])
def test_huffman(dtype: str, wide: int) -> None:
    """Codes 0, 10, 110 and 111: two bits at first, then one more."""
    codes, symbols = ([0], [1, 0], [1, 1, 0], [1, 1, 1]), (5, -3, 100, -128)
    flag, shift = 1 << (31 if wide else 15), 27 if wide else 11
    mask = (1 << (16 if dtype == "int16" else 8)) - 1

    def leaf(symbol: int, used: int) -> int:
        return flag | used << shift | (symbols[symbol] & mask)

    entries = [leaf(0, 1), leaf(0, 1), leaf(1, 2), 1, leaf(2, 1), leaf(3, 1)]
    table = np.array(entries, np.uint32 if wide else np.uint16)
    chosen = RNG.choice(4, 200, p=[0.5, 0.2, 0.2, 0.1])
    stream = np.array([bit for symbol in chosen for bit in codes[symbol]])
    header = [HUFFMAN, 1, 0, 0, 1, 1 << 4 | wide]
    q = Quantisation((0.5,), (0,))
    data = file(bits(stream, 1), header, table, (200,), dtype, q)
    check(data)
    graph = FRONT_END.read(data, PATH)
    np.testing.assert_array_equal(interpret(graph, [X])[1], np.array(symbols)[chosen])


def test_damaged_data_are_malformed() -> None:
    short = np.zeros(1, np.uint8)
    for header in ([LUT, 1, 0, 0, 1, 4, 0], [PRUNED, 1, 0, 0, 1], [HUFFMAN, 1, 0, 0, 1, 16]):
        data = file(short, header, np.zeros(4, np.int8), (30,), "int8", Quantisation((1.0,), (0,)))
        with pytest.raises(InputError, match="do not fill"):
            FRONT_END.read(data, PATH)


def test_another_form_is_refused() -> None:
    data = file(X[0].view(np.uint8), [127, 1, 0, 0, 1], X, (4,), "float32")
    with pytest.raises(UnsupportedError, match="form 127"):
        FRONT_END.read(data, PATH)
