"""Constants whose scale is 0, as converters write the first state of a recurrent layer.

ADD and SUB of one are not compared: LiteRT aborts there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest

from tests.support.host import run_graph_on_host
from tests.support.litert import run_litert
from tests.support.tflite_subgraphs import File
from toolchain.errors import InputError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import Quantisation
from toolchain.passes import prepare

SCALED, NONE = Quantisation((0.05,), (3,)), Quantisation((0.0,), (0,))


def model(builtin: str, options: Any, data: int, *, constant: bool = True) -> bytes:
    """x with a constant of scale 0, which holds `data` throughout."""
    file = File()
    main = file.subgraph()
    x, y = main.tensor((1, 6), "int8", None, SCALED), main.tensor((1, 6), "int8", None, SCALED)
    zero = main.tensor((1, 6), "int8", data if constant else None, NONE)
    main.inputs.extend([x] if constant else [x, zero])
    main.op(builtin, [x, zero], [y], options)
    main.outputs.append(y)
    if builtin == "FULLY_CONNECTED":  # the state times weights; then x is added
        main.written.operators.clear()
        file.model.operatorCodes.clear()
        weights = main.tensor((6, 6), "int8", 5, Quantisation((0.02,), (0,)))
        bias = main.tensor((6,), "int32", 0, NONE)
        made = main.tensor((1, 6), "int8", None, SCALED)
        main.op(builtin, [zero, weights, bias], [made], options)
        main.op("ADD", [x, made], [y], schema.AddOptionsT())
    return file.data()


@pytest.mark.parametrize("data", [0, 7, -128])
@pytest.mark.parametrize(
    ("builtin", "options"),
    [
        ("MUL", schema.MulOptionsT()),
        ("FULLY_CONNECTED", schema.FullyConnectedOptionsT()),
    ],
)
def test_it_stands_for_zero(builtin: str, options: Any, data: int) -> None:
    file = model(builtin, options, data)
    x = np.random.default_rng(2).integers(-128, 128, (1, 6)).astype(np.int8)
    graph = prepare(FRONT_END.read(file, Path("zero.tflite"))).graph
    np.testing.assert_array_equal(run_graph_on_host(graph, (x,))[0], run_litert(file, [x])[0])


def test_what_is_computed_needs_a_scale() -> None:
    with pytest.raises(InputError, match="a scale that is not a positive number"):
        FRONT_END.read(model("MUL", schema.MulOptionsT(), 0, constant=False), Path("zero.tflite"))
