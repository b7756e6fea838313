"""A folder of results, replaced completely and recognised as Thimble's by the list of its files.

At every instant the folder is either the old result or the new one. The new one is built beside it,
in a hidden folder that is also the lock. Then the two are exchanged (renameat2 on Linux), or, if
the file system cannot do that, swapped by two renames that the next process completes if this one
is killed. The replaced folder is deleted file by file: only listed files that are unchanged, and
nothing else.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from toolchain.errors import InputError, ThimbleError
from toolchain.files import _lock
from toolchain.files.records import read_json
from toolchain.version import __version__

MARKER = ".thimble.json"
"""The list of a folder's files, with their hashes, in the folder."""
FORMAT = "thimble-output"
VERSION = 1
_EARLIER = ("plan.json", "pipeline.json")
"""What versions without a list wrote."""
_WORK = ".thimble"
_LOCK, _BUILD, _SWAP, _OLD = "lock", "build-", "swap", "old"
_SHOWN = 5
_VANISHED = "it vanished while it was written"
_CHUNK_BYTES = 1 << 20
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_CANNOT_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


@dataclass(frozen=True)
class Marker:
    """`files`: the path of each file in the folder, with slashes, to its SHA-256."""

    tool: str
    files: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Digest of the list."""
        return hashlib.sha256(repr(sorted(self.files.items())).encode()).hexdigest()

    @property
    def folders(self) -> frozenset[str]:
        """The folders that contain the files."""
        return frozenset(
            parent.as_posix() for file in self.files for parent in PurePosixPath(file).parents
        )


def check_folder(folder: Path, *, force: bool = False, inputs: Iterable[Path] = ()) -> None:
    """Raise InputError where `replaced_folder` would refuse. Nothing is changed."""
    with _told(folder):
        target = _decided(folder, inputs)
        work = _lock.beside(target, _WORK)
        with contextlib.suppress(FileNotFoundError):
            handle = _lock.take(work / _LOCK, make=False)
            if handle is None:
                raise _busy(folder, work)
            os.close(handle)
        _examine(target, folder, force)


@contextmanager
def replaced_folder(
    folder: Path,
    *,
    force: bool = False,
    inputs: Iterable[Path] = (),
    reserved: Iterable[str] = (),
) -> Iterator[Path]:
    """An empty folder that takes the place of `folder` if the block ends without an error.

    Refused (InputError, before anything is changed): a folder that Thimble did not write, or in
    which files were added or changed since. With `force` it replaces what it wrote, changed or not,
    and keeps the rest. Always refused: the working folder, the home folder, their parents, a mount
    point, a folder that holds one of `inputs`, a folder in which a file of somebody else has the
    name of a new one or of `reserved` (paths below `folder`, with slashes), and a folder that
    another process is writing.

    Raises InputError also if the system refuses: a full disk, no permission to write. The old
    result is then unchanged.
    """
    with _told(folder):
        target = _decided(folder, inputs)
        with _work_folder(target, folder) as work:
            _recover(work, target)
            _examine(target, folder, force)
            build = work / f"{_BUILD}{os.getpid()}-{secrets.token_hex(4)}"
            try:
                build.mkdir()
                with _vanishing(build):
                    yield build
                _install(build, target, folder, force, frozenset(reserved))
            except BaseException:
                with contextlib.suppress(OSError):
                    _recover(work, target)
                raise
            _recover(work, target)


@contextmanager
def _vanishing(build: Path) -> Iterator[None]:
    """Whatever fails because the folder has gone: that is what the user is told."""
    try:
        yield
    except ThimbleError as error:
        if not build.is_dir():
            raise FileNotFoundError(errno.ENOENT, _VANISHED) from error
        raise
    if not build.is_dir():
        raise FileNotFoundError(errno.ENOENT, _VANISHED)


def check_whole(folder: Path, remedy: str) -> str:
    """Raise InputError if `folder` lacks files that were written, or one was changed.

    `folder` is what was written, or a folder in it. A replacement that was interrupted is undone
    first. `remedy` tells the user what to do. The returned value stays the same as long as the same
    result is there; it is empty if Thimble never wrote one.
    """
    with _told(folder, "read"):
        target = Path(os.path.realpath(folder))
        for whole in (target, target.parent):
            _undo(whole)
        root, marker = _list_of(target)
        while marker is not None:
            bad = [
                name for name, digest in marker.files.items() if not _is_file(root / name, digest)
            ]
            absent = [name for name in bad if not os.path.lexists(root / name)]
            before = marker
            root, marker = _list_of(target)
            if marker != before:
                continue  # replaced meanwhile
            if absent:
                raise InputError(f"{folder} is incomplete ({_few(absent)} missing): {remedy}")
            if bad:
                raise InputError(
                    f"{folder} was changed since it was written ({_few(bad)}): {remedy}"
                )
            return marker.digest
        if any((target / name).exists() for name in _EARLIER):
            raise InputError(
                f"{folder} has no {MARKER}, the list of its files: it was copied in part, or an "
                f"earlier Thimble wrote it; {remedy}"
            )
        return ""


def is_listed(file: Path, folder: Path) -> bool:
    """Whether `file` was written with the result in `folder`, or is its list.

    `folder` is what was written, or a folder in it. Raises InputError if its list is damaged.
    """
    with _told(folder, "read"):
        root, marker = _list_of(Path(os.path.realpath(folder)))
        target = Path(os.path.realpath(file))
        if marker is None or not target.is_relative_to(root):
            return False
        name = target.relative_to(root).as_posix()
        return name == MARKER or name in marker.files


def _list_of(target: Path) -> tuple[Path, Marker | None]:
    """The folder that was written whole, `target` or the one above it, and its list."""
    for root in (target, target.parent):
        marker = _marker(root)
        if marker is not None and (root == target or target.name in marker.folders):
            return root, marker
    return target, None


def _undo(target: Path) -> None:
    """Put back what a killed process had renamed, where it could not exchange two folders."""
    work = _lock.beside(target, _WORK)
    if not os.path.lexists(target) and (work / _OLD).is_dir():
        with _work_folder(target, target) as locked:
            _recover(locked, target)


@contextmanager
def _told(folder: Path, verb: str = "write") -> Iterator[None]:
    """What the system refuses is an error that the user can act on."""
    try:
        yield
    except OSError as error:
        place = str(error.filename or folder)
        where = "" if f"{_WORK}/" in place or place == str(folder) else f" ({place})"
        raise InputError(f"cannot {verb} {folder}: {error.strerror or error}{where}") from error


def _busy(folder: Path, work: Path) -> InputError:
    holder = ""
    with contextlib.suppress(OSError):
        holder = (work / _LOCK).read_text(encoding="ascii", errors="replace").strip()
    by = f" (process {holder})" if holder.isdigit() else ""
    return InputError(
        f"another thimble{by} is writing {folder}: wait for it, or name another folder"
    )


def _leads_nowhere(link: Path) -> bool:
    """Whether a link leads to itself, or through more links than the system follows."""
    try:
        link.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _decided(folder: Path, inputs: Iterable[Path]) -> Path:
    """The folder that is meant, links followed. Raises InputError where it may not be replaced."""
    for part in (folder, *folder.parents):
        if part.is_symlink() and not part.exists():
            if _leads_nowhere(part):
                raise InputError(
                    f"{part} is a symbolic link that leads back to itself: name another folder"
                )
            raise InputError(
                f"{part} is a symbolic link to {part.readlink()}, which is not there: make that "
                "folder, or name another"
            )
    here, target = Path.cwd(), Path(os.path.realpath(folder))
    shown = f"{folder}" if folder == target else f"{folder} ({target})"
    if target.exists() and not target.is_dir():
        raise InputError(f"{folder} is a file; name a folder")
    if here.is_relative_to(target):
        raise InputError(
            f"{shown} is the working folder or lies above it, and a result is replaced whole: "
            "name a folder below"
        )
    with contextlib.suppress(RuntimeError):
        if Path(os.path.realpath(Path.home())).is_relative_to(target):
            raise InputError(f"{shown} is your home or lies above it: name a folder below")
    if os.path.ismount(target):
        raise InputError(
            f"{shown} is where a file system is mounted, and cannot be replaced whole: name a "
            f"folder in it, such as {folder / 'model'}"
        )
    for file in inputs:
        if Path(os.path.realpath(file)).is_relative_to(target):
            raise InputError(f"{file} is read, and lies in {folder}: name another folder to write")
    return target


def _marker(folder: Path) -> Marker | None:
    """A folder's list; None where it has none. Raises InputError where that is damaged."""
    file = folder / MARKER
    if file.is_symlink() or not file.is_file():
        return None
    try:
        data = read_json(file)
        if data["format"] != FORMAT:
            raise ValueError("another format")
        if data["version"] != VERSION:
            raise ValueError(f"version {data['version']!r}, this Thimble knows {VERSION}")
        files = {}
        for name, entry in data["files"].items():
            parts = name.split("/")
            if not all(parts) or {".", ".."} & set(parts) or "\0" in name or name == MARKER:
                raise ValueError(f"{name!r} is no file in the folder")
            files[name] = str(entry["sha256"])
        return Marker(str(data["tool"]), files)
    except (InputError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file}, the list of what thimble wrote, is damaged ({error}): move what you need, "
            "delete the folder"
        ) from error


