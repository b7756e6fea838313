"""A TFLite file with a loop that never ends."""

from __future__ import annotations

from typing import Any

import ai_edge_litert.schema_py_generated as schema

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
