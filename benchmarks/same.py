"""Two trees give the same: generated C byte for byte, and every document that --json writes.

    python -m benchmarks.same REVISION [--parts models,samples,graphs,pipelines] [--jobs 2]
                              [--shared ../shared] [--only TEXT] [--thorough] [--json FILE]

REVISION is checked out into a temporary folder. Each of the two trees then runs the same command
lines of `thimble` on the same files, and what they write is compared:

- models: each model of DIR/models, the corpus of the fuzzer and tests/ecosystem, compiled as a
  library (C without firmware) for several boards and options,
- samples: samples of every operator, as TFLite files that REVISION wrote, for every core,
- graphs: the order of each graph of DIR/graphs and the arena of each file of DIR/arena,
- pipelines: plans of each file of DIR/edgetpu_graphs and DIR/edgetpu_models, alone and in pairs,
  for a period and for rates of requests, with pages and pictures; of the models also the folders
  of their stages, simulations of them and the outputs of a run.

Seconds, version and paths are left out of the documents. A refused file must be refused alike, but
for the text of the message, which is listed where it changed. The exit code is 1 where anything but
such a text differs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks._results import json_option, write_results

SMALLEST = ("HEAD --parts samples --only relu_0",)
PARTS = ("models", "samples", "graphs", "pipelines")
SAMPLES = 2
"""Samples of each operator."""
CORES = (
    "host",
    "microbit",
    "mps2-an385",
    "netduinoplus2",
    "mps2-an500",
    "mps2-an521",
    "mps2-an505",
    "mps3-an547",
)
"""A board of each core whose kernels differ."""
WAYS: Mapping[str, Sequence[str]] = {
    "default": (),
    "whole": ("--no-split",),
    "cmsis-nn": ("--no-split", "--kernels", "cmsis-nn"),
    "size": ("--optimise", "size"),
    "speed": ("--optimise", "speed"),
    "slower": ("--max-slowdown", "10%"),
    "rows": ("--stream-input",),
}
USUAL = (("netduinoplus2", "default"), ("nucleo-u575zi-q", "whole"), ("mps3-an547", "whole"))
"""The pairs of board and way that a model is compiled for, unless the run is thorough."""
THOROUGH = tuple(
    (board, way)
    for board in ("netduinoplus2", "nucleo-g0b1re", "nucleo-h7a3zi-q", "nucleo-u575zi-q")
    for way in WAYS
) + tuple(("mps3-an547", way) for way in ("default", "cmsis-nn"))
PLANS: Mapping[str, Sequence[str]] = {
    "auto": ("--max-sticks", "3", "--html", "{scratch}/page.html", "--picture", "{scratch}/a.svg"),
    "picture": ("--stages", "2", "--picture", "{scratch}/a.svg"),
    "contiguous": ("--stages", "3", "--objective", "contiguous", "--balance-by", "compiled"),
    "slack": ("--stages", "3", "--objective", "params,comm", "--slack", "5%", "--seconds", "2"),
    "together": ("--stages", "2", "--same-stage-children", "--objective", "comm"),
    "small cache": ("--stages", "3", "--cache-mib", "0.1", "--balance-by", "compiled"),
    "host": ("--stages", "2", "--host", "20"),
    "rates": ("--devices", "2", "--rate", "12", "--seconds", "2", "--html", "{scratch}/page.html"),
    "unmet": ("--devices", "2", "--rate", "3000", "--seconds", "2", "--host", "20"),
    "worst": ("--rate", "5", "--deadline", "400ms", "--objective", "worst", "--seconds", "2"),
}
"""The options of plans of one model for sticks, beside those of stages and objectives."""
VOLATILE = frozenset(
    {"seconds", "version", "json_version", "thimble_version", "folder", "file", "report"}
)
"""Fields of documents that differ between two runs of one tree."""
MANIFESTS = ("pipeline.json", "rates.json")
"""Documents that are part of a folder's format."""
REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Case:
    """One command line, and those that come before it.

    `{out}` is a folder that a command writes, if it does; `{scratch}` one for other files.
    """

    name: str
    arguments: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Result:
    """What a command gave: its exit code, a hash of its document and of each file, its message."""

    code: int
    document: str
    files: Mapping[str, str]
    message: str


