"""What reading a TFLite file computes itself: constant outputs, tensors of no elements."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest

from tests.pure.test_tflite_control import agree
from tests.support.tflite_subgraphs import File
from toolchain.frontends import load_model
from toolchain.frontends.front_end import Reading
from toolchain.ir import Quantisation
from toolchain.reference import TfliteReference, open_reference


def with_constant_outputs() -> bytes:
    """|x|, a sum of constants, which an operator reads too, and a constant of the file."""
    file = File()
    main = file.subgraph()
    x, y, z = main.tensor((1, 3)), main.tensor((1, 3)), main.tensor((1, 3))
    total, stored = main.tensor((3,)), main.constant([1.5, 2.0, 3.0], "float32")
    parts = [main.constant([1.0, 2.0, 3.0], "float32"), main.constant([4.0], "float32")]
    main.op("ABS", [x], [y])
    main.op("ADD", parts, [total], schema.AddOptionsT())
    main.op("MUL", [y, total], [z], schema.MulOptionsT())
    main.inputs.append(x)
    main.outputs.extend([z, total, stored])
    return file.data()


def test_outputs_may_be_constants(tmp_path: Path) -> None:
    data = with_constant_outputs()
    graph = agree(data)
    assert [op.kind for op in graph.ops].count("add") == 0
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    assert load_model(path, Reading(allow_float=True)).outputs == graph.outputs
    reference = open_reference(path)
    assert isinstance(reference, TfliteReference)
    found = reference.run([np.float32([[-1, 2, -3]])])
    np.testing.assert_array_equal(found[0], np.float32([[5, 12, 21]]))
    np.testing.assert_array_equal(found[1], np.float32([5, 6, 7]))
    np.testing.assert_array_equal(found[2], np.float32([1.5, 2, 3]))


def test_a_quotient_of_constants_is_clamped_as_its_activation_says() -> None:
    file = File()
    main = file.subgraph()
    x, quotient, y = (main.tensor((2,), "int32") for _ in range(3))
    options = schema.DivOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.RELU
    main.op("DIV", [main.constant([-7, 9]), main.constant([2, 2])], [quotient], options)
    main.op("ADD", [x, quotient], [y], schema.AddOptionsT())
    main.inputs.append(x)
    main.outputs.append(y)
    agree(file.data())


def replacing(dtype: str, quantised: Quantisation | None, *, strided: bool) -> bytes:
    """A loop that replaces one of 4 rows each turn, as TensorFlow's lists do.

    It joins the rows before it, the new one, and those behind it: in the first turn there is none
    before, and in the last one none behind.
    """
    file = File()
    main, condition, body = (file.subgraph() for _ in range(3))
    rows, taken = main.tensor([4, 3], dtype, None, quantised), [1, 2]
    ends = [main.tensor([], "int32"), main.tensor([4, 3], dtype, None, quantised)]
    options = schema.WhileOptionsT()
    options.condSubgraphIndex, options.bodySubgraphIndex = taken
    main.op("WHILE", [main.constant(0), rows], ends, options)
    main.inputs.append(rows)
    main.outputs.append(ends[1])

    step = condition.tensor([], "int32")
    condition.inputs.extend([step, condition.tensor([4, 3], dtype, None, quantised)])
    condition.outputs.append(condition.tensor([], "bool"))
    limits = [step, condition.constant(4)]
    condition.op("LESS", limits, condition.outputs, schema.LessOptionsT())

    step, rows = body.tensor([], "int32"), body.tensor([4, 3], dtype, None, quantised)
    after = body.tensor([], "int32")
    body.op("ADD", [step, body.constant(1)], [after], schema.AddOptionsT())

    def pair(first: int, second: int) -> int:
        packed = body.tensor([2], "int32")
        options = schema.PackOptionsT()
        options.valuesCount, options.axis = 2, 0
        body.op("PACK", [first, body.constant(second)], [packed], options)
        return packed

    def cut(begin: int, end: int, count: int) -> int:
        part = body.tensor([1, 3], dtype, None, quantised)
        body.written.tensors[part].shapeSignature = [-1, 3]
        if strided:
            operands = [rows, pair(begin, 0), pair(end, 3), body.constant([1, 1])]
            body.op("STRIDED_SLICE", operands, [part], schema.StridedSliceOptionsT())
        else:
            operands = [rows, pair(begin, 0), pair(count, 3)]
            body.op("SLICE", operands, [part], schema.SliceOptionsT())
        return part

    before, row = cut(body.constant(0), step, step), cut(step, after, body.constant(1))
    behind = cut(after, body.constant(4), body.constant(-1))
    clamped, twice, joined = (body.tensor([1, 3], dtype, None, quantised) for _ in range(3))
    body.written.tensors[clamped].shapeSignature = [-1, 3]
    body.written.tensors[joined].shape = [4, 3]
    body.op("RELU", [behind], [clamped])
    body.op("ADD", [row, row], [twice], schema.AddOptionsT())
    options = schema.ConcatenationOptionsT()
    options.axis = 0
    body.op("CONCATENATION", [before, twice, clamped], [joined], options)
    body.inputs.extend([step, rows])
    body.outputs.extend([after, joined])
    return file.data()


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize(
    ("dtype", "quantised"), [("float32", None), ("int8", Quantisation((0.5,), (3,)))]
)
def test_parts_of_no_elements_fall_away(
    dtype: str, quantised: Quantisation | None, strided: bool
) -> None:
    graph = agree(replacing(dtype, quantised, strided=strided))
    kinds = Counter(op.kind for op in graph.ops)
    assert (kinds["concat"], kinds["slice"], kinds["relu"]) == (4, 10, 3)
