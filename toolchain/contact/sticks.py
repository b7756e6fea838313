"""The first visit to Coral's USB Accelerators: software, sticks, each alone, pairs, the pipeline.

Each run is a process of its own that is killed after a while: libedgetpu crashes with interpreters
of another version, and libcoral waits for ever where a stage fails (docs/edgetpu-known.md).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.contact.document import Contact, Outcome, Result
from toolchain.contact.visit import Told, skipped, told
from toolchain.edgetpu.run import compiler, interpreters
from toolchain.errors import InputError, LinkError, MissingToolError, ThimbleError
from toolchain.files import scratch_folder
from toolchain.files.formats import CONTACT
from toolchain.progress import Report, silent
from toolchain.resources import EXAMPLES
from toolchain.version import __version__

BOARD = "coral-usb"
"""The name of sticks in a contact file, where a board has its own."""
BUNDLED = EXAMPLES / "digits" / "digits_int8.tflite"
_SECONDS = 600.0
_FRAMES = 32
_RUN_SECONDS = 60.0
_MOST_PAIRS = 12
_USUAL_TIMES = 2
"""So many times as far as the processor's two sets of kernels may a stick be from one of them."""
_SEED = 1
_ASLEEP = re.compile(r"give (.+) its firmware")


Outputs = dict[str, NDArray[Any]]
"""By name, a frame in each row."""


@dataclass
class _Visit:
    models: tuple[Path, ...]
    folder: Path
    report: Report
    ends: float
    sticks: tuple[str, ...] = ()
    expected: dict[Path, Outputs] = field(default_factory=dict)
    usual: dict[Path, int] = field(default_factory=dict)
    first: dict[Path, Outputs] = field(default_factory=dict)
    stages: dict[tuple[Path, int], Path] = field(default_factory=dict)

    def split(self, model: Path, stages: int) -> Path:
        """The folder of a model in so many compiled stages. Raises ThimbleError as `split` does."""
        key = (model, stages)
        if key not in self.stages:
            out = self.folder / f"{len(self.stages)}-{model.stem}-{stages}"
            _thimble("split", str(model), "-n", str(stages), "-o", str(out), "--json", "-")
            self.stages[key] = out
        return self.stages[key]

    def run(self, stages: Path, *more: str) -> tuple[Outputs, dict[str, Any]]:
        """Outputs of the frames, and what `edgetpu run` says. Raises ThimbleError as it does."""
        kept = self.folder / "out.npz"
        given = ("--frames", str(_FRAMES), "--seed", str(_SEED), "--out", str(kept), "--json", "-")
        said = _thimble("run", str(stages), *given, *more)
        with np.load(kept) as file:
            return {name: file[name] for name in file.files}, said

    def judged(self, model: Path, outputs: Outputs) -> dict[str, int]:
        """Elements that are not the processor's (LiteRT's reference kernels), the largest
        difference in steps, and the largest by which LiteRT's optimised kernels differ from these:
        a stick rounds by a law of its own, and a last bit may grow from layer to layer.
        """
        if model not in self.expected:
            whole = self.split(model, 1)
            self.expected[model], _ = self.run(whole, "--backend", "cpu")
            other, _ = self.run(whole, "--backend", "cpu", "--fast")
            self.usual[model] = _apart(other, self.expected[model])[1]
        differing, largest = _apart(outputs, self.expected[model])
        return {"differing": differing, "largest": largest, "usual": self.usual[model]}

    def unlike(self, model: Path, outputs: Outputs) -> int:
        """Elements that are not those of the first stick alone, which ran first."""
        return _apart(outputs, self.first.setdefault(model, outputs))[0]


def _apart(some: Outputs, others: Outputs) -> tuple[int, int]:
    """Elements that differ, and the largest difference in steps."""
    apart = [np.abs(some[name].astype(np.int64) - others[name].astype(np.int64)) for name in others]
    return sum(int((one > 0).sum()) for one in apart), max(int(one.max()) for one in apart)


def _thimble(*words: str) -> dict[str, Any]:
    """The JSON of `thimble edgetpu WORDS`, run in a process of its own. Raises LinkError where it
    does not end or crashes, ThimbleError with its message where it fails.
    """
    command = [sys.executable, "-m", "toolchain.cli", "edgetpu", *words]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_RUN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LinkError(
            f"it did not end in {_RUN_SECONDS:g} s and was killed: a stick hangs. Unplug it, plug "
            "it in again, and try another port without a hub between"
        ) from error
    try:
        said: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise LinkError(
            f"the process ended with status {done.returncode}: {last}; versions of libedgetpu and "
            "interpreter that do not fit crash so (thimble doctor)"
        ) from error
    if done.returncode:
        raise ThimbleError(str(said.get("error", {}).get("message", done.stderr.strip())))
    return said


def _software(visit: _Visit) -> Told:
    found = interpreters.software()
    missing = []
    if not found.runtime:
        missing.append(f"libedgetpu is missing: get {interpreters.GET_LIBRARY}")
    if not found.interpreters:
        missing.append("no TFLite interpreter is installed: pip install tflite_runtime")
    if not compiler.installed():
        missing.append(compiler.HOW_TO_GET)
    text = found.text.partition("; sticks: ")[0]  # the next step lists them
    return told(missing, [text] if text else [], {"text": text})