def _entries(folder: Path) -> list[str]:
    """Every file below, and every empty folder with a slash after it; links are not followed."""
    found: list[str] = []

    def walk(inside: Path, prefix: str) -> None:
        with os.scandir(inside) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                name = f"{prefix}{entry.name}"
                if not entry.is_dir(follow_symlinks=False):
                    found.append(name)
                    continue
                before = len(found)
                walk(inside / entry.name, f"{name}/")
                if len(found) == before:
                    found.append(f"{name}/")

    walk(folder, "")
    return found


def _is_file(path: Path, digest: str) -> bool:
    """Whether a file with these contents is there, and no link to one."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        return _sha256(path) == digest
    except (FileNotFoundError, NotADirectoryError):
        return False


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(n if n.isprintable() else ascii(n) for n in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


@dataclass(frozen=True)
class _Previous:
    """What a folder to be replaced holds: its list, and the paths that are not of it."""

    marker: Marker
    foreign: tuple[str, ...]


def _examine(target: Path, folder: Path, force: bool) -> _Previous | None:
    """What is to be replaced; None where there is nothing. Raises InputError where it may not."""
    if not target.exists():
        return None
    entries = _entries(target)
    if not entries:
        return None
    marker = _marker(target)
    if marker is None:
        earlier = any(name in _EARLIER for name in entries)
        hint = ". If an earlier Thimble wrote it (it kept no list), delete it" if earlier else ""
        raise InputError(
            f"{folder} holds files that thimble did not write ({_few(entries)}): name another "
            f"folder, or move them away{hint}"
        )
    foreign = [name for name in entries if _is_foreign(name, marker)]
    if force:
        return _Previous(marker, tuple(foreign))
    if foreign:
        raise InputError(
            f"{folder} holds files that thimble did not write ({_few(foreign)}): move them away, "
            "name another folder, or --force to replace only what thimble wrote"
        )
    changed = [
        name
        for name, digest in marker.files.items()
        if os.path.lexists(target / name) and not _is_file(target / name, digest)
    ]
    if changed:
        raise InputError(
            f"files in {folder} were changed since thimble wrote them ({_few(changed)}): keep "
            "them elsewhere, name another folder, or --force to replace them"
        )
    return _Previous(marker, ())


def _is_foreign(name: str, marker: Marker) -> bool:
    return not (name == MARKER or name in marker.files or _emptied(name, marker))


def _emptied(name: str, marker: Marker) -> bool:
    """Whether an entry is a folder of listed files that has lost them."""
    return name.endswith("/") and name[:-1] in marker.folders


@contextmanager
def _work_folder(target: Path, folder: Path) -> Iterator[Path]:
    """The locked folder beside `target` in which the new result is built."""
    made = [parent for parent in target.parents if not parent.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = _lock.beside(target, _WORK)
        try:
            lock = _locked(work, folder)
        except BaseException:
            with contextlib.suppress(OSError):
                work.rmdir()  # where it is empty
            raise
        try:
            yield work
        finally:
            with contextlib.suppress(OSError):
                if [path.name for path in work.iterdir()] == [_LOCK]:
                    (work / _LOCK).unlink()
                    work.rmdir()
            os.close(lock)
    finally:
        for parent in made:
            with contextlib.suppress(OSError):
                parent.rmdir()


def _locked(work: Path, folder: Path) -> int:
    while True:
        with contextlib.suppress(FileExistsError):
            work.mkdir()
        with contextlib.suppress(FileNotFoundError):
            strange = [
                name
                for name in (path.name for path in work.iterdir())
                if name not in (_LOCK, _SWAP, _OLD) and not name.startswith(_BUILD)
            ]
            if strange or work.is_symlink():
                raise InputError(
                    f"{work} is where thimble would build, and holds what it did not write "
                    f"({_few(strange) or 'it is a link'}): move it away"
                )
            if not _lock.is_ours(work.stat()):
                raise InputError(
                    f"{work}, where thimble would build, belongs to another user: they write "
                    f"{folder}, or were interrupted; wait, or remove it"
                )
            lock = _lock.take(work / _LOCK)
            if lock is None:
                raise _busy(folder, work)
            with contextlib.suppress(OSError):  # a full disk is told of where it matters
                os.truncate(lock, 0)
                os.write(lock, f"{os.getpid()}\n".encode())
            return lock


def _recover(work: Path, target: Path) -> None:
    """Finish what was begun: the old or the new result in its place, nothing beside it."""
    old, swap = work / _OLD, work / _SWAP
    if old.exists() and swap.exists() and not os.path.lexists(target):
        old.rename(target)
    for build in work.glob(f"{_BUILD}*"):
        shutil.rmtree(build, ignore_errors=True)
    for aside in (swap, old):
        if aside.exists():
            _discard(aside, target)


def _install(
    build: Path, target: Path, folder: Path, force: bool, reserved: frozenset[str]
) -> None:
    """Make `build` the result in the place of `target`."""
    _list_files(build)
    previous = _examine(target, folder, force)
    if target.exists():
        build.chmod(stat.S_IMODE(target.stat().st_mode))
    if previous is None:
        build.rename(target)  # onto nothing, or an empty folder: the system refuses any other
        return
    _carry_over(previous.foreign, build, target, folder, reserved)
    _flush(build)
    aside = build.with_name(_SWAP)
    build.rename(aside)
    if not _exchanged(aside, target):
        old = build.with_name(_OLD)
        target.rename(old)
        aside.rename(target)
        aside = old
    try:
        _discard(aside, target, force=force)
    except OSError as error:
        raise InputError(
            f"{folder} is written; what it replaces cannot be deleted from {aside}: "
            f"{error.strerror or error}"
        ) from error


def _list_files(build: Path) -> None:
    """Write the list of the files in `build`, which loses folders that hold none."""
    for inside, _, _ in os.walk(build, topdown=False):
        with contextlib.suppress(OSError):
            Path(inside).rmdir()
    build.mkdir(exist_ok=True)
    files = {name: {"sha256": _sha256(build / name)} for name in _entries(build)}
    data = {"format": FORMAT, "version": VERSION, "tool": __version__, "files": files}
    (build / MARKER).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _carry_over(
    foreign: Sequence[str], build: Path, target: Path, folder: Path, reserved: frozenset[str]
) -> None:
    """Give `build` the user's files of `target` too: the same ones, or copies if need be."""
    new = set(_entries(build)) | reserved
    inner = {parent.as_posix() for name in new for parent in PurePosixPath(name).parents}
    clashing = [
        name
        for name in foreign
        if name.rstrip("/") in new
        or (name in inner and not name.endswith("/"))
        or any(parent.as_posix() in new for parent in PurePosixPath(name).parents)
    ]
    if clashing:
        raise InputError(
            f"{folder} holds files that thimble did not write and would have to overwrite "
            f"({_few(clashing)}): move them away, or name another folder"
        )
    for name in foreign:
        for parent in reversed(PurePosixPath(name).parents):
            if not (build / parent).exists():
                (build / parent).mkdir()
                shutil.copystat(target / parent, build / parent)
        if name.endswith("/"):
            (build / name).mkdir(exist_ok=True)
            shutil.copystat(target / name, build / name)
            continue
        try:
            os.link(target / name, build / name, follow_symlinks=False)
        except OSError:
            shutil.copy2(target / name, build / name, follow_symlinks=False)