def cases(parts: Sequence[str], shared: Path, samples: Path, thorough: bool) -> Iterator[Case]:
    """The command lines, in an order that both trees share."""
    if "models" in parts:
        folders = (shared / "models", REPOSITORY / "tests/corpus", REPOSITORY / "tests/ecosystem")
        files = [file for folder in folders for file in _models(folder)]
        for file in [*files, REPOSITORY / "examples/digits/digits_int8.tflite"]:
            for board, way in THOROUGH if thorough else USUAL:
                name = f"models/{file.name}/{board}/{way}"
                yield _library(name, file, board, ("--float", *WAYS[way]))
    if "samples" in parts:
        for file in _models(samples):
            for board in CORES:
                options = ("--float", "--plan", "fast")
                yield _library(f"samples/{file.stem}/{board}", file, board, options)
    if "graphs" in parts:
        for file in sorted((shared / "graphs").glob("*.json")):
            yield Case(f"graphs/{file.stem}", ("schedule", str(file), "--json", "-"))
        for file in sorted((shared / "arena").glob("*.csv")):
            yield Case(f"arena/{file.stem}", ("arena", str(file), "--json", "-"))
    if "pipelines" in parts:
        graphs = sorted((shared / "edgetpu_graphs").glob("*.json"))
        models = sorted((shared / "edgetpu_models").glob("*.tflite"))
        for listed in (graphs, models):
            for number, file in enumerate(listed):
                yield from _pipelines(file)
                yield from _pairs(file, listed[number - 1])
        for number, file in enumerate(models):
            yield from _folders(file, models[number - 1])


def _models(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.glob("*")) if file.suffix in (".tflite", ".onnx")]


def _library(name: str, file: Path, board: str, options: Sequence[str]) -> Case:
    """`compile --library`, which calls no compiler. No library is made for this machine."""
    made = ("--library", "-o", "{out}", "--name", "model", "--json", "-", *options)
    if board == "host":
        return Case(name, ("plan", str(file), "-b", board, "--json", "-", *options))
    return Case(name, ("compile", str(file), "-b", board, *made))


def _pipelines(file: Path) -> Iterator[Case]:
    """Plans of one model."""
    name = f"pipelines/{file.stem}"
    plan, json = ("edgetpu", "plan", str(file)), ("--json", "-")
    for stages in ("2", "4"):
        for goal in ("params,spill,comm", "period", "greedy"):
            asked = ("--stages", stages, "--objective", goal, *json)
            yield Case(f"{name}/{stages}/{goal}", (*plan, *asked))
    for way, options in PLANS.items():
        yield Case(f"{name}/{way}", (*plan, *options, *json))


def _pairs(file: Path, other: Path) -> Iterator[Case]:
    """Plans of two models on the same devices."""
    name = f"pipelines/{file.stem}+{other.stem}"
    plan = ("edgetpu", "plan", str(file), str(other), "--json", "-")
    few = ("--seconds", "2")
    page = ("--html", "{scratch}/page.html")
    yield Case(f"{name}/period", (*plan, "--stages", "2", *few, *page))
    yield Case(f"{name}/spill,comm", (*plan, "--stages", "2", *few, "--objective", "spill,comm"))
    yield Case(f"{name}/rates", (*plan, "--devices", "3", "--rate", "4", *few, *page))
    late = ("--deadline", f"{file.stem}=90ms", "--objective", "worst", "--host", "20")
    yield Case(f"{name}/deadline", (*plan, "--devices", "2", "--rate", "9", *late, *few))


