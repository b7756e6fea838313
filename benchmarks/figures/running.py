"""Runs the commands of figures and keeps what they found.

What a command wrote is kept in `build/figures` as soon as it ends, under the digests of all that it
depends on, so that an interrupted figure goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.figures.changes import digests, git, paths, uncommitted
from benchmarks.figures.figure import ROOT, Figure, Kept, load, save

PARTS = ROOT / "build" / "figures"
PACKAGES = ("numpy", "ortools", "ai-edge-litert", "onnxruntime", "tflite-micro")
PROGRAMS = {
    "gcc": ("gcc", "--version"),
    "gcc for Arm": ("arm-none-eabi-gcc", "--version"),
    "QEMU": ("qemu-system-arm", "--version"),
}
LAST_LINES = 15
_SECONDS = "processor_seconds"
_FOLDER = re.compile(r"\{(\w+)\}")


class FigureError(Exception):
    """A figure that cannot be run; the text says why."""


class NoFolderError(FigureError):
    """A figure of files that are not the project's, which nobody gave."""


@dataclass(frozen=True)
class Task:
    """One command of a figure. `rooms`: git's digests of all that it depends on. `folders`: of
    files that are not the project's, by the names that commands have for them.
    """

    figure: Figure
    key: str
    rooms: Mapping[str, str]
    folders: Mapping[str, Path]

    @property
    def digest(self) -> str:
        """Of the command and of what it depends on."""
        text = f"{self.figure.commands[self.key]}\n{json.dumps(self.rooms)}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def part(self) -> Path:
        return PARTS / f"{self.digest}.json"

    @property
    def name(self) -> str:
        return (
            self.figure.name
            if len(self.figure.commands) == 1
            else f"{self.figure.name}, {self.key}"
        )

    @property
    def words(self) -> Sequence[str]:
        """The command line behind `python -m`."""
        module, *rest = shlex.split(self.figure.commands[self.key])
        return [f"benchmarks.{module}", *(word.format_map(self.folders) for word in rest)]


def tasks(figure: Figure, folders: Mapping[str, Path]) -> list[Task]:
    """The commands of a figure. Raises FigureError where they cannot be run."""
    for name in sorted(
        {name for line in figure.commands.values() for name in _FOLDER.findall(line)}
    ):
        if name not in folders:
            raise NoFolderError(f"it needs a folder: --{name} DIR")
        if not folders[name].is_dir():
            raise FigureError(f"there is no folder {folders[name]} (--{name} DIR)")
    changed = uncommitted(figure)
    if changed:
        raise FigureError(f"not committed: {', '.join(changed)}")
    rooms = digests(paths(figure))
    return [Task(figure, key, rooms, folders) for key in figure.commands]


def estimate(figure: Figure) -> float:
    """Minutes of processor time: of the last run, or the guess of the declaration."""
    kept = load(figure)
    return figure.minutes if kept is None else kept.minutes


class Runner:
    """Runs so many commands at a time, and says what it does on the standard error. `after_each`
    is called as a figure is kept.
    """

    def __init__(
        self, folders: Mapping[str, Path], jobs: int, after_each: Callable[[], object]
    ) -> None:
        self._folders, self._jobs, self._after_each = folders, jobs, after_each
        self._commit = git("rev-parse", "--short=8", "HEAD")
        self._lock = threading.Lock()
        self._done = 0
        self._all = 0

    def run(
        self, wanted: Sequence[Figure], *, again: bool = False, asked: Collection[str] = ()
    ) -> list[str]:
        """Run figures; each is kept as it ends. Names of those that failed. A figure whose folder
        nobody gave has failed only where it was `asked` for by name.
        """
        planned: dict[str, list[Task]] = {}
        failed = []
        for figure in wanted:
            try:
                planned[figure.name] = tasks(figure, self._folders)
            except FigureError as error:
                if figure.name in asked or not isinstance(error, NoFolderError):
                    failed.append(figure.name)
                self._say(f"{figure.name}: left out: {error}")
        if again:
            for task in (task for some in planned.values() for task in some):
                task.part.unlink(missing_ok=True)
        self._done, self._all = 0, sum(map(len, planned.values()))
        with ThreadPoolExecutor(self._jobs) as pool:
            started = {
                name: [pool.submit(self._one, task) for task in some]
                for name, some in planned.items()
            }
            try:
                for name, futures in started.items():
                    done = [future.result() for future in futures]
                    if not all(done) or not self._keep(planned[name]):
                        failed.append(name)
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)
                raise
        return failed

    def _one(self, task: Task) -> bool:
        """Run a command unless its part is there."""
        if task.part.exists():
            self._end(task, "kept from before")
            return True
        minutes = estimate(task.figure) / len(task.figure.commands)
        self._say(f"{task.name}: about {minutes:.1f} min of processor time")
        PARTS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="figure-") as scratch:
            file, log = Path(scratch) / "result.json", Path(scratch) / "log"
            code, seconds = _processed([*task.words, "--json", str(file)], Path(scratch), log)
            if code not in task.figure.exits or not file.exists():
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:])
                self._end(task, f"FAILED (exit code {code})\n{tail}")
                return False
            result = task.figure.keep(json.loads(file.read_text(encoding="utf-8")))
        fresh = task.part.with_suffix(".new")
        fresh.write_text(json.dumps({_SECONDS: seconds, "result": result}), encoding="utf-8")
        fresh.replace(task.part)
        self._end(task, f"{seconds / 60:.1f} min of processor time")
        return True

    def _keep(self, done: Sequence[Task]) -> bool:
        """What these commands found becomes the data of their figure, unless it is of a mixture."""
        figure, rooms = done[0].figure, done[0].rooms
        if uncommitted(figure) or digests(paths(figure)) != rooms:
            for task in done:
                task.part.unlink()
            self._say(f"{figure.name}: what it depends on changed while it ran: run it again")
            return False
        parts = {task.key: json.loads(task.part.read_text(encoding="utf-8")) for task in done}
        kept = Kept(
            commit=self._commit,
            date=time.strftime("%Y-%m-%d", time.gmtime()),
            minutes=round(sum(part[_SECONDS] for part in parts.values()) / 60, 2),
            commands=figure.commands,
            tools=tools(),
            rooms=rooms,
            data={key: part["result"] for key, part in parts.items()},
        )
        save(figure, kept)
        for task in done:
            task.part.unlink()
        self._say(f"{figure.name}: kept in {figure.file.relative_to(ROOT)}")
        self._after_each()
        return True

    def _end(self, task: Task, text: str) -> None:
        with self._lock:
            self._done += 1
            number = self._done
        self._say(f"[{number}/{self._all}] {task.name}: {text}")

    def _say(self, text: str) -> None:
        with self._lock:
            print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _processed(words: Sequence[str], scratch: Path, log: Path) -> tuple[int, float]:
    """Exit code and processor seconds of `python -m ...`, with no measurements of earlier runs."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    given = {"PYTHONPATH": path, "THIMBLE_MEASUREMENTS": str(scratch / "measurements.sqlite")}
    with log.open("w") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            env={**os.environ, **given},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, used.ru_utime + used.ru_stime


@cache
def tools() -> Mapping[str, str]:
    """Versions of what figures depend on beside this checkout, and the processor."""
    found = {"Python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    for name, command in PROGRAMS.items():
        try:
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        match = re.search(r"\d+\.\d+\.\d+", told)
        found[name] = match[0] if match else "?"
    processors = Path("/proc/cpuinfo")
    if processors.exists():
        match = re.search(r"model name\s*: (.*)", processors.read_text())
        found["processor"] = match[1] if match else "?"
    return found