def _flush(folder: Path) -> None:
    """Have the new result on the disk before the old one goes: power may fail, too."""
    paths = [folder / name for name in _entries(folder)]
    files = [path for path in paths if stat.S_ISREG(path.lstat().st_mode)]
    for path in (*files, *(Path(inside) for inside, _, _ in os.walk(folder))):
        with contextlib.suppress(PermissionError):
            handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders change places at once; False where system or file system cannot."""
    if os.name != "posix":
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    paths = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other))
    if rename(*paths, _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(other))


def _discard(aside: Path, target: Path, *, force: bool = False) -> None:
    """Delete what was replaced, `aside`: files of its list as they were written (any with `force`).

    And what `target` holds as well. What else there is appeared or was changed meanwhile: it goes
    to `target`, or, where that has such a file, to a folder beside it, which the InputError names.
    """
    marker = _marker(aside) or Marker("", {})
    strays = []
    for name in _entries(aside):
        path = aside / name
        if name == MARKER or _emptied(name, marker):
            continue
        listed = name in marker.files and (force or _is_file(path, marker.files[name]))
        if not listed and not _same(path, target / name):
            strays.append(name)
        elif not name.endswith("/"):
            path.unlink()
    kept = [name for name in strays if not _put_back(aside / name, target, name)]
    place = _keep(aside, kept, target) if kept else None
    for inside, _, _ in os.walk(aside, topdown=False):
        if Path(inside) != aside:
            Path(inside).rmdir()
    (aside / MARKER).unlink(missing_ok=True)
    aside.rmdir()
    if place is not None:
        raise InputError(
            f"{_few(kept)} in {target} changed while thimble replaced it: the new result is there, "
            f"the changed files are in {place}"
        )


def _same(one: Path, other: Path) -> bool:
    """Whether `other` holds what `one` does, so that nothing is lost with `one`."""
    try:
        first, second = one.lstat(), other.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    if os.path.samestat(first, second):
        return True
    if stat.S_IFMT(first.st_mode) != stat.S_IFMT(second.st_mode):
        return False
    if stat.S_ISDIR(first.st_mode):
        return True  # empty ones are asked about
    if stat.S_ISLNK(first.st_mode):
        return one.readlink() == other.readlink()
    return stat.S_ISREG(first.st_mode) and _sha256(one) == _sha256(other)


def _put_back(path: Path, target: Path, name: str) -> bool:
    """Move a user's file to where it lay, unless something else lies there now."""
    place = target / name
    if os.path.lexists(place) or not target.is_dir():
        return False
    with contextlib.suppress(FileExistsError, NotADirectoryError):
        place.parent.mkdir(parents=True, exist_ok=True)
        if Path(os.path.realpath(place.parent)) == place.parent:
            path.rename(place)
            return True
    return False


def _keep(aside: Path, names: Sequence[str], target: Path) -> Path:
    """Move a user's files to a new folder beside `target`."""
    number = 1
    while True:
        place = target.with_name(f"{target.name}.kept-{number}")
        with contextlib.suppress(FileExistsError):
            place.mkdir()
            break
        number += 1
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (aside / name).rename(place / name)
    return place