def _listed(visit: _Visit) -> Told:
    before = interpreters.software().sticks
    trial = interpreters.try_out(library=interpreters.library(), wake=True)
    after = interpreters.software().sticks
    visit.sticks = after
    steps = [str(fields.get("step", "")) for fields in trial.told]
    woken = [found[1] for found in map(_ASLEEP.fullmatch, steps) if found]
    values = {"before": len(before), "after": len(after), "woken": len(woken)}
    findings = []
    if trial.died:
        findings.append(f"listing them: the trial was to {trial.step}, and {trial.died}")
    if not after:
        findings.append(
            "no Edge TPU answers: is one plugged in, may you use it (thimble doctor "
            "--install-udev), and does no other program hold it?"
        )
    elif len(after) != len(before):
        findings.append(
            f"{len(before)} were listed, and {len(after)} after their firmware was loaded: a hub "
            "without power of its own loses sticks that enumerate anew"
        )
    facts = [f"{len(after)} listed; {len(woken)} of them had no firmware before this"]
    return told(findings, facts if after else [], values)


def _alone(visit: _Visit) -> Told:
    each = [(f"usb:{number}",) for number in range(len(visit.sticks))]
    return _told([_measured(visit, model, one) for one in each for model in visit.models])


def _pairs(visit: _Visit) -> Told:
    if len(visit.sticks) < 2:
        return skipped("there are not two sticks")
    pairs = list(permutations(range(len(visit.sticks)), 2))[:_MOST_PAIRS]
    model = visit.models[0]
    return _told([_measured(visit, model, tuple(f"usb:{n}" for n in pair)) for pair in pairs])


def _pipeline(visit: _Visit) -> Told:
    everyone = tuple(f"usb:{number}" for number in range(len(visit.sticks)))
    return _told([_measured(visit, model, everyone) for model in visit.models])


def _told(rows: list[dict[str, Any]]) -> Told:
    findings = [_sentence(row) for row in rows if row["problem"]]
    facts = [_sentence(row) for row in rows if not row["problem"]]
    return told(findings, facts, {"runs": rows})


def _measured(visit: _Visit, model: Path, devices: Sequence[str]) -> dict[str, Any]:
    """A model's frames through as many stages as there are devices. Times in milliseconds."""
    row: dict[str, Any] = {"model": model.name, "devices": list(devices), "problem": ""}
    visit.report(f"{model.name} on {', '.join(devices)}")
    if time.monotonic() > visit.ends:
        return {**row, "problem": "the time of the visit was over"}
    try:
        stages = visit.split(model, len(devices))
        outputs, said = visit.run(stages, "--backend", "delegate", "--device", ",".join(devices))
        row.update(visit.judged(model, outputs))
        row["unlike_first"] = visit.unlike(model, outputs)
    except ThimbleError as error:
        return {**row, "problem": str(error)}
    row["stages_ms"] = [stage["busy_ms"] for stage in said["stages"] or ()]
    row["period_ms"], row["latency_ms"] = said["period_ms"], said["latency_ms"]
    if row["unlike_first"]:
        row["problem"] = f"{row['unlike_first']} elements are not those of the first stick alone"
    elif row["largest"] > max(1, _USUAL_TIMES * row["usual"]):
        row["problem"] = _compared(row)
    return row


def _compared(row: dict[str, Any]) -> str:
    if not row["differing"]:
        return "every byte is the processor's"
    return (
        f"{row['differing']} elements differ from the processor's by up to {row['largest']}, as "
        f"its two sets of kernels do by {row['usual']}"
    )


def _sentence(row: dict[str, Any]) -> str:
    where = f"{row['model']} on {', '.join(row['devices'])}"
    if row["problem"]:
        return f"{where}: {row['problem']}"
    stages = ", ".join(f"{one:.3f}" for one in row["stages_ms"])
    return (
        f"{where}: {_FRAMES} frames, {_compared(row)}; {row['period_ms']:.3f} ms a frame, stages "
        f"{stages} ms"
    )


@dataclass(frozen=True)
class _Step:
    name: str
    title: str
    run: Callable[[_Visit], Told]
    runs_models: bool = True


_STEPS = (
    _Step("tools", "software for Edge TPUs", _software, runs_models=False),
    _Step("sticks", "sticks, before and after they have firmware", _listed, runs_models=False),
    _Step("alone", "each stick alone", _alone),
    _Step("pairs", "pairs, in both orders", _pairs),
    _Step("pipeline", "a pipeline of all", _pipeline),
)


def contact_sticks(
    models: Sequence[Path] = (), *, seconds: float = _SECONDS, report: Report = silent
) -> Contact:
    """Visit all Edge TPUs on USB. `models`: int8 .tflite files; none: the bundled one. Begins no
    run after `seconds`. Raises InputError for a model file that is not there.
    """
    for model in models:
        if not model.is_file():
            raise InputError(f"{model}: no such file")
    results = []
    with scratch_folder() as folder:
        ends = time.monotonic() + seconds
        visit = _Visit(tuple(models) or (BUNDLED,), folder, report, ends)
        for number, step in enumerate(_STEPS):
            report(step.title, number, len(_STEPS))
            began = time.monotonic()
            outcome = _taken(step, visit)
            took = round(time.monotonic() - began, 2)
            said = tuple(text.replace(f"{folder}/", "") for text in outcome.sentences)
            said = tuple(text.replace(str(Path.home()), "~") for text in said)
            done = Result(step.name, step.title, outcome.outcome, said, took, outcome.values)
            results.append(done)
    return Contact(
        format=CONTACT.name,
        version=CONTACT.version,
        thimble=__version__,
        made_at=int(time.time()),
        board=BOARD,
        chip="Edge TPU",
        core="",
        clock_hz=0,
        emulated=False,
        compiler="",
        cmsis_nn="",
        results=tuple(results),
    )


def _taken(step: _Step, visit: _Visit) -> Told:
    if step.runs_models and not visit.sticks:
        return skipped("no stick answers")
    if step.runs_models and not compiler.installed():
        return skipped("a stage runs on a stick only after edgetpu_compiler, which is missing")
    try:
        return step.run(visit)
    except MissingToolError as error:
        return Told(Outcome.FINDING, (str(error),))
