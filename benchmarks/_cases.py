"""Random single operators, plain ones and wild ones, and what their reference gives.

A wild case has scales that no converter would choose and zero points at the extremes: it must
either give the reference's bytes or be refused with a reason.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from tests.support.host import random_inputs
from tests.support.litert import judged_by_reference_kernels
from tests.support.tflite_writer import tflite_bytes
from toolchain.errors import ThimbleError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import Graph, Quantisation, Tensor
from toolchain.ops import forms
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array

TURNS = 2
"""Inferences of each case, one after the other: what keeps state goes on from the first."""
_WILD_SHARE = 0.3
_FIXED_SCALES = tuple(2.0**-bits for bits in (7, 8, 15))
"""Of outputs of functions whose range is known: other ones are refused, so they stay mostly."""
_BIAS = 2
_FOUR_BITS = frozenset({"conv2d", "depthwise_conv2d", "fully_connected"})
_FOUR_BIT_SHARE = 0.25

Values = tuple[Array, ...]


@dataclass(frozen=True)
class Case:
    """`graph` has one operator, as the front end reads it; `inputs` and `wanted`, a set a turn."""

    kind: str
    index: int
    graph: Graph
    inputs: tuple[Values, ...]
    wanted: tuple[Values, ...]

    def __str__(self) -> str:
        tensors = ", ".join(f"{t} {_brief(t)}" for t in self.graph.tensors.values())
        return f"{self.kind} case {self.index}: {self.graph.ops[0].attributes} of {tensors}"


def _brief(tensor: Tensor) -> str:
    q = tensor.quantisation
    if q is None or q.per_channel:
        return ""
    return f"({q.scale:g}, {q.zero_point})"


class RefusedCaseError(Exception):
    """A case that is not compared; the text says why, without names and numbers."""


def from_litert(kind: str) -> bool:
    """Whether LiteRT's kernels are the reference; else it is ours in NumPy."""
    return forms()[kind].tflite is not None and judged_by_reference_kernels(kind)


def reason(error: Exception) -> str:
    """The first line of an error with names and numbers left out, so that alike ones count as one.

    Of a model's refusal the second line, which names the operator and the reason.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[1] if len(lines) > 1 and "not supported" in lines[0] else (lines or [""])[0]
    text = re.sub(r"'[^']*'", "...", text)
    text = re.sub(r"-?\d[\d.,e+-]*", "N", text)
    return text[:100]


def sample(kind: str, index: int, seed: int) -> tuple[Graph, np.random.Generator]:
    """Case `index` of a kind and the generator to go on with; the same each time."""
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode()), index])
    graph = forms()[kind].sample(rng)
    if [op.kind for op in graph.ops] != [forms()[kind].kind]:
        raise ValueError(f"a sample of {kind} is {[op.kind for op in graph.ops]}")
    if kind in _FOUR_BITS and rng.random() < _FOUR_BIT_SHARE:
        graph = _with_four_bits(graph, rng)
    return (wild(graph, rng) if rng.random() < _WILD_SHARE else graph), rng


def _with_four_bits(graph: Graph, rng: np.random.Generator) -> Graph:
    tensors = dict(graph.tensors)
    shape = tensors["weights"].shape
    few = rng.integers(-8, 8, shape).astype(np.int8)
    tensors["weights"] = replace(tensors["weights"], constant=few)
    return replace(graph, tensors=tensors)


def int4_constants(kind: str, graph: Graph) -> tuple[str, ...]:
    """Names of the constants to write as int4."""
    data = graph.tensors["weights"].constant if kind in _FOUR_BITS else None
    few = data is not None and bool(data.size) and data.min() >= -8 and data.max() <= 7
    return ("weights",) if few else ()


def wild(graph: Graph, rng: np.random.Generator) -> Graph:
    """The graph with far other quantisations; tensors quantised alike stay alike."""
    chosen: dict[Quantisation, Quantisation] = {}
    reach = float(rng.choice([2, 6, 12, 20]))

    def other(tensor: Tensor) -> Tensor:
        q = tensor.quantisation
        if q is None or tensor.dtype.value not in ("int8", "int16"):
            return tensor
        if tensor.is_constant and (q.per_channel or not any(q.zero_points)):
            return tensor
        if q not in chosen:
            fixed = q.scale in _FIXED_SCALES and rng.random() < 0.8
            scale = q.scale if fixed else q.scale * float(2.0 ** rng.uniform(-reach, reach))
            zero = q.zero_points[0]
            if tensor.dtype.value == "int8" and not fixed:
                zero = int(rng.choice([-128, 127, 0, zero]))
            chosen[q] = Quantisation((float(np.float32(scale)),), (zero,))
        return replace(tensor, quantisation=chosen[q])

    tensors = {name: other(tensor) for name, tensor in graph.tensors.items()}
    (op,) = graph.ops
    bias = tensors[op.inputs[_BIAS]] if op.inputs[_BIAS:] and op.inputs[_BIAS] else None
    if "weights" in tensors and bias is not None and bias.quantisation is not None:
        weights = tensors["weights"].q
        x = next(tensors[n].q for n in op.inputs if n and not tensors[n].is_constant)
        scales = tuple(float(np.float32(x.scale) * np.float32(s)) for s in weights.scales)
        axis = None if len(scales) == 1 else 0
        q = Quantisation(scales, (0,) * len(scales), axis)
        tensors[bias.name] = replace(bias, quantisation=q)
    ends = graph.inputs, graph.outputs, graph.states
    return Graph.build(graph.name, tensors.values(), graph.ops, *ends)


def _inputs(graph: Graph, rng: np.random.Generator) -> Values:
    """Random values; at times only the ends of each type's range."""
    values = random_inputs(graph, rng)
    if rng.random() < 0.6:
        return values
    ends = []
    for name, value in zip(graph.inputs, values, strict=True):
        if value.dtype.kind == "i":
            info = np.iinfo(value.dtype)
            drawn = rng.choice([info.min, info.max, 0], value.shape, p=[0.45, 0.45, 0.1])
            value = drawn.astype(graph.tensors[name].dtype.numpy)
        ends.append(value)
    return tuple(ends)


