"""Where the CMSIS-NN sources are: the user's own, or a cached copy from the pinned PyPI wheel.

Only the sources below one folder of the wheel are used; it is never imported or installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

from toolchain.errors import InputError, MissingToolError
from toolchain.files import scratch_folder
from toolchain.kernels.c_sources import CTree
from toolchain.progress import Report, silent

ENVIRONMENT_VARIABLE = "CMSIS_NN_DIR"
PINNED_WHEEL = "aidge_export_arm_cortexm==0.2.1"
_WHEEL_FOLDER = PurePosixPath("aidge_export_arm_cortexm/_CMSIS-NN/CMSIS-NN")
_FOLDERS = ("Include", "Source")
_CACHED_NAME = "cmsis-nn-5.0.0"
_TREE_SHA256 = "75ea5e9f63ac6b65979b7b7a8aff187ee7c64af4d062632fc82bd78937120f96"


def cache_folder() -> Path:
    """The user's cache for Thimble (`$XDG_CACHE_HOME/thimble`); not created here."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return root / "thimble"


def cached_folder() -> Path:
    """The folder that keeps the pinned sources."""
    return cache_folder() / _CACHED_NAME


def is_named(function: str) -> bool:
    """Whether a C function is CMSIS-NN's, by its name."""
    return function.startswith("arm_")


def tree(folder: Path) -> CTree:
    """CMSIS-NN's sources and include folder."""
    return CTree(folder / "Source", folder / "Include")


def installed(explicit: Path | None = None) -> Path | None:
    """The CMSIS-NN folder if there is one already: given, `$CMSIS_NN_DIR`, or the cache.

    Raises InputError where a named folder contains no CMSIS-NN.
    """
    if explicit is not None:
        return _checked(explicit, "--cmsis-nn")
    named = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if named:
        return _checked(Path(named), f"${ENVIRONMENT_VARIABLE}")
    cached = cached_folder()
    return cached if cached.is_dir() and _digest(cached) == _TREE_SHA256 else None


def find(explicit: Path | None = None, *, report: Report = silent) -> Path:
    """As `installed`, but fills the cache from the pinned wheel if nothing is there yet.

    `report` gets one line before the download. Raises MissingToolError with the remedy where the
    wheel cannot be fetched or is not the pinned one.
    """
    present = installed(explicit)
    if present is not None:
        return present
    report(f"fetching the CMSIS-NN sources ({PINNED_WHEEL} from the package index)")
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with scratch_folder(cache) as scratch:
            unpacked = _unpack(_download(scratch), scratch / "unpacked")
            return _move_into_place(unpacked, cached_folder())
    except (OSError, InputError) as error:
        raise MissingToolError(
            f"cannot keep the CMSIS-NN sources in {cache}: {error}; "
            f"set XDG_CACHE_HOME, or {ENVIRONMENT_VARIABLE} to a CMSIS-NN checkout"
        ) from error


def version(folder: Path) -> str:
    """The version of CMSIS-NN in a folder: the pinned version, or a digest of another."""
    digest = _digest(folder)
    return _CACHED_NAME if digest == _TREE_SHA256 else f"cmsis-nn-{digest[:12]}"


def _checked(folder: Path, origin: str) -> Path:
    for part in ("Include/arm_nnfunctions.h", "Source"):
        if not (folder / part).exists():
            raise InputError(f"{origin} is {folder}, which is not CMSIS-NN: it has no {part}")
    return folder.resolve()


def _digest(folder: Path) -> str:
    """SHA-256 over the paths and contents of all files that are used."""
    total = hashlib.sha256()
    for part in _FOLDERS:
        for path in sorted((folder / part).rglob("*")):
            if path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                total.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return total.hexdigest()


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
    command += ["--quiet", "--no-deps", "--only-binary=:all:", "--retries", "2"]
    command += ["--dest", str(folder), PINNED_WHEEL]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["pip gave no reason"]
        why = next((line for line in reversed(lines) if "ERROR" in line), lines[-1])
        raise MissingToolError(
            f"cannot fetch the CMSIS-NN sources: {why}; check pip and the network and run again, "
            f"or point {ENVIRONMENT_VARIABLE} (or --cmsis-nn) to a CMSIS-NN checkout"
        )
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                path = PurePosixPath(entry.filename)
                if entry.is_dir() or not path.is_relative_to(_WHEEL_FOLDER) or ".." in path.parts:
                    continue
                inside = path.relative_to(_WHEEL_FOLDER)
                if inside.parts[0] in _FOLDERS:
                    (target / inside).parent.mkdir(parents=True, exist_ok=True)
                    (target / inside).write_bytes(archive.read(entry))
    except zipfile.BadZipFile as error:
        raise MissingToolError(f"{wheel.name} is damaged ({error}); run again") from error
    if _digest(target) != _TREE_SHA256:
        raise MissingToolError(
            f"{wheel.name} does not hold the pinned CMSIS-NN sources (digest {_digest(target)}, "
            f"not {_TREE_SHA256}); check which package index pip uses"
        )
    return target


def _move_into_place(source: Path, target: Path) -> Path:
    """Rename, which is atomic; another process may do the same at the same time."""
    try:
        source.rename(target)
    except OSError:
        if _digest(target) == _TREE_SHA256:
            return target
        damaged = source.with_name("damaged")
        target.rename(damaged)
        shutil.rmtree(damaged)
        source.rename(target)
    return target


if __name__ == "__main__":
    print(find())
