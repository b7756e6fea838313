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
import itertools
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from toolchain.errors import InputError, ThimbleError
from toolchain.files import _lock
from toolchain.files._listing import (
    MARKER,
    content,
    entries,
    few,
    is_ours,
    list_of,
    parents,
    read_list,
    write_list,
)

_EARLIER = ("plan.json", "pipeline.json")
"""Files that versions without a list wrote."""
_WORK = ".thimble"
_LOCK, _BUILD, _SWAP, _OLD = "lock", "build-", "swap", "old"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_CANNOT_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
_LEADS = {
    errno.ENOENT: "to {}, which is not there: make that folder, or name another",
    errno.ELOOP: "that leads back to itself: name another folder",
}


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
        _foreign(target, folder, force)


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
            _foreign(target, folder, force)
            build = work / f"{_BUILD}{os.getpid()}"
            vanished = FileNotFoundError(errno.ENOENT, "it vanished while it was written")
            try:
                build.mkdir()
                try:
                    yield build
                except ThimbleError as error:
                    raise error if build.is_dir() else vanished from error
                if not build.is_dir():
                    raise vanished
                _install(build, target, folder, force, frozenset(reserved))
            except BaseException:
                with contextlib.suppress(OSError):
                    _recover(work, target)
                raise
            _recover(work, target)


def check_whole(folder: Path, remedy: str) -> str:
    """Raise InputError if `folder` lacks files that were written, or one was changed.

    `folder` is what was written, or a folder in it. A replacement that was interrupted is undone
    first. `remedy` tells the user what to do. The returned value stays the same as long as the same
    result is there; it is empty if Thimble never wrote one.
    """
    with _told(folder, "read"):
        target = Path(os.path.realpath(folder))
        for whole in (target, target.parent):
            work = _lock.beside(whole, _WORK)
            if not os.path.lexists(whole) and (work / _OLD).is_dir():
                with _work_folder(whole, whole) as locked:
                    _recover(locked, whole)
        root, listed = list_of(target)
        while listed is not None:
            bad = [name for name, digest in listed.items() if content(root / name) != digest]
            absent = [name for name in bad if not os.path.lexists(root / name)]
            before = listed
            root, listed = list_of(target)
            if listed != before:
                continue  # replaced meanwhile
            if absent:
                raise InputError(f"{folder} is incomplete ({few(absent)} missing): {remedy}")
            if bad:
                raise InputError(
                    f"{folder} was changed since it was written ({few(bad)}): {remedy}"
                )
            return hashlib.sha256(repr(sorted(listed.items())).encode()).hexdigest()
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
        root, listed = list_of(Path(os.path.realpath(folder)))
        target = Path(os.path.realpath(file))
        return (
            listed is not None
            and target.is_relative_to(root)
            and target.relative_to(root).as_posix() in {*listed, MARKER}
        )


@contextmanager
def _told(folder: Path, verb: str = "write") -> Iterator[None]:
    """An OSError in the block becomes an InputError that the user can act on."""
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


def _decided(folder: Path, inputs: Iterable[Path]) -> Path:
    """The folder that is meant, links followed. Raises InputError where it may not be replaced."""
    for part in (folder, *folder.parents):
        if part.is_symlink():
            try:
                part.stat()
            except OSError as error:
                if error.errno not in _LEADS:
                    raise
                leads = _LEADS[error.errno].format(part.readlink())
                raise InputError(f"{part} is a symbolic link {leads}") from error
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


def _foreign(target: Path, folder: Path, force: bool) -> list[str] | None:
    """The entries of `target` that are not Thimble's; None where nothing is to be replaced.

    Raises InputError where what is there may not be replaced.
    """
    there = entries(target) if target.exists() else []
    if not there:
        return None
    listed = read_list(target)
    if listed is None:
        earlier = not set(_EARLIER).isdisjoint(there)
        hint = ". If an earlier Thimble wrote it (it kept no list), delete it" if earlier else ""
        raise InputError(
            f"{folder} holds files that thimble did not write ({few(there)}): name another "
            f"folder, or move them away{hint}"
        )
    foreign = [name for name in there if not is_ours(name, listed)]
    if force:
        return foreign
    if foreign:
        raise InputError(
            f"{folder} holds files that thimble did not write ({few(foreign)}): move them away, "
            "name another folder, or --force to replace only what thimble wrote"
        )
    changed = [name for name in listed if content(target / name) not in (None, listed[name])]
    if changed:
        raise InputError(
            f"files in {folder} were changed since thimble wrote them ({few(changed)}): keep "
            "them elsewhere, name another folder, or --force to replace them"
        )
    return []


