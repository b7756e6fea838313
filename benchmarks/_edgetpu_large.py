"""Large models for the stage planner, as graph summaries: some 2,000 operators each.

    .venv/bin/python benchmarks/_edgetpu_large.py DIR [--kinds residual,dense,...]

The families are those of published networks, continued to such depths; nothing is random.

residual     ResNet's bottlenecks with skip connections (He et al., 2015)
dense        DenseNet-BC's layers, each joined to all before it (Huang et al., 2016)
cells        NASNet-A's normal cells, which read the two cells before them (Zoph et al., 2017)
transformer  an encoder whose heads are operators of their own (Vaswani et al., 2017)
beyond       the same, wider: more parameters than sixteen caches hold
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.model.rules import broken_rules
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import plan

SMALLEST = ("{scratch}/models --kinds dense,cells --operators 100",)
OPERATORS = 2000
MOST_CPU_SECONDS = 10.0
"""Of a plan of 2,000 operators on 16 sticks."""

Shape = tuple[int, ...]


class Summary:
    """A summary under construction. Every method adds an operator and returns its output."""

    def __init__(self, name: str, shape: Shape) -> None:
        self.name = name
        self.tensors: list[dict[str, Any]] = []
        self.ops: list[dict[str, Any]] = []
        self.input = self._tensor("input", shape, "int8", False)

    def _tensor(self, name: str, shape: Shape, dtype: str, constant: bool) -> int:
        size = math.prod(shape) * (4 if dtype == "int32" else 1)
        self.tensors.append(
            {
                "name": name,
                "shape": list(shape),
                "dtype": dtype,
                "bytes": size,
                "is_param": constant,
            }
        )
        return len(self.tensors) - 1

    def shape(self, tensor: int) -> Shape:
        return tuple(self.tensors[tensor]["shape"])

    def op(
        self,
        kind: str,
        inputs: Sequence[int],
        shape: Shape,
        macs: int = 0,
        weights: Sequence[Shape] = (),
    ) -> int:
        """One operator; of `weights`, the first are int8 and a last of one dimension is a bias."""
        number = len(self.ops)
        constants = [
            self._tensor(f"{number}/{k}", s, "int32" if len(s) == 1 else "int8", True)
            for k, s in enumerate(weights)
        ]
        written = self._tensor(f"{kind.lower()}_{number}", shape, "int8", False)
        self.ops.append(
            {
                "type": kind,
                "inputs": [*inputs, *constants],
                "outputs": [written],
                "param_bytes": sum(self.tensors[c]["bytes"] for c in constants),
                "macs": macs,
            }
        )
        return written

    def conv(self, x: int, channels: int, kernel: int = 1, stride: int = 1) -> int:
        _, height, width, deep = self.shape(x)
        out = (1, -(-height // stride), -(-width // stride), channels)
        macs = math.prod(out) * kernel * kernel * deep
        return self.op("CONV_2D", [x], out, macs, [(channels, kernel, kernel, deep), (channels,)])

    def depthwise(self, x: int, kernel: int) -> int:
        shape = self.shape(x)
        macs = math.prod(shape) * kernel * kernel
        weights = [(1, kernel, kernel, shape[3]), (shape[3],)]
        return self.op("DEPTHWISE_CONV_2D", [x], shape, macs, weights)

    def dense(self, x: int, channels: int) -> int:
        shape = self.shape(x)
        macs = math.prod(shape) * channels
        weights = [(channels, shape[-1]), (channels,)]
        return self.op("FULLY_CONNECTED", [x], (*shape[:-1], channels), macs, weights)

    def matmul(self, x: int, y: int, columns: int) -> int:
        shape = self.shape(x)
        return self.op("BATCH_MATMUL", [x, y], (*shape[:-1], columns), math.prod(shape) * columns)

    def same(self, kind: str, *inputs: int) -> int:
        return self.op(kind, inputs, self.shape(inputs[0]))

    def scaled(self, kind: str, x: int) -> int:
        """`x` and a constant for each channel, as a normalisation is left behind."""
        return self.op(kind, [x], self.shape(x), weights=[(1, self.shape(x)[-1])])

    def concat(self, inputs: Sequence[int]) -> int:
        shape = self.shape(inputs[0])
        channels = sum(self.shape(x)[-1] for x in inputs)
        return self.op("CONCATENATION", inputs, (*shape[:-1], channels))

    def pool(self, x: int, stride: int) -> int:
        n, height, width, deep = self.shape(x)
        out = (n, -(-height // stride), -(-width // stride), deep)
        return self.op("AVERAGE_POOL_2D", [x], out)

    def classify(self, x: int, classes: int = 1000) -> dict[str, Any]:
        """The summary, with a mean and a classifier at its end."""
        mean = self.op("MEAN", [x], (1, self.shape(x)[-1]))
        logits = self.same("SOFTMAX", self.dense(mean, classes))
        return {
            "name": self.name,
            "tensors": self.tensors,
            "ops": self.ops,
            "inputs": [self.input],
            "outputs": [logits],
        }


def residual(operators: int = OPERATORS) -> dict[str, Any]:
    net = Summary("residual", (1, 224, 224, 3))
    x = net.op("MAX_POOL_2D", [net.conv(net.input, 64, 7, 2)], (1, 56, 56, 64))
    blocks = (operators - 8) // 4
    for stage, share in enumerate((0.1, 0.35, 0.4, 0.15)):
        wide = 48 << stage
        for block in range(round(blocks * share)):
            stride = 2 if stage and not block else 1
            inner = net.conv(net.conv(x, wide // 2), wide // 2, 3, stride)
            skip = x if block else net.conv(x, 2 * wide, 1, stride)
            x = net.same("ADD", net.conv(inner, 2 * wide), skip)
    return net.classify(x)


def dense(operators: int = OPERATORS) -> dict[str, Any]:
    net = Summary("dense", (1, 224, 224, 3))
    x = net.op("MAX_POOL_2D", [net.conv(net.input, 32, 7, 2)], (1, 56, 56, 32))
    layers = (operators - 16) // 6
    for stage, share in enumerate((0.08, 0.17, 0.45, 0.3)):
        for _ in range(round(layers * share)):
            small = net.conv(net.scaled("ADD", net.scaled("MUL", x)), 64)
            x = net.concat([x, net.conv(net.same("RELU", small), 16, 3)])
        if stage < 3:
            x = net.pool(net.conv(x, net.shape(x)[3] // 2), 2)
    return net.classify(x)


def cells(operators: int = OPERATORS) -> dict[str, Any]:
    net = Summary("cells", (1, 224, 224, 3))
    now = net.conv(net.pool(net.conv(net.input, 32, 3, 2), 2), 96)
    before = now

    def separable(x: int, kernel: int, channels: int) -> int:
        for _ in range(2):
            x = net.conv(net.depthwise(x, kernel), channels)
        return x

    number = (operators - 14) // 31
    for cell in range(number):
        third = 3 * cell // number
        channels = 64 << third
        if cell and third != 3 * (cell - 1) // number:
            now, before = net.pool(now, 2), net.pool(before, 2)
        h, last = net.conv(now, channels), net.conv(before, channels)
        pairs = [
            (separable(h, 3, channels), h),
            (separable(last, 3, channels), separable(h, 5, channels)),
            (net.pool(h, 1), last),
            (net.pool(last, 1), net.pool(last, 1)),
            (separable(last, 5, channels), separable(last, 3, channels)),
        ]
        joined = net.concat([last, *(net.same("ADD", *pair) for pair in pairs)])
        now, before = joined, now
    return net.classify(now)


def transformer(operators: int = 2000, heads: int = 8, wide: int = 512) -> dict[str, Any]:
    tokens = 128
    net = Summary(f"transformer_{wide}", (1, tokens, wide))
    x = net.scaled("ADD", net.input)

    def normalised(x: int) -> int:
        mean = net.op("MEAN", [x], (1, tokens, 1))
        apart = net.same("SQUARED_DIFFERENCE", x, mean)
        inverse = net.same("RSQRT", net.op("MEAN", [apart], (1, tokens, 1)))
        centred = net.same("MUL", net.same("SUB", x, mean), inverse)
        return net.scaled("ADD", net.scaled("MUL", centred))

    for _ in range((operators - 4) // (6 * heads + 22)):
        h = normalised(x)
        found = []
        for _ in range(heads):
            query, key, value = (net.dense(h, wide // heads) for _ in range(3))
            scores = net.same("SOFTMAX", net.matmul(query, key, tokens))
            found.append(net.matmul(scores, value, wide // heads))
        x = net.same("ADD", net.dense(net.concat(found), wide), x)
        inner = net.same("GELU", net.dense(normalised(x), 4 * wide))
        x = net.same("ADD", net.dense(inner, wide), x)
    return net.classify(x)


def beyond(operators: int = OPERATORS) -> dict[str, Any]:
    return transformer(operators, heads=12, wide=768)


KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "residual": residual,
    "dense": dense,
    "cells": cells,
    "transformer": transformer,
    "beyond": beyond,
}


def write(
    folder: Path, kinds: Sequence[str] = tuple(KINDS), operators: int = OPERATORS
) -> list[Path]:
    """The summaries as files, one for each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind in kinds:
        paths.append(folder / f"{kind}.json")
        paths[-1].write_text(json.dumps(KINDS[kind](operators)) + "\n")
    return paths


