"""Edge TPU pipelines: ours beside the published figures, in one run.

    .venv/bin/python benchmarks/edgetpu.py [--parts A,B] [--networks N,M] [--sticks K,L]
                                           [--inputs 20] [--shared DIR] [--json F]

Parts: networks (eleven networks, 2 to 6 sticks, every objective), tables (predictions against
published measurements), large (generated models of 2,000 operators on 16 sticks), together (several
models on the same sticks), rates (latency of models with requests, beside other plans), files
(stages of real .tflite files against the whole), faults (a
pipeline on this machine with injected faults), refusals.
DIR has `edgetpu_graphs/`, `edgetpu_models/` and `models/`: by default ../shared.
Nothing here runs on a stick.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # times of processors are those of one core

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._edgetpu_files import files
from benchmarks._edgetpu_large import OPERATORS, large
from benchmarks._edgetpu_rates import rates
from benchmarks._results import json_option, write_results
from toolchain.edgetpu.model.figures import EdgeTpuCost, measure
from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.model.rules import broken_rules
from toolchain.edgetpu.plan.demand import ORDERS, Options
from toolchain.edgetpu.plan.planner import apart, plan
from toolchain.edgetpu.run.runner import Pipeline, StageError
from toolchain.errors import ThimbleError

SMALLEST = (
    "--parts faults",
    "--parts refusals --shared {shared}",
    "--parts large --operators 260",
    "--parts networks --networks ResNet50 --sticks 2 --shared {shared}",
    "--parts rates --networks ResNet50 --shared {shared}",
)
SHARED = Path(__file__).resolve().parents[2] / "shared"
MIB = 1 << 20
STICKS = (2, 3, 4, 5, 6)
PARTS = ("networks", "tables", "large", "together", "rates", "files", "faults", "refusals")

PUBLISHED_OPTIMA_MIB = {
    "ResNet50": (12.48, 8.68, 6.27, 5.21, 4.52),
    "Xception": (11.03, 7.43, 5.72, 4.96, 4.50),
    "ResNet101": (21.34, 14.33, 10.86, 9.02, 7.22),
    "ResNet152": (28.82, 19.23, 14.58, 11.64, 9.73),
    "ResNet50V2": (12.50, 8.70, 6.27, 5.22, 4.53),
    "ResNet101V2": (21.36, 14.36, 10.87, 9.03, 7.24),
    "DenseNet121": (3.86, 2.56, 1.95, 1.56, 1.32),
    "DenseNet169": (6.77, 4.56, 3.41, 2.74, 2.30),
    "DenseNet201": (10.04, 6.48, 5.03, 3.88, 3.39),
    "ResNet152V2": (28.85, 19.27, 14.60, 11.66, 9.74),
    "InceptionResNetV2": (26.81, 17.89, 13.44, 10.81, 9.11),
}
TABLE_1_MS = {
    "ResNet101": (80.7, 68.6, 48.6, 32.8, 14.2),
    "ResNet152": (115.1, 104.5, 84.5, 66.8, 50.4),
}


def networks(
    console: Console, graphs: Path, names: list[str], numbers: Sequence[int]
) -> tuple[dict[str, Any], bool]:
    """Every objective on every network, with what is proved and how long it took."""
    rows: list[dict[str, Any]] = []
    good = True
    for name in names:
        graph = read_graph(graphs / f"{name}.json")
        table = Table(title=f"{name}: {len(graph.ops)} operators, {graph.param_bytes:,} B")
        table.add_column("sticks", justify="right")
        table.add_column("objective")
        for heading in ("largest stage MiB", "anchor", "spill B", "comm B", "period ms", "s"):
            table.add_column(heading, justify="right")
        table.add_column("proved")
        for sticks in numbers:
            periods = {}
            for objective in ("greedy", "contiguous", *ORDERS, "period"):
                begin = time.process_time()
                found = plan([graph], sticks, Options(objective))
                cpu_seconds = time.process_time() - begin
                totals = found.totals
                periods[objective] = totals.period_ms
                anchor = ""
                if objective.startswith("params"):
                    published = PUBLISHED_OPTIMA_MIB[name][sticks - 2]
                    anchor = f"{published:.2f}"
                    good &= round(totals.max_stage_bytes / MIB, 2) == published
                baseline = objective in ("greedy", "contiguous")
                good &= baseline or found.proved_optimal
                rows.append(
                    {
                        "network": name,
                        "sticks": sticks,
                        "objective": objective,
                        "max_stage_bytes": totals.max_stage_bytes,
                        "spill_bytes": totals.spill_bytes,
                        "communication_bytes": totals.communication_bytes,
                        "period_ms": totals.period_ms,
                        "proved_optimal": found.proved_optimal,
                        "seconds": found.seconds,
                        "cpu_seconds": cpu_seconds,
                    }
                )
                table.add_row(
                    str(sticks),
                    objective,
                    f"{totals.max_stage_bytes / MIB:.2f}",
                    anchor,
                    f"{totals.spill_bytes:,}",
                    f"{totals.communication_bytes:,}",
                    f"{totals.period_ms:.2f}",
                    f"{found.seconds:.2f}",
                    "" if baseline else ("optimal" if found.proved_optimal else "no"),
                )
            least = min(periods["greedy"], periods["contiguous"])
            good &= periods["period"] <= least * (1 + 1e-9)
        console.print(table)
    exact = [row for row in rows if row["objective"] not in ("greedy", "contiguous")]
    seconds = [row["seconds"] for row in exact]
    cpu = [row["cpu_seconds"] for row in exact]
    greedy = {(r["network"], r["sticks"]): r for r in rows if r["objective"] == "greedy"}
    fan_out = _fan_out(graphs, names, numbers)
    gains = {
        objective: [
            greedy[r["network"], r["sticks"]]["period_ms"] / r["period_ms"]
            for r in rows
            if r["objective"] == objective
        ]
        for objective in ("contiguous", *ORDERS, "period")
    }
    proved = sum(r["proved_optimal"] for r in exact)
    console.print(
        f"{len(exact)} exact plans, {proved} proved optimal; "
        f"{np.mean(seconds):.2f} s on average, {max(seconds):.2f} s at most, of processors "
        f"{np.mean(cpu):.2f} and {max(cpu):.2f} s "
        "(published: up to 60 s on twenty cores; reference on two: 1.2 and 9.2 s)."
    )
    for objective, found_gains in gains.items():
        slower = sum(g < 1 - 1e-9 for g in found_gains)
        console.print(
            f"{objective}: predicted {np.mean(found_gains):.2f} times as fast as greedy on "
            f"average, {max(found_gains):.2f} at most, slower in {slower} of {len(found_gains)}."
        )
    console.print(fan_out)
    return {
        "rows": rows,
        "seconds_mean": float(np.mean(seconds)),
        "seconds_max": max(seconds),
    }, good


def _fan_out(graphs: Path, names: list[str], numbers: Sequence[int]) -> str:
    """What formulation (14) costs: the children of a fan-out in one stage."""
    bytes_more, saved = [], []
    for name in names:
        graph = read_graph(graphs / f"{name}.json")
        for sticks in numbers:
            free = plan([graph], sticks, Options("params,comm"))
            try:
                bound = plan([graph], sticks, Options("params,comm", same_stage_children=True))
            except ThimbleError:
                continue
            bytes_more.append(bound.totals.max_stage_bytes / free.totals.max_stage_bytes - 1)
            saved.append(1 - bound.totals.communication_bytes / free.totals.communication_bytes)
    return (
        f"Children of a fan-out in one stage (14), {len(saved)} cases: largest stage "
        f"{np.mean(bytes_more):+.1%} on average, {max(bytes_more):+.1%} at most; communication "
        f"{-np.mean(saved):+.1%}."
    )


def tables(console: Console, graphs: Path) -> tuple[dict[str, Any], bool]:
    """Predictions for greedy cuts against the times that the paper measured."""
    result = {}
    for balance in ("compiled", "file"):
        table = Table(title=f"predicted / measured ms (Table I), {balance} sizes")
        for heading in ("network", "1", "2", "3", "4", "5"):
            table.add_column(heading, justify="right")
        errors = []
        for name, measured in TABLE_1_MS.items():
            graph = read_graph(graphs / f"{name}.json")
            cells = []
            for sticks, published in enumerate(measured, 1):
                cut = plan([graph], sticks, Options("greedy")).stage_of
                totals = measure([graph], cut, sticks, EdgeTpuCost(), balance)[1]
                errors.append(totals.period_ms / published - 1)
                cells.append(f"{totals.period_ms:.1f} / {published:.1f} ({errors[-1]:+.0%})")
            table.add_row(name, *cells)
        console.print(table)
        mean = float(np.mean(np.abs(errors)))
        console.print(f"Mean error {mean:.1%}, {max(map(abs, errors)):.1%} at most.")
        result[balance] = {"mean_error": mean, "errors": errors}
    console.print(
        "Table II: the paper's figures are in none of the material at hand (the facts state a mean "
        "error of 8.0% for this cost model), so nothing is compared with it here."
    )
    return result, result["compiled"]["mean_error"] < 0.08


def together(console: Console, folder: Path) -> tuple[dict[str, Any], bool]:
    """Several models on the same sticks, against each on its own."""
    good, rows = True, []
    table = Table(title="several models on the same sticks")
    for heading in (
        "models", "sticks", "objective", "largest stage MiB", "spill B", "comm B", "period ms",
        "apart ms", "proved", "s", "CPU s",
    ):  # fmt: skip
        table.add_column(heading, justify="right" if heading != "models" else "left")
    cases: list[tuple[tuple[str, ...], int]]
    cases = [(("ResNet101", "DenseNet169"), n) for n in STICKS]
    cases += [(("Xception", "DenseNet121"), n) for n in (2, 4)]
    cases += [(("ResNet50", "Xception"), n) for n in (4, 6)]
    cases += [(("ResNet50", "DenseNet121", "Xception"), n) for n in (3, 4, 6)]
    for names, sticks in cases:
        graphs = [read_graph(folder / f"{name}.json") for name in names]
        own = apart(graphs, sticks, Options())
        greedy_ms = float("inf")
        for objective in ("greedy", "params,spill", "period"):
            begin = time.process_time()
            found = plan(graphs, sticks, Options(objective))
            cpu_seconds = time.process_time() - begin
            totals = found.totals
            gap = max((proof.gap for proof in found.proofs), default=0.0)
            if objective == "greedy":
                runs = not any(
                    broken_rules(g, s, sticks) for g, s in zip(graphs, found.stage_of, strict=True)
                )
                greedy_ms = totals.period_ms if runs else greedy_ms
            good &= objective != "params,spill" or found.proved_optimal
            good &= objective != "period" or totals.period_ms <= greedy_ms * (1 + 1e-9)
            good &= objective != "period" or len(names) > 2 or found.proved_optimal
            rows.append(
                {
                    "models": names,
                    "sticks": sticks,
                    "objective": objective,
                    "max_stage_bytes": totals.max_stage_bytes,
                    "spill_bytes": totals.spill_bytes,
                    "period_ms": totals.period_ms,
                    "apart_ms": None if own is None else own.period_ms,
                    "gap": gap,
                    "seconds": found.seconds,
                    "cpu_seconds": cpu_seconds,
                }
            )
            proved = "optimal" if found.proved_optimal else f"gap {gap:.2%}"
            table.add_row(
                " + ".join(names),
                str(sticks),
                objective,
                f"{totals.max_stage_bytes / MIB:.2f}",
                f"{totals.spill_bytes:,}",
                f"{totals.communication_bytes:,}",
                f"{totals.period_ms:.2f}",
                "-" if own is None else f"{own.period_ms:.2f} {own.sticks}",
                "" if objective == "greedy" else proved,
                f"{found.seconds:.1f}",
                f"{cpu_seconds:.1f}",
            )
            print(names, sticks, objective, f"{found.seconds:.1f} s", file=sys.stderr)
    console.print(table)
    return {"rows": rows}, good


class _Stage:
    limit = None

    def __init__(self, index: int, on: Callable[[int], None]) -> None:
        self.name, self.inputs, self.outputs = f"{index}", (f"t{index}",), (f"t{index + 1}",)
        self._on, self._seen = on, 0

    def invoke(self, tensors: Any) -> tuple[dict[str, Any], float]:
        self._on(self._seen)
        self._seen += 1
        return {self.outputs[0]: tensors[self.inputs[0]] + 1}, 0.0


def _faulty(on: dict[int, Callable[[int], None]], frames: int) -> tuple[Pipeline, Iterator[Any]]:
    chain = Pipeline([_Stage(k, on.get(k, lambda _: None)) for k in range(4)], ("t4",))
    return chain, chain.run({"t0": np.full(64, n)} for n in range(frames))


def faults(console: Console) -> tuple[dict[str, Any], bool]:
    """Our own pipeline, threads and bounded queues, with faults injected."""
    before = threading.active_count()
    outcome = {}

    def in_order(results: Iterator[Any]) -> int:
        count = 0
        for count, result in enumerate(results, 1):
            if int(result[0][0]) != count + 3:
                raise AssertionError(f"frame {count - 1} came out of order")
        return count

    begin = time.perf_counter()
    _, results = _faulty({}, 10_000)
    resident = _resident_bytes()
    outcome["10,000 frames"] = in_order(results) == 10_000
    rate = 10_000 / (time.perf_counter() - begin)
    grown = _resident_bytes() - resident
    outcome["memory after 10,000 frames"] = grown < 32 * MIB
    chain, results = _faulty({2: lambda n: time.sleep(0.003 if n % 5 == 0 else 0)}, 300)
    outcome["slow stage"] = in_order(results) == 300
    slowest = max(range(4), key=lambda k: chain.times.stages[k].busy_ms)
    outcome["slow stage found"] = slowest == 2

    def fail(number: int) -> None:
        if number == 40:
            raise RuntimeError("injected")

    for stage in range(4):
        _, results = _faulty({stage: fail}, 300)
        try:
            in_order(results)
            outcome[f"failing stage {stage}"] = False
        except StageError as error:
            outcome[f"failing stage {stage}"] = error.stage == stage and "injected" in str(error)
    _, results = _faulty({1: lambda _: time.sleep(0.001)}, 10_000_000)
    for _ in range(50):
        next(results)
    begin = time.perf_counter()
    results.close()  # type: ignore[attr-defined]
    outcome["stop in the middle"] = time.perf_counter() - begin < 1
    outcome["threads left"] = threading.active_count() == before
    for what, good in outcome.items():
        console.print(f"{what}: {'as it should be' if good else 'WRONG'}")
    console.print(
        f"{rate:,.0f} frames/s through four empty stages, {grown / MIB:+.1f} MiB resident."
    )
    return {"outcome": outcome, "frames_per_second": rate}, all(outcome.values())


def _resident_bytes() -> int:
    """Resident memory; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _pack(model: Any) -> bytes:
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def refusals(console: Console, shared: Path) -> tuple[dict[str, Any], bool]:
    """Bad inputs: one clear error each."""
    source = shared / "edgetpu_models" / "resnet20_small_int8.tflite"
    data = source.read_bytes()

    def changed(change: Callable[[Any, Any], None]) -> bytes:
        model = schema.ModelT.InitFromPackedBuf(data, 0)
        change(model, model.subgraphs[0])
        return _pack(model)

    def floating(model: Any, main: Any) -> None:
        for tensor in main.tensors:
            if tensor.type == schema.TensorType.INT8:
                tensor.type, tensor.quantization = schema.TensorType.FLOAT32, None
                buffer = model.buffers[tensor.buffer]
                buffer.data = None if buffer.data is None else np.repeat(buffer.data, 4)

    def compiled(model: Any, main: Any) -> None:
        code = schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
        code.customCode = b"edgetpu-custom-op"
        model.operatorCodes, main.operators = [code], main.operators[:1]
        main.operators[0].opcodeIndex = main.operators[0].builtinOptionsType = 0
        main.operators[0].builtinOptions = None

    def dynamic(model: Any, main: Any) -> None:
        main.tensors[int(main.inputs[0])].shapeSignature = [1, -1, -1, 3]

    cases = {
        "float model": (changed(floating), 2),
        "already compiled": (changed(compiled), 2),
        "dynamic shapes": (changed(dynamic), 2),
        "more stages than operators": (data, 1000),
        "corrupt file": (data[: len(data) // 2], 2),
        "no model at all": (b"hello", 2),
    }
    outcome = {}
    with tempfile.TemporaryDirectory() as folder:
        for what, (content, stages) in cases.items():
            path = Path(folder) / "model.tflite"
            path.write_bytes(content)
            try:
                plan([read_graph(path)], stages, replace(Options(), seconds=5))
                outcome[what] = "NOT REFUSED"
            except ThimbleError as error:
                outcome[what] = str(error).replace(f"{folder}/", "")
    for what, told in outcome.items():
        console.print(f"{what}: {told}", markup=False, highlight=False, soft_wrap=True)
    return {"outcome": outcome}, "NOT REFUSED" not in outcome.values()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--networks", default=",".join(PUBLISHED_OPTIMA_MIB))
    parser.add_argument("--sticks", default=",".join(map(str, STICKS)), help="of `networks`")
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of graphs and models")
    parser.add_argument("--inputs", type=int, default=20, help="inputs for each real file")
    parser.add_argument("--operators", type=int, default=OPERATORS, help="of `large`")
    json_option(parser)
    arguments = parser.parse_args()
    console = Console(width=150)
    wanted = arguments.parts.split(",")
    graphs = arguments.shared / "edgetpu_graphs"
    numbers = [int(number) for number in arguments.sticks.split(",")]
    run: dict[str, Callable[[], tuple[dict[str, Any], bool]]] = {
        "networks": lambda: networks(console, graphs, arguments.networks.split(","), numbers),
        "tables": lambda: tables(console, graphs),
        "large": lambda: large(console, arguments.operators),
        "together": lambda: together(console, graphs),
        "rates": lambda: rates(console, graphs, arguments.networks.split(",")),
        "files": lambda: files(console, arguments.shared, arguments.inputs),
        "faults": lambda: faults(console),
        "refusals": lambda: refusals(console, arguments.shared),
    }
    results, good = {}, True
    for part in (part for part in PARTS if part in wanted):
        console.rule(part)
        results[part], fine = run[part]()
        console.print(f"{part}: {'as it should be' if fine else 'NOT as it should be'}")
        good &= fine
    write_results(arguments.json, results)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