def _folders(file: Path, other: Path) -> Iterator[Case]:
    """What `split` writes, and what is made of it."""
    some = ("edgetpu", "split", str(file), "--stages", "3", "--objective", "params,comm")
    host = ("edgetpu", "split", str(file), "--stages", "2", "--host", "0.5", "--emit", "c")
    both = ("edgetpu", "split", str(file), str(other))
    shared, rated = (*both, "--stages", "2"), (*both, "--devices", "2", "--rate", "30")
    result = ("--out", "{scratch}/results.npz", "--frames", "3", "--backend", "cpu")
    drawn = ("--html", "{scratch}/page.html", "--picture", "{scratch}/timeline.svg")
    for way, split in (("some", some), ("host", host), ("shared", shared), ("rated", rated)):
        made = (*split, "-o", "{out}")
        name, before = f"pipelines/{file.stem}/{way}", (made,)
        yield Case(f"{name}/split", (*made, "--json", "-"))
        yield Case(f"{name}/run", ("edgetpu", "run", "{out}", *result), before)
        pictures = () if way == "rated" else drawn
        simulated = ("edgetpu", "simulate", "{out}", "--json", "-", *pictures)
        yield Case(f"{name}/simulate", simulated, before)


def steady(value: Any) -> Any:
    """A document without what differs between two runs."""
    if isinstance(value, dict):
        return {key: steady(each) for key, each in value.items() if key not in VOLATILE}
    return list(map(steady, value)) if isinstance(value, list) else value


def result(case: Case) -> Result:
    """Run a command line in this process, by the tree that is imported."""
    from toolchain.cli import run

    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        for arguments in (*case.before, case.arguments):
            given = [part.replace("{out}", str(out)) for part in arguments]
            given = [part.replace("{scratch}", scratch) for part in given]
            sys.argv = ["thimble", *given]  # pages show it
            printed, told = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
                code = run(given)
        files = {
            str(file.relative_to(scratch)): _hash(_content(file, scratch))
            for file in sorted(Path(scratch).rglob("*"))
            if file.is_file() and (file.suffix != ".json" or file.name in MANIFESTS)
        }
    try:
        document = json.loads(printed.getvalue())
    except ValueError:
        document = {}
    error = document.pop("error", {}) if isinstance(document, dict) else {}
    text = json.dumps(steady(document), sort_keys=True).replace(scratch, "")
    message = str(error.get("message", "")).replace(scratch, "") if error else ""
    return Result(code, _hash(text.encode()), files, message)


def _content(file: Path, scratch: str) -> bytes:
    """What a file holds, without what differs between two runs."""
    data = file.read_bytes()
    if file.name in MANIFESTS:
        return json.dumps(steady(json.loads(data))).encode()
    return data.replace(scratch.encode(), b"")


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def write_samples(folder: Path) -> None:
    """Samples of every operator that TFLite has, by the tree that is imported."""
    import numpy as np

    from tests.support.tflite_writer import tflite_bytes
    from toolchain.errors import ThimbleError
    from toolchain.ops import forms

    for name, spec in sorted(forms().items()):
        if spec.tflite is None:
            continue
        for number in range(SAMPLES):
            graph = spec.sample(np.random.default_rng([number, len(name)]))
            try:
                data = tflite_bytes(graph)
            except (ThimbleError, ValueError, KeyError, TypeError):
                continue  # a form that the writer of the tests does not know
            (folder / f"{name}_{number}.tflite").write_bytes(data)


def differences(old: Result, new: Result) -> list[str]:
    """What differs between two results, but for the text of messages."""
    found = [] if old.code == new.code else [f"exit code {old.code}, now {new.code}"]
    if old.document != new.document:
        found.append("the document of --json")
    names = old.files.keys() | new.files.keys()
    changed = sorted(name for name in names if old.files.get(name) != new.files.get(name))
    return [*found, *changed]


def _worker(chosen: argparse.Namespace) -> int:
    """The part of the work that a child does: every `jobs`-th case, to a file of JSON lines."""
    listed = cases(chosen.parts, chosen.shared, chosen.samples, chosen.thorough)
    wanted = [case for case in listed if chosen.only in case.name]
    with chosen.worker.open("w", encoding="utf-8") as file:
        for case in wanted[chosen.share :: chosen.jobs]:
            file.write(json.dumps([case.name, asdict(result(case))]) + "\n")
    return 0