def large(
    console: Console, operators: int = OPERATORS, sticks: int = 16
) -> tuple[dict[str, Any], bool]:
    """Generated models, with what is proved of their plans."""
    good, rows = True, []
    table = Table(title=f"large models on {sticks} sticks")
    table.add_column("model")
    for heading in (
        "operators", "parameters MiB", "greedy ms", "contiguous ms", "period ms", "bound ms", "gap",
        "CPU s",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for path in write(Path(folder), operators=operators):
            graph = read_graph(path)
            periods: dict[str, float | None] = {}
            for objective in ("greedy", "contiguous"):
                given = plan([graph], sticks, Options(objective))
                runs = not broken_rules(graph, given.stage_of[0], sticks)
                periods[objective] = given.totals.period_ms if runs else None
            begin = time.process_time()
            found = plan([graph], sticks, Options())
            seconds = time.process_time() - begin
            proof = found.proofs[0]
            good &= all(p is None or proof.value <= p * (1 + 1e-9) for p in periods.values())
            good &= seconds <= MOST_CPU_SECONDS
            rows.append(
                {
                    "model": path.stem,
                    "operators": len(graph.ops),
                    "param_bytes": graph.param_bytes,
                    "sticks": sticks,
                    **{f"{name}_ms": value for name, value in periods.items()},
                    "period_ms": proof.value,
                    "bound_ms": proof.bound,
                    "gap": proof.gap,
                    "proved_optimal": proof.optimal,
                    "cpu_seconds": seconds,
                }
            )
            told = ["-" if p is None else f"{p:.2f}" for p in periods.values()]
            table.add_row(
                path.stem,
                f"{len(graph.ops):,}",
                f"{graph.param_bytes / (1 << 20):.1f}",
                *told,
                f"{proof.value:.2f}",
                f"{proof.bound:.2f}",
                "optimal" if proof.optimal else f"{proof.gap:.1%}",
                f"{seconds:.1f}",
            )
    console.print(table)
    return {"rows": rows}, good


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--operators", type=int, default=OPERATORS)
    arguments = parser.parse_args()
    for path in write(arguments.folder, arguments.kinds.split(","), arguments.operators):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
