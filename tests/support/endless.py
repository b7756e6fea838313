"""Files with a loop that never ends."""

from __future__ import annotations

from typing import Any

import ai_edge_litert.schema_py_generated as schema
from onnx import TensorProto, checker, helper

from tests.support.tflite_subgraphs import File


def endless_loop() -> bytes:
    """While x < 1: x = x + 0. For x = 0 it never ends, which no reader can know; x = 1 does."""
    file = File()
    main, condition, body = (file.subgraph() for _ in range(3))
    x, y = main.tensor([1]), main.tensor([1])
    main.inputs.append(x)
    options: Any = schema.WhileOptionsT()
    options.condSubgraphIndex, options.bodySubgraphIndex = condition.number, body.number
    main.op("WHILE", [x], [y], options)
    main.outputs.append(y)
    x, below = condition.tensor([1]), condition.tensor([1], "bool")
    condition.inputs.append(x)
    limit = condition.constant([1.0], "float32")
    condition.op("LESS", [x, limit], [below], schema.LessOptionsT())
    condition.outputs.append(below)
    x, following = body.tensor([1]), body.tensor([1])
    body.inputs.append(x)
    zero = body.constant([0.0], "float32")
    body.op("ADD", [x, zero], [following], schema.AddOptionsT())
    body.outputs.append(following)
    return file.data()


def endless_onnx_loop() -> bytes:
    """The same in ONNX: while x < 1: x = x + 0."""

    def value(name: str, kind: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, kind, [1] if kind == TensorProto.FLOAT else [])

    def scalar(name: str, data: float) -> Any:
        return helper.make_tensor(name, TensorProto.FLOAT, [1], [data])

    body = helper.make_graph(
        [
            helper.make_node("Add", ["before", "zero"], ["after"]),
            helper.make_node("Less", ["after", "limit"], ["each"]),
            helper.make_node("Squeeze", ["each"], ["again"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            value("on", TensorProto.BOOL),
            value("before"),
        ],
        [value("again", TensorProto.BOOL), value("after")],
        [scalar("zero", 0.0), scalar("limit", 1.0)],
    )
    always = helper.make_tensor("always", TensorProto.BOOL, [], [True])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["", "always", "x"], ["y"], body=body)],
        "endless",
        [value("x")],
        [value("y")],
        [always],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    return bytes(model.SerializeToString())
