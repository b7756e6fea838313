"""Which TFLite interpreter is installed, and whether it works with libedgetpu.

libedgetpu passes structures of TensorFlow's headers to the interpreter by value, and these have
grown over time: an interpreter of another version crashes the process, or worse. A combination is
therefore first tried in a child process (`probe.py`). `KNOWN` lists combinations known to work.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from toolchain.device.doctor import Finding
from toolchain.errors import InputError, MissingToolError
from toolchain.files.records import parse_json

T = TypeVar("T")
_TRIAL_S = 60.0
_OPENING = "open the stick"
_LIBRARIES = {
    "Linux": "libedgetpu.so.1",
    "Darwin": "libedgetpu.1.dylib",
    "Windows": "edgetpu.dll",
}
_DEBIAN_PACKAGES = ("libedgetpu1-std", "libedgetpu1-max")
GET_LIBRARY = (
    "libedgetpu1-std of https://github.com/feranick/libedgetpu/releases, built for the "
    "tflite_runtime that you have (that of Coral's package repository takes 2.11 at most, which "
    "is not there for Python 3.11 and newer)"
)


@dataclass(frozen=True)
class Combination:
    """Versions that somebody ran together, and the source. `pycoral` is '' if it is not
    mentioned.
    """

    who: str
    libedgetpu: str
    tflite: str
    pycoral: str
    source: str


_BUILDS = "github.com/feranick/libedgetpu c38ac3f, debian/changelog"
KNOWN = (
    Combination("Google", "15.0", "2.5.0", "1.0.1", "google-coral/edgetpu#401"),
    Combination("Google", "16.0", "2.5.0.post1", "2.0.0", "pycoral release-grouper, setup.py:74"),
    Combination("Google", "16.0", "2.6 to 2.11.1", "", "google-coral/edgetpu#812"),
    Combination("community", "16.0tf2.13.1", "2.13.1 to 2.15.0", "", "google-coral/edgetpu#812"),
    Combination("community", "16.0tf2.15.0", "2.15.0", "", _BUILDS),
    Combination("community", "16.0tf2.16.1", "2.16.1", "2.0.1", _BUILDS),
    Combination("community", "16.0tf2.17.1", "2.17.1", "2.0.3", _BUILDS),
    Combination("community", "16.0tf2.18.1", "2.18.1", "", _BUILDS),
    Combination("community", "16.0tf2.19.1", "2.19.1", "", _BUILDS),
)
"""Combinations reported by others; none of them was run here."""


@dataclass(frozen=True)
class Kind:
    """A package with an interpreter, the module that contains it, and its distribution."""

    name: str
    module: str
    distribution: str

    @property
    def version(self) -> str:
        """Its version; '' if it is not installed."""
        if importlib.util.find_spec(self.module.split(".")[0]) is None:
            return ""
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            module = importlib.import_module(self.module.split(".")[0])
            return str(getattr(module, "__version__", "of unknown version"))


KINDS = (
    Kind("tflite_runtime", "tflite_runtime.interpreter", "tflite-runtime"),
    Kind("ai_edge_litert", "ai_edge_litert.interpreter", "ai-edge-litert"),
    Kind("TensorFlow", "tensorflow.lite.python.interpreter", "tensorflow"),
)
"""tflite_runtime first: it alone is built beside libedgetpu. All three hold one and the same file:
tensorflow/lite/python/interpreter.py; the module `tensorflow.lite` that import finds is empty."""


@dataclass(frozen=True)
class Trial:
    """How a child process ended. `error`: what was raised. `died`: the signal, or another
    reason.
    """

    step: str
    kind: str = ""
    error: str = ""
    died: str = ""
    told: tuple[dict[str, Any], ...] = ()

    @property
    def passed(self) -> bool:
        return not (self.kind or self.died)


def library() -> str:
    """The name under which libedgetpu is loaded on this system."""
    return _LIBRARIES.get(platform.system(), "libedgetpu.so.1")


def try_out(seconds: float = _TRIAL_S, **given: Any) -> Trial:
    """Run `probe.py` with these fields."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-m", "toolchain.edgetpu.run.probe", json.dumps(given)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            env=environment,
        )
        out, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as error:
        out = (error.stdout or b"").decode(errors="replace")
        code = None
    told = tuple(_fields(out))
    step = next((str(fields["step"]) for fields in reversed(told) if "step" in fields), "start")
    last = told[-1] if told else {}
    if "error" in last:
        return Trial(step, str(last.get("kind", "")), str(last["error"]).strip(), "", told)
    if last.get("done"):
        return Trial(step, told=told)
    return Trial(step, died=_end(code, seconds), told=told)


