"""What it takes to start Thimble: seconds of a command, each beside those of an empty Python.

    python -m benchmarks.start [--runs 15] [--json FILE]

A run starts an empty Python, then the command, so that both meet the same load of the machine. The
table has medians: the command, what it is compared with, their difference; and the same difference
in processor time, which hardly depends on what else the machine does. The commands run with
compiled modules, as they do from the second time on.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks._results import json_option, write_results

SMALLEST = ("--runs 1",)
ROOT = Path(__file__).resolve().parents[1]
DIGITS = str(ROOT / "examples" / "digits" / "digits_int8.tflite")
EMPTY = ("-c", "pass")
THIMBLE = ("-m", "toolchain.cli")
PLUGIN = "toolchain.bench.pytest_plugin"


@dataclass(frozen=True)
class Case:
    """A command of Python's, and what its time is compared with."""

    title: str
    arguments: Sequence[str]
    beside: Sequence[str] = EMPTY


def cases(test: str) -> tuple[Case, ...]:
    """`test`: a file with one test that does nothing."""
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:thimble", test)
    return (
        Case("import thimble", ("-c", "import thimble")),
        Case("thimble --version", (*THIMBLE, "--version")),
        Case("thimble --help", (*THIMBLE, "--help")),
        Case("thimble plan --help", (*THIMBLE, "plan", "--help")),
        Case("thimble plan digits_int8.tflite", (*THIMBLE, "plan", DIGITS, "-b", "netduinoplus2")),
        Case("pytest with our plugin, beside pytest", (*pytest, "-p", PLUGIN), pytest),
    )


@dataclass(frozen=True)
class Taken:
    """Seconds of one process, from its start to its end, and of a processor."""

    seconds: float
    processor: float


def taken(arguments: Sequence[str]) -> Taken:
    """Run Python with these arguments."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        env=dict(os.environ, PYTHONPATH=path),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(time.perf_counter() - begin, used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15, help="pairs of each command (15)")
    json_option(parser)
    given = parser.parse_args()
    runs, found = given.runs, []
    print("| command | s | quickest s | beside, s | difference, s | difference, processor s |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        test = Path(folder) / "test_nothing.py"
        test.write_text("def test_nothing() -> None:\n    pass\n", encoding="utf-8")
        for case in cases(str(test)):
            taken(case.arguments)  # compiles what was never imported
            pairs = [(taken(case.beside), taken(case.arguments)) for _ in range(runs)]
            row = {
                "command": case.title,
                "seconds": median(own.seconds for _, own in pairs),
                "least_seconds": min(own.seconds for _, own in pairs),
                "beside_seconds": median(beside.seconds for beside, _ in pairs),
                "more_seconds": median(own.seconds - beside.seconds for beside, own in pairs),
                "more_processor_seconds": median(
                    own.processor - beside.processor for beside, own in pairs
                ),
            }
            found.append(row)
            title, *seconds, processor = row.values()
            print("|", title, *(f"| {value:.2f}" for value in seconds), f"| {processor:.3f} |")
    write_results(given.json, found)


if __name__ == "__main__":
    main()