class Reference:
    """LiteRT in a process of its own, since its kernels abort where they refuse; else NumPy."""

    def __init__(self) -> None:
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["ai_edge_litert.interpreter"])
        self._pool = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown()

    def _open(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, self._context, initializer=_quiet)

    def case(self, kind: str, index: int, seed: int) -> Case:
        """Case `index` of a kind. Raises RefusedCaseError where there is nothing to compare."""
        graph, rng = sample(kind, index, seed)
        inputs = tuple(_inputs(graph, rng) for _ in range(TURNS))
        if not from_litert(kind):
            try:
                return Case(kind, index, graph, inputs, _by_numpy(graph, inputs))
            except ThimbleError as error:
                raise RefusedCaseError(reason(error)) from error
        model = tflite_bytes(graph, int4_constants(kind, graph))
        try:
            read = FRONT_END.read(model, Path("case.tflite"))
        except ThimbleError as error:
            raise RefusedCaseError(reason(error)) from error
        try:
            wanted = self._pool.submit(_by_litert, model, inputs).result()
        except BrokenProcessPool as error:
            self._pool = self._open()
            raise RefusedCaseError("LiteRT aborts on it") from error
        except (RuntimeError, ValueError) as error:
            raise RefusedCaseError("LiteRT refuses it") from error
        return Case(kind, index, read, inputs, wanted)


def _by_numpy(graph: Graph, inputs: Sequence[Values]) -> tuple[Values, ...]:
    states: dict[str, Array] = {}
    return tuple(interpret(graph, given, states) for given in inputs)


def _quiet() -> None:
    """LiteRT writes to the standard error what it refuses."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _by_litert(model: bytes, inputs: Sequence[Values]) -> tuple[Values, ...]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=model,
        num_threads=1,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
    )
    interpreter.allocate_tensors()
    turns = []
    for given in inputs:
        for detail, value in zip(interpreter.get_input_details(), given, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        details = interpreter.get_output_details()
        turns.append(tuple(np.array(interpreter.get_tensor(d["index"])) for d in details))
    return tuple(turns)