def _fields(text: str) -> list[dict[str, Any]]:
    fields = []
    for line in text.splitlines():
        if line.startswith("{"):
            with contextlib.suppress(InputError):  # a line of the library's own
                fields.append(parse_json(line.encode(), "a line"))
    return fields


def _end(code: int | None, seconds: float) -> str:
    if code is None:
        return f"it did not end in {seconds:g} s"
    if code < 0:
        names = {known.value: known.name for known in signal.Signals}
        return f"it died of {names.get(-code, f'signal {-code}')}"
    return f"it ended with code {code}"


def installed() -> tuple[Kind, ...]:
    return tuple(kind for kind in KINDS if kind.version)


def library_version() -> str:
    """libedgetpu's version according to Debian's packages; '' if no package has it."""
    for package in _DEBIAN_PACKAGES:
        try:
            done = subprocess.run(
                ["dpkg-query", "-W", "-f", "${Version}", package],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except OSError:
            return ""
        if done.returncode == 0 and done.stdout:
            return done.stdout
    return ""


def wake() -> None:
    """Load the firmware of every stick, so that `usb:N` means one stick from now on.

    libedgetpu lists sticks without firmware before those with it, and opening one loads its
    firmware. With two fresh sticks `usb:0` and then `usb:1` would be the same one, shared without a
    message (beagle_usb_driver_provider.cc:209-231, edgetpu_manager_direct.cc:446-451). Only on
    Linux.
    """
    try_out(library=library(), wake=True)


def fitting(model: Path, device: str) -> Kind:
    """The first installed interpreter with which one frame passes one compiled stage.

    Raises MissingToolError with the reason: libedgetpu is missing, no stick answers, or no
    installed interpreter works with libedgetpu.
    """
    reasons = []
    for kind in installed():
        trial = try_out(module=kind.module, library=library(), device=device, model=str(model))
        if trial.passed:
            return kind
        refuse_missing(trial, device)
        reasons.append(f"{kind.name} {kind.version}: {_why(trial)}")
    raise MissingToolError(
        f"no TFLite interpreter that is installed works with {library()} "
        f"{library_version() or '(no package tells its version)'}: {'; '.join(reasons)}. Known to "
        f"work: {known()}"
    )


def check_pycoral(model: Path, device: str) -> None:
    """Raise MissingToolError if one frame does not pass one compiled stage on pycoral."""
    trial = try_out(module="pycoral", device=device, model=str(model))
    if trial.passed:
        return
    refuse_missing(trial, device)
    raise MissingToolError(
        f"pycoral, tflite_runtime {KINDS[0].version or '(missing)'} and {library()} "
        f"{library_version()} do not work together: {_why(trial)}. Known to work: {known()}"
    )


def refuse_missing(trial: Trial, device: str) -> None:
    """Raise MissingToolError for problems that no other interpreter could solve."""
    if trial.step != _OPENING or trial.died:
        return
    if trial.kind == "OSError":
        raise MissingToolError(f"{library()} cannot be loaded ({trial.error}): get {GET_LIBRARY}")
    if trial.kind == "ValueError" and trial.error.startswith("Failed to load delegate"):
        said = trial.error.partition("\n")[2].strip()
        raise MissingToolError(
            f"no Edge TPU answers as {device or 'any device'}{f' ({said})' if said else ''}: is it "
            "plugged in, may you use it (group plugdev), and does no other program hold it?"
        )


def opened(make: Callable[[], T], device: str) -> T:
    """The result of `make`, which opens a stick. Raises MissingToolError if library or stick is
    missing.
    """
    try:
        return make()
    except (OSError, ValueError) as error:
        kind = "OSError" if isinstance(error, OSError) else "ValueError"
        refuse_missing(Trial(_OPENING, kind, str(error).strip()), device)
        raise


def _why(trial: Trial) -> str:
    if trial.died:
        return f"the trial was to {trial.step}, and {trial.died}"
    return f"the trial was to {trial.step}: {trial.error or trial.kind}"


def known() -> str:
    """The combinations that are known to work, for a message."""
    return ", ".join(f"libedgetpu {c.libedgetpu} with tflite {c.tflite}" for c in KNOWN)


@dataclass(frozen=True)
class Software:
    """The installed software for Edge TPUs. '' where it is missing."""

    libedgetpu: str
    runtime: str
    sticks: tuple[str, ...]
    interpreters: tuple[Kind, ...]
    pycoral: str

    @property
    def text(self) -> str:
        """One line, '' if there is no libedgetpu."""
        if not self.runtime:
            return ""
        parts = [f"libedgetpu {self.libedgetpu or 'of no package'} ({self.runtime})"]
        for kind in self.interpreters:
            told = fits(self.libedgetpu, kind)
            parts.append(f"{kind.name} {kind.version} ({told})")
        if self.pycoral:
            parts.append(f"pycoral {self.pycoral}")
        parts.append(f"sticks: {', '.join(self.sticks) or 'none answers'}")
        return "; ".join(parts)


def software() -> Software:
    """The installed software. Code that may crash runs in a child process."""
    trial = try_out(20.0, library=library())
    told = {key: value for fields in trial.told for key, value in fields.items()}
    label = re.search(r"RuntimeVersion\((\d+)\)", str(told.get("version", "")))
    runtime = f"runtime {label[1]}" if label else str(told.get("version", ""))
    if not runtime and trial.died:
        runtime = f"does not load: {trial.died}"
    sticks = tuple(str(stick) for stick in told.get("sticks", ()))
    return Software(library_version() if runtime else "", runtime, sticks, installed(), _pycoral())


def finding() -> Finding:
    """The installed software, as `thimble doctor` lists it."""
    return Finding("Edge TPU", "run pipelines on sticks", software().text, False, GET_LIBRARY)


def _pycoral() -> str:
    """The version of Google's pycoral: the package of that name on PyPI has no `pybind`."""
    spec = importlib.util.find_spec("pycoral")
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not any((Path(place) / "pybind").is_dir() for place in places):
        return ""
    try:
        return importlib.metadata.version("pycoral")
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def fits(libedgetpu: str, kind: Kind) -> str:
    """Whether the two are known together: 'known to work', 'known to crash', or 'not known'.

    Nothing is known of interpreters other than tflite_runtime.
    """
    runtime = _numbers(kind.version)
    community = re.match(r"16\.0tf(\d+\.\d+(?:\.\d+)?)", libedgetpu.lower())
    if not runtime or kind.name != "tflite_runtime" or not libedgetpu:
        return "not known"
    if community:
        built = _numbers(community[1])
        last = (2, 15) if built[:2] == (2, 13) else built[:2]
        return "known to work" if built[:2] <= runtime[:2] <= last else "not known"
    if libedgetpu.startswith("16.0"):
        return "known to work" if (2, 5) <= runtime[:3] <= (2, 11, 1) else "known to crash"
    if libedgetpu.startswith("15.0"):
        return "known to work" if runtime[:2] == (2, 5) else "not known"
    return "not known"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text)[:3])