def _tree(
    tree: Path, chosen: argparse.Namespace, samples: Path, scratch: Path
) -> dict[str, Result]:
    """What the tree in that folder gives, by `chosen.jobs` processes."""
    shares = [scratch / f"{tree.name}-{share}.jsonl" for share in range(chosen.jobs)]
    running = [
        _start(tree, chosen, ["--samples", samples, "--share", share, "--worker", file])
        for share, file in enumerate(shares)
    ]
    codes = [child.wait() for child in running]  # each of them, also after one that failed
    if any(codes):
        raise SystemExit(f"error: a process of {tree} failed")
    rows = [json.loads(line) for file in shares for line in file.read_text().splitlines()]
    return {name: Result(**fields) for name, fields in rows}


def _start(tree: Path, chosen: argparse.Namespace, more: Sequence[Any]) -> subprocess.Popen[bytes]:
    """This file, run with the packages of `tree`."""
    asked = [chosen.revision, "--parts", ",".join(chosen.parts), "--jobs", chosen.jobs]
    asked += ["--shared", chosen.shared, "--only", chosen.only]
    asked += ["--thorough"] if chosen.thorough else []
    command = [sys.executable, str(Path(__file__).resolve()), *map(str, [*asked, *more])]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
    environment["PATH"] = ""  # a library is compiled, for its stack, where there is a compiler
    return subprocess.Popen(command, cwd=tree, env=environment)


def _compare(chosen: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        old, samples = scratch / "old", scratch / "samples"
        samples.mkdir()
        git = ["git", "-C", str(REPOSITORY), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(old), chosen.revision], check=True)
        try:
            if "samples" in chosen.parts:
                made = _start(old, chosen, ["--samples", samples, "--write-samples"])
                if made.wait():
                    raise SystemExit("error: no samples were written")
            before, after = (_tree(tree, chosen, samples, scratch) for tree in (old, REPOSITORY))
        finally:
            subprocess.run([*git, "remove", "--force", str(old)], check=True)
    return report(before, after, chosen.json)


def report(
    before: Mapping[str, Result], after: Mapping[str, Result], json_file: Path | None
) -> int:
    """Print what differs and the counts; 1 where anything does."""
    found = {name: differences(before[name], after[name]) for name in before}
    for name, parts in found.items():
        if parts:
            print(f"{name}: {', '.join(parts)}")
        elif before[name].message != after[name].message:
            print(f"{name}: message\n  {before[name].message}\n  {after[name].message}")
    counts = Counter(name.partition("/")[0] for name in before)
    wrong = sum(map(bool, found.values()))
    files = sum(len(each.files) for each in before.values())
    codes = Counter(each.code for each in before.values())
    listed = ", ".join(f"{count} of {part}" for part, count in counts.items())
    ended = ", ".join(f"{count} with exit code {code}" for code, count in sorted(codes.items()))
    print(
        f"{len(before)} command lines ({listed}; {ended}), {files} generated files: {wrong} differ."
    )
    differ = {k: v for k, v in found.items() if v}
    write_results(json_file, {"cases": len(before), "files": files, "differ": differ})
    return 1 if wrong or not before else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision", help="what this tree is compared with")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=PARTS)
    parser.add_argument("--shared", type=Path, default=REPOSITORY.parent / "shared")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--thorough", action="store_true", help="all boards and options")
    parser.add_argument("--jobs", type=int, default=2)
    json_option(parser)
    for internal in ("--samples", "--worker"):
        parser.add_argument(internal, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--share", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--write-samples", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    chosen.shared = chosen.shared.resolve()
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"no such parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if chosen.write_samples:
        write_samples(chosen.samples)
        return 0
    return _worker(chosen) if chosen.worker else _compare(chosen)


if __name__ == "__main__":
    sys.exit(main())
