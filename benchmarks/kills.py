"""kill -9 while Thimble writes a folder: the old result or the new one is there, whole, each time.

    python -m benchmarks.kills [--runs 200] [--seed 0] [--skip-calls] [--json FILE]

First `--runs` kills of a loop that compiles two models in turn into one folder, at random moments:
half of them with files of the user in that folder (then with `force`). Then one kill at each system
call of a replacement, by strace's `inject` (left out where strace is missing): a first result, a
replaced one, one with a user's files in it, and one where the file system cannot exchange folders.
After every kill: the folder is byte for byte the old or the new result, the user's files in it and
beside it are what they were, the loader takes it, and the next start leaves nothing else behind.
Exits 1 where anything was lost.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks._results import json_option, write_results
from toolchain.files import MARKER, check_whole, replaced_folder

SMALLEST = ("--runs 1 --skip-calls",)
ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits"
MODELS = (DIGITS / "digits_int8.tflite", DIGITS / "digits_qdq.onnx")
OLD = {"plan.json": b"old plan", "model.c": b"int old;", "runtime/kernel.c": b"a kernel"}
NEW = {"plan.json": b"new plan", "model.c": b"int now;", "include/model.h": b"a header"}
THEIRS = {"thesis.txt": b"my only copy", "src/deep/mine.c": b"int mine;", "runtime/notes": b"!"}
_MEMORY = {"brk", "mmap", "munmap", "mremap", "madvise", "futex"}
"""Calls that change no file, and vary from run to run."""
Tree = Mapping[str, bytes]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below, by its path, but for the list of files."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / MARKER
    }


def write_tree(folder: Path, files: Tree) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@dataclass(frozen=True)
class Scene:
    """A folder `out` beside a user's file, in a folder of their own.

    `theirs`: the user's files in `out`. `absent`: `out` may be missing until the next start.
    """

    place: Path
    theirs: Tree
    absent: bool = False

    @property
    def out(self) -> Path:
        return self.place / "out"

    def begin(self, old: Tree) -> None:
        """`old` in `out` (nothing where it is empty), and the user's files."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        (self.place / "beside.txt").write_bytes(b"beside")
        if old:
            self.write(old)
        write_tree(self.out, self.theirs)

    def write(self, files: Tree) -> None:
        """What a command does."""
        with replaced_folder(self.out, force=bool(self.theirs)) as fresh:
            write_tree(fresh, files)

    def after_kill(self, results: Mapping[str, Tree]) -> str:
        """Which of the `results` is there. AssertionError where it is none, or a file was lost."""
        if not (self.absent and not self.out.exists()):
            self.which(results)
        check_whole(self.out, "again")
        return self.which(results)

    def which(self, results: Mapping[str, Tree]) -> str:
        found = tree(self.out) if self.out.exists() else {}
        assert (self.place / "beside.txt").read_bytes() == b"beside"
        for name, files in results.items():
            if found == {**files, **self.theirs}:
                return name
        raise AssertionError(f"{self.out} holds {sorted(found)}, which is neither result")

    def alone(self) -> None:
        """AssertionError where a hidden folder or file was left."""
        left = {path.name for path in self.place.iterdir()} - {"out", "beside.txt"}
        assert not left, f"left beside {self.out}: {left}"


def compiling(scene: Scene, models: tuple[Path, ...]) -> None:
    """Compile the models in turn into the scene's folder."""
    from toolchain import compile_model

    for model in models:
        compile_model(model, "host", scene.out, force=bool(scene.theirs))