@contextmanager
def _work_folder(target: Path, folder: Path) -> Iterator[Path]:
    """The locked folder beside `target` in which the new result is built."""
    made = [parent for parent in target.parents if not parent.exists()]
    work = _lock.beside(target, _WORK)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(work, folder)
        try:
            yield work
        finally:
            with contextlib.suppress(OSError):
                if [path.name for path in work.iterdir()] == [_LOCK]:
                    (work / _LOCK).unlink()
            os.close(lock)
    finally:
        for empty in (work, *made):
            with contextlib.suppress(OSError):
                empty.rmdir()


def _locked(work: Path, folder: Path) -> int:
    """Make `work` and lock it. Returns the lock's descriptor; raises InputError where it is not
    Thimble's, is another user's, or locked.
    """
    while True:
        with contextlib.suppress(FileExistsError):
            work.mkdir()
        with contextlib.suppress(FileNotFoundError):
            names = [path.name for path in work.iterdir()]
            ours = {_LOCK, _SWAP, _OLD}
            strange = [n for n in names if n not in ours and not n.startswith(_BUILD)]
            if strange or work.is_symlink():
                raise InputError(
                    f"{work} is where thimble would build, and holds what it did not write "
                    f"({few(strange) or 'it is a link'}): move it away"
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
    for inside, _, _ in os.walk(build, topdown=False):
        with contextlib.suppress(OSError):
            Path(inside).rmdir()
    build.mkdir(exist_ok=True)
    write_list(build)
    foreign = _foreign(target, folder, force)
    if target.exists():
        build.chmod(stat.S_IMODE(target.stat().st_mode))
    if foreign is None:
        build.rename(target)  # onto nothing, or an empty folder: the system refuses any other
        return
    _carry_over(foreign, build, target, folder, reserved)
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


def _carry_over(
    foreign: Sequence[str], build: Path, target: Path, folder: Path, reserved: frozenset[str]
) -> None:
    """Give `build` the user's files of `target` too: the same ones, or copies if need be."""
    new = reserved.union(entries(build))
    inner = parents(new)
    clashing = [n for n in foreign if n in inner or {n.rstrip("/"), *parents([n])} & new]
    if clashing:
        raise InputError(
            f"{folder} holds files that thimble did not write and would have to overwrite "
            f"({few(clashing)}): move them away, or name another folder"
        )
    for name in foreign:
        folders = {*parents([name]), *([name] if name.endswith("/") else [])}
        for inside in sorted(folders):
            if not (build / inside).exists():
                (build / inside).mkdir()
                shutil.copystat(target / inside, build / inside)
        if name not in folders:
            try:
                os.link(target / name, build / name, follow_symlinks=False)
            except OSError:
                shutil.copy2(target / name, build / name, follow_symlinks=False)


def _flush(folder: Path) -> None:
    """Have the new result on the disk before the old one goes: power may fail, too."""
    for inside, _, files in os.walk(folder):
        for path in (Path(inside), *(Path(inside, name) for name in files)):
            if stat.S_IFMT(path.lstat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
                continue
            with contextlib.suppress(PermissionError):
                handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders change places at once; False where system or file system cannot."""
    system = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    rename = getattr(system, "renameat2", None)
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

    Files that `target` holds as well go, too. Any other file appeared or was changed meanwhile: it
    goes to `target`, or, where that has such a file, to a folder beside it, which the InputError
    names.
    """
    listed = read_list(aside) or {}
    for name in entries(aside):
        path, place = aside / name, target / name
        if (name in listed and (force or content(path) == listed[name])) or _same(path, place):
            if not name.endswith("/"):
                path.unlink()
        elif not is_ours(name, listed) and target.is_dir() and not os.path.lexists(place):
            with contextlib.suppress(FileExistsError, NotADirectoryError):
                place.parent.mkdir(parents=True, exist_ok=True)
                path.rename(place)
    *below, _ = (inside for inside, _, _ in os.walk(aside, topdown=False))
    for inside in below:
        with contextlib.suppress(OSError):
            Path(inside).rmdir()
    (aside / MARKER).unlink(missing_ok=True)
    try:
        aside.rmdir()
    except OSError:  # it is not empty
        kept = entries(aside)
        beside = (target.with_name(f"{target.name}.kept-{i}") for i in itertools.count(1))
        aside.rename(place := next(path for path in beside if not os.path.lexists(path)))
        raise InputError(
            f"{few(kept)} in {target} changed while thimble replaced it: the new result is there, "
            f"the changed files are in {place}"
        ) from None


def _same(one: Path, other: Path) -> bool:
    """Whether `other` holds what `one` does, so that nothing is lost with `one`."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return os.path.samestat(one.lstat(), other.lstat()) or content(one) == content(other)
    return False
