"""Stages of real .tflite files, run one after another, against the whole file."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from rich.console import Console
from rich.table import Table
from tflite_micro.python.tflite_micro import runtime

from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.model.rules import broken_rules
from toolchain.edgetpu.plan.demand import ORDERS, Options
from toolchain.edgetpu.plan.planner import plan
from toolchain.edgetpu.run.split import Segment, split_file
from toolchain.errors import ThimbleError

STAGES = (2, 3, 4)
OBJECTIVES = ("greedy", "contiguous", *ORDERS, "period")
CRASHES_LITERT = "tflm_keyword_scrambled_8bit"
"""LiteRT corrupts its heap on the whole file; TFLM runs it."""
_MICRO_ARENA_BYTES = 8 << 20


class _Engine(Protocol):
    """Runs one file: values in the order of its inputs to values in the order of its outputs."""

    def inputs(self) -> list[tuple[tuple[int, ...], np.dtype[Any]]]: ...

    def run(self, values: list[Any]) -> list[Any]: ...


class _LiteRT:
    """LiteRT's reference kernels."""

    def __init__(self, data: bytes) -> None:
        self._interpreter = Interpreter(
            model_content=data,
            num_threads=1,
            experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        )
        self._interpreter.allocate_tensors()

    def inputs(self) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        found = self._interpreter.get_input_details()
        return [(tuple(detail["shape"]), np.dtype(detail["dtype"])) for detail in found]

    def names(self) -> tuple[list[str], list[str]]:
        found = self._interpreter
        return (
            [detail["name"] for detail in found.get_input_details()],
            [detail["name"] for detail in found.get_output_details()],
        )

    def run(self, values: list[Any]) -> list[Any]:
        interpreter = self._interpreter
        for detail, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


class _Micro:
    """TFLM's reference kernels, for what LiteRT does not take."""

    def __init__(self, data: bytes, ends: tuple[int, int]) -> None:
        self._interpreter = runtime.Interpreter.from_bytes(data, arena_size=_MICRO_ARENA_BYTES)
        self._ends = ends

    def inputs(self) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        found = [self._interpreter.get_input_details(i) for i in range(self._ends[0])]
        return [(tuple(detail["shape"]), np.dtype(detail["dtype"])) for detail in found]

    def run(self, values: list[Any]) -> list[Any]:
        for index, value in enumerate(values):
            self._interpreter.set_input(value, index)
        self._interpreter.invoke()
        return [np.array(self._interpreter.get_output(i)) for i in range(self._ends[1])]


def _engine(data: bytes, ends: tuple[int, int], micro: bool) -> _Engine:
    return _Micro(data, ends) if micro else _LiteRT(data)


def _random(engine: _Engine, count: int) -> list[list[Any]]:
    rng = np.random.default_rng(1)
    frames = []
    for _ in range(count):
        values: list[Any] = []
        for shape, kind in engine.inputs():
            if kind.kind in "iu":
                bounds = np.iinfo(kind)
                values.append(rng.integers(bounds.min, bounds.max, shape, kind, endpoint=True))
            else:
                values.append(rng.standard_normal(shape).astype(kind))
        frames.append(values)
    return frames


class _Chains:
    """Runs segments over all frames; a segment that several splits share runs once."""

    def __init__(self, frames: list[list[Any]], micro: bool) -> None:
        self._frames, self._micro = frames, micro
        self._known: dict[bytes, list[list[Any]]] = {}

    def outputs(self, segments: tuple[Segment, ...]) -> list[list[bytes]]:
        """Outputs for each frame, segments joined by the names in their files."""
        pools = [dict(zip(segments[0].inputs, values, strict=True)) for values in self._frames]
        for segment in segments:
            given = [[pool[name] for name in segment.inputs] for pool in pools]
            for pool, found in zip(pools, self._run(segment, given), strict=True):
                pool |= dict(zip(segment.outputs, found, strict=True))
        return [[pool[name].tobytes() for name in segments[-1].outputs] for pool in pools]

    def _run(self, segment: Segment, given: list[list[Any]]) -> list[list[Any]]:
        digest = hashlib.sha256(segment.data)
        for value in (value for values in given for value in values):
            digest.update(value.tobytes())
        key = digest.digest()
        if key not in self._known:
            ends = (len(segment.inputs), len(segment.outputs))
            engine = _engine(segment.data, ends, self._micro)
            names = (list(segment.inputs), list(segment.outputs))
            if isinstance(engine, _LiteRT) and engine.names() != names:
                raise AssertionError(f"a file's ends are {engine.names()}, not {names}")
            self._known[key] = [engine.run(values) for values in given]
        return self._known[key]


def files(console: Console, shared: Path, inputs: int) -> tuple[dict[str, Any], bool]:
    """Every objective, 2 to 4 stages: do the stages give the bytes of the whole file?"""
    table = Table(title=f"stages against the whole file, {inputs} inputs, reference kernels")
    for heading in ("file", "operators", "kernels", "splits", "differing", "stages B", "whole B"):
        table.add_column(heading, justify="left" if heading == "file" else "right")
    good, rows, skipped = True, [], []
    found = [*(shared / "edgetpu_models").glob("*.tflite"), *(shared / "models").glob("*.tflite")]
    for path in sorted(found):
        try:
            graph = read_graph(path)
        except ThimbleError as error:
            skipped.append(str(error).replace(str(path), path.name))
            continue
        data = path.read_bytes()
        micro = path.stem == CRASHES_LITERT
        ends = (len(graph.inputs), len(graph.outputs))
        try:
            whole = _engine(data, ends, micro)
        except (RuntimeError, ValueError):  # TFLM takes what LiteRT refuses
            micro = True
            whole = _engine(data, ends, micro)
        frames = _random(whole, inputs)
        whole = _engine(data, ends, micro)
        expected = [[value.tobytes() for value in whole.run(values)] for values in frames]
        chains = _Chains(frames, micro)
        known: dict[tuple[int, ...], int] = {}
        splits = differing = size = 0
        for stages in (n for n in STAGES if n <= len(graph.ops)):
            for objective in OBJECTIVES:
                stage_of = plan([graph], stages, Options(objective)).stage_of[0]
                if broken_rules(graph, stage_of, stages):  # greedy may break them
                    continue
                splits += 1
                if stage_of not in known:
                    segments = split_file(data, graph, stage_of, stages)
                    results = chains.outputs(segments)
                    known[stage_of] = sum(a != b for a, b in zip(results, expected, strict=True))
                    size = sum(len(segment.data) for segment in segments)
                differing += known[stage_of]
        good &= differing == 0
        rows.append({"file": path.name, "splits": splits, "differing": differing})
        table.add_row(
            path.name,
            str(len(graph.ops)),
            "TFLM" if micro else "LiteRT",
            str(splits),
            str(differing),
            f"{size:,}",
            f"{len(data):,}",
        )
        print(path.name, splits, differing, file=sys.stderr)
    console.print(table)
    for line in skipped:
        console.print(f"left out: {line}", markup=False, highlight=False, soft_wrap=True)
    return {"rows": rows, "left_out": skipped}, good
