"""ONE_HOT and matrices with a diagonal, read as choices by a mask, against LiteRT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest

from tests.support.litert import run_litert
from tests.support.tflite_subgraphs import File
from toolchain import passes
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import Quantisation
from toolchain.ops.interpret import interpret

PATH = Path("chosen.tflite")
Q = Quantisation((0.5,), (-3,))
RNG = np.random.default_rng(4)


def one_hot(
    shape: tuple[int, ...], depth: int, axis: int, indices: str, values: str, *, fed: bool = False
) -> bytes:
    """Values of int8 are quantised; `fed`: the depth is an input."""
    file = File()
    main = file.subgraph()
    q = Q if values == "int8" else None
    options: Any = schema.OneHotOptionsT()
    options.axis = axis
    x = main.tensor(shape, indices)
    count = main.tensor((), "int32", None if fed else depth)
    on, off = (main.tensor((), values, number, q) for number in (7, -2))
    place = axis if axis >= 0 else len(shape)
    y = main.tensor((*shape[:place], depth, *shape[place:]), values, None, q)
    main.op("ONE_HOT", [x, count, on, off], [y], options)
    main.inputs.extend([x, count] if fed else [x])
    main.outputs.append(y)
    return file.data()


def diagonal(
    operator: str, matrix: tuple[int, ...], line: tuple[int, ...], dtype: str = "float32"
) -> bytes:
    file = File()
    main = file.subgraph()
    q = Q if dtype == "int8" else None
    old, own = (main.tensor(shape, dtype, None, q) for shape in (matrix, line))
    y = main.tensor(matrix, dtype, None, q)
    given = [own] if operator == "MATRIX_DIAG" else [old, own]
    options = schema.MatrixDiagOptionsT if len(given) == 1 else schema.MatrixSetDiagOptionsT
    main.op(operator, given, [y], options())
    main.inputs.extend(given)
    main.outputs.append(y)
    return file.data()


@pytest.mark.parametrize("indices", ["int32", "int64"])
@pytest.mark.parametrize("values", ["float32", "int32", "int8", "bool"])
@pytest.mark.parametrize(("shape", "axis"), [((3,), -1), ((2, 5), 0), ((2, 5), 1), ((), -1)])
def test_one_hot(shape: tuple[int, ...], axis: int, indices: str, values: str) -> None:
    """Indices outside of the depth choose nothing."""
    data = one_hot(shape, 6, axis, indices, values)
    x = RNG.integers(-2, 8, shape).astype(indices)
    graph = passes.prepare(FRONT_END.read(data, PATH)).graph
    np.testing.assert_array_equal(interpret(graph, [x])[0], run_litert(data, [x])[0])


@pytest.mark.parametrize(
    ("operator", "matrix", "line", "dtype"),
    [
        ("MATRIX_DIAG", (4, 4), (4,), "float32"),
        ("MATRIX_DIAG", (2, 3, 3), (2, 3), "int32"),
        ("MATRIX_DIAG", (3, 3), (3,), "int8"),
        ("MATRIX_SET_DIAG", (4, 4), (4,), "float32"),
        ("MATRIX_SET_DIAG", (2, 3, 5), (2, 3), "int8"),
        ("MATRIX_SET_DIAG", (2, 5, 3), (2, 3), "int64"),
    ],
)
def test_diagonals(
    operator: str, matrix: tuple[int, ...], line: tuple[int, ...], dtype: str
) -> None:
    data = diagonal(operator, matrix, line, dtype)
    graph = passes.prepare(FRONT_END.read(data, PATH)).graph
    shapes = [line] if operator == "MATRIX_DIAG" else [matrix, line]
    given = [RNG.integers(-100, 100, shape).astype(dtype) for shape in shapes]
    np.testing.assert_array_equal(interpret(graph, given)[0], run_litert(data, given)[0])


def test_a_depth_that_is_computed_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="its depth is computed at run time"):
        FRONT_END.read(one_hot((3,), 6, -1, "int32", "float32", fed=True), PATH)


def test_what_contradicts_itself_is_malformed() -> None:
    with pytest.raises(InputError, match="puts tensor_1"):
        FRONT_END.read(diagonal("MATRIX_SET_DIAG", (4, 4), (3,)), PATH)
