"""Random pipeline graphs, all plans of small ones, and stages run one after another."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from toolchain.edgetpu.model.graph import PipelineGraph, PipelineOp, PipelineTensor
from toolchain.edgetpu.model.rules import broken_rules
from toolchain.edgetpu.run.split import Segment


def random_graph(rng: random.Random, operators: int, name: str = "random") -> PipelineGraph:
    """A graph with branches, shared constants and, at times, a second input and output."""
    tensors = [PipelineTensor("input", rng.randrange(1, 60))]
    inputs = [0]
    if rng.random() < 0.2:
        tensors.append(PipelineTensor("input2", rng.randrange(1, 60)))
        inputs.append(1)
    constants: list[int] = []
    ops: list[PipelineOp] = []
    for index in range(operators):
        near = list(range(max(0, len(tensors) - 4), len(tensors)))
        taken = rng.sample(near, min(len(near), rng.choice((1, 1, 1, 2, 3))))
        own = []
        for _ in range(rng.choice((0, 1, 1, 2))):
            if constants and rng.random() < 0.25:
                own.append(rng.randrange(len(constants)))
            else:
                constants.append(rng.randrange(1, 100))
                own.append(len(constants) - 1)
        tensors.append(PipelineTensor(f"t{index}", rng.randrange(1, 60)))
        written = [len(tensors) - 1]
        if rng.random() < 0.15:
            tensors.append(PipelineTensor(f"u{index}", rng.randrange(1, 60)))
            written.append(len(tensors) - 1)
        ops.append(
            PipelineOp(
                "OP",
                tuple(sorted(taken)),
                tuple(written),
                tuple(dict.fromkeys(own)),
                rng.randrange(0, 1000),
                rng.randrange(0, 120),
            )
        )
    outputs = [ops[-1].outputs[0]]
    if rng.random() < 0.2:
        outputs.insert(0, ops[-2].outputs[0])
    return PipelineGraph(
        name, tuple(tensors), tuple(constants), tuple(ops), tuple(inputs), tuple(outputs)
    )


def all_plans(graph: PipelineGraph, stages: int) -> Iterator[tuple[int, ...]]:
    """Every assignment that keeps the rules."""
    for stage_of in itertools.product(range(stages), repeat=len(graph.ops)):
        if any(
            stage_of[before] > stage_of[index]
            for index, found in enumerate(graph.predecessors)
            for before in found
        ):
            continue
        anchored = {stage_of[index] for index in graph.anchored}
        if len(anchored) == stages and not broken_rules(graph, stage_of, stages):
            yield stage_of


def reference_interpreter(data: bytes) -> Any:
    interpreter = Interpreter(
        model_content=data,
        num_threads=1,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
    )
    interpreter.allocate_tensors()
    return interpreter


def random_inputs(interpreter: Any, rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    values = []
    for detail in interpreter.get_input_details():
        kind = np.dtype(detail["dtype"])
        if kind.kind in "iu":
            bounds = np.iinfo(kind)
            value = rng.integers(bounds.min, bounds.max, detail["shape"], kind, endpoint=True)
        else:
            value = rng.standard_normal(detail["shape"]).astype(kind)
        values.append(value)
    return values


def run_whole(interpreter: Any, values: Sequence[Any]) -> list[Any]:
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def run_chain(
    interpreters: Sequence[Any], segments: Sequence[Segment], values: Sequence[Any]
) -> list[Any]:
    """Stages one after another, joined by the names that the files themselves carry."""
    pool = dict(zip(segments[0].inputs, values, strict=True))
    result: list[Any] = []
    for interpreter in interpreters:
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], pool[detail["name"]])
        interpreter.invoke()
        details = interpreter.get_output_details()
        result = [interpreter.get_tensor(detail["index"]) for detail in details]
        pool.update({d["name"]: value for d, value in zip(details, result, strict=True)})
    return result