def random_kills(place: Path, runs: int, rng: random.Random) -> Counter[str]:
    """Kill a compiling process `runs` times; how often what was found."""
    import toolchain.deployment.compile  # noqa: F401  (once, before the children)

    results, begin = {}, time.perf_counter()
    for name, model in zip(("one", "other"), MODELS, strict=True):
        scene = Scene(place / name, {})
        scene.begin({})
        _forked(lambda scene=scene, model=model: compiling(scene, (model,)))()
        results[name] = tree(scene.out)
    most_seconds = time.perf_counter() - begin
    counts: Counter[str] = Counter()
    for theirs in ({}, THEIRS):
        scene = Scene(place / "loop", theirs)
        scene.begin(results["one"])
        for run in range(runs // 2 if theirs else runs - runs // 2):
            wait = _forked(lambda scene=scene: compiling(scene, MODELS * 1000))
            time.sleep(rng.uniform(0, most_seconds))
            wait(signal.SIGKILL)
            work = scene.place / ".out.thimble"
            stage = "outside" if not work.exists() else "swapping"
            if any(work.glob("build-*")):
                stage = "building"
            counts[f"killed {stage}"] += 1
            counts[f"found {scene.after_kill(results)}"] += 1
            if run % 20 == 0:
                print(f"  {sum(counts.values()) // 2} kills", flush=True)
        _forked(lambda scene=scene: compiling(scene, MODELS))()
        assert scene.which(results) == "other"
        scene.alone()
    return counts


def _forked(work: Callable[[], None]) -> Callable[..., None]:
    """Do it in a child; what is given back waits for it, or kills it first."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)

    def wait(kill: int | None = None) -> None:
        if kill is not None:
            os.kill(child, kill)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == (0 if kill is None else -kill), f"the child ended with {status}"

    return wait


@dataclass(frozen=True)
class Variant:
    """One kind of replacement. `exchange`: folders can change places at once."""

    name: str
    old: Tree
    theirs: Tree
    exchange: bool = True


VARIANTS = (
    Variant("a first result", {}, {}),
    Variant("a result replaced", OLD, {}),
    Variant("a result replaced among a user's files", OLD, THEIRS),
    Variant("a result replaced by two renames", OLD, {}, exchange=False),
    Variant("the same among a user's files", OLD, THEIRS, exchange=False),
)
_BEGIN, _END = "/thimble-begins", "/thimble-ends"


def replacing(variant: Variant, place: Path, ready: Callable[[], None] = lambda: None) -> Scene:
    """Replace once, as `variant` says, in what `Scene.begin` made; `ready` is called before."""
    scene = Scene(place, variant.theirs, absent=not (variant.exchange and variant.old))
    with contextlib.nullcontext() if variant.exchange else _no_exchange():
        ready()
        scene.write(NEW)
    return scene


@contextlib.contextmanager
def _no_exchange() -> Iterator[None]:
    """A C library without renameat2, as other systems have: folders cannot change places."""
    real = ctypes.CDLL
    ctypes.CDLL = lambda *arguments, **options: object()  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        ctypes.CDLL = real  # type: ignore[misc]


def killed_at(variant: Variant, place: Path, kill: Callable[[], None]) -> str:
    """Prepare, let `kill` kill a process that replaces, and check; what was found."""
    scene = Scene(place, variant.theirs, absent=not (variant.exchange and variant.old))
    scene.begin(variant.old)
    kill()
    found = scene.after_kill({"the old": variant.old, "the new": NEW})
    scene.write(NEW)
    assert scene.which({"the new": NEW}) == "the new"
    scene.alone()
    return found


def call_kills(place: Path, variant: Variant) -> Counter[str]:
    """Kill at each system call of a replacement; how often what was found."""
    strace = shutil.which("strace")
    assert strace is not None
    number = VARIANTS.index(variant)
    command = [sys.executable, "-m", "benchmarks.kills", "--replace", str(number), str(place)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    log = place.with_suffix(".strace")

    def traced(*options: str) -> int:
        return subprocess.run(
            [strace, "-qq", "-o", str(log), *options, *command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            check=False,
        ).returncode

    Scene(place, variant.theirs).begin(variant.old)
    assert traced() == 0
    calls: Counter[str] = Counter()
    moments: list[tuple[str, int]] = []
    begun = False
    for line in log.read_text(errors="replace").splitlines():
        match = re.match(r"(\w+)\(", line)
        if match is None:
            continue
        calls[match[1]] += 1
        if _END in line:
            break
        if begun and match[1] not in _MEMORY:
            moments.append((match[1], calls[match[1]]))
        begun = begun or _BEGIN in line
    counts: Counter[str] = Counter()
    for name, when in moments:

        def kill(name: str = name, when: int = when) -> None:
            code = traced("-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={when}")
            counts["killed" if code == -signal.SIGKILL else "ran through"] += 1

        counts[f"found {killed_at(variant, place, kill)}"] += 1
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200, help="kills at random moments")
    parser.add_argument("--seed", type=int, default=0, help="of those moments")
    parser.add_argument("--skip-calls", action="store_true", help="leave strace out")
    json_option(parser)
    parser.add_argument("--replace", nargs=2, metavar=("N", "DIR"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.replace:
        variant, place = VARIANTS[int(chosen.replace[0])], Path(chosen.replace[1])
        replacing(variant, place, lambda: _mark(_BEGIN))
        _mark(_END)
        return 0
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        try:
            counts = random_kills(Path(folder), chosen.runs, random.Random(chosen.seed))
            found = {"compiling in a loop, at random moments": counts}
            print(f"compiling in a loop, {chosen.runs} kills at random moments: {_said(counts)}")
            traced = not chosen.skip_calls and shutil.which("strace") is not None
            if not traced:
                print("no kills at system calls: strace is left out or not installed")
            for variant in VARIANTS if traced else ():
                counts = call_kills(Path(folder) / "calls", variant)
                found[f"{variant.name}, at each system call"] = counts
                print(f"{variant.name}, at each system call: {_said(counts)}", flush=True)
        except AssertionError as error:
            print(f"LOST: {error}")
            return 1
    print("0 lost")
    write_results(chosen.json, found)
    return 0


def _mark(path: str) -> None:
    with contextlib.suppress(OSError):
        Path(path).stat()


def _said(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit(main())
