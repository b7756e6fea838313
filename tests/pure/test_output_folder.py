"""Folders that Thimble writes: whole, replaced at once, and never over what others wrote."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.kills import NEW, OLD, THEIRS, VARIANTS, Variant, killed_at, tree, write_tree
from benchmarks.kills import replacing as replace_once
from tests.support.refused import NOBODY, as_nobody, open_folder, small_disk
from toolchain.errors import InputError, ResultError
from toolchain.files import (
    MARKER,
    _folders,
    check_folder,
    check_whole,
    file_stem,
    free_name,
    replaced_folder,
)

Files = dict[str, bytes]


def put(folder: Path, files: Files, **options: object) -> None:
    with replaced_folder(folder, **options) as fresh:  # type: ignore[arg-type]
        write_tree(fresh, files)


def alone(folder: Path) -> bool:
    """Whether nothing hidden lies beside `folder`."""
    return not [path for path in folder.parent.iterdir() if path.name.startswith(".")]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with an old result."""
    put(tmp_path / "out", OLD)
    return tmp_path / "out"


def test_a_folder_is_replaced_whole_and_lists_its_files(out: Path) -> None:
    assert tree(out) == OLD
    out.chmod(0o750)
    put(out, NEW)
    assert tree(out) == NEW
    assert alone(out)
    listed = json.loads((out / MARKER).read_text())
    assert listed["format"] == "thimble-output"
    assert listed["version"] == 1
    assert listed["files"].keys() == NEW.keys()
    assert stat.S_IMODE(out.stat().st_mode) == 0o750
    check_whole(out, "again")


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_modes_are_the_users(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        put(tmp_path / "a" / "out", NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a" / "out").stat().st_mode) == 0o777 & ~umask
    for name in (*NEW, MARKER):
        assert stat.S_IMODE((tmp_path / "a" / "out" / name).stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("named", ["plan.json", "pipeline.json", "notes.txt"])
def test_a_folder_of_others_is_refused(tmp_path: Path, named: str, force: bool) -> None:
    theirs = {**THEIRS, named: b"{}"}
    write_tree(tmp_path / "out", theirs)
    for check in (check_folder, put_new):
        with pytest.raises(InputError, match=rf"did not write .*{named}") as told:
            check(tmp_path / "out", force=force)
        assert ("earlier Thimble" in str(told.value)) == named.endswith(".json")
    assert tree(tmp_path / "out") == theirs
    assert alone(tmp_path / "out")


def put_new(folder: Path, *, force: bool = False) -> None:
    put(folder, NEW, force=force)


def test_many_files_are_named_by_the_first_few(tmp_path: Path) -> None:
    write_tree(tmp_path / "out", {f"{i:02}": b"" for i in range(12)})
    with pytest.raises(InputError, match=r"\(00, 01, 02, 03, 04 and 7 more\)"):
        check_folder(tmp_path / "out")


def test_added_files_are_kept(out: Path) -> None:
    write_tree(out, THEIRS)
    (out / "empty" / "folder").mkdir(parents=True)
    (out / "link").symlink_to("nowhere")
    os.mkfifo(out / "pipe")
    inodes = {name: (out / name).lstat().st_ino for name in (*THEIRS, "link", "pipe")}
    with pytest.raises(InputError, match=r"did not write \(empty/folder/, link, pipe, runtime/no"):
        put(out, NEW)
    assert tree(out) == {**OLD, **THEIRS}
    put(out, NEW, force=True)
    assert tree(out) == {**NEW, **THEIRS}
    assert {name: (out / name).lstat().st_ino for name in inodes} == inodes
    assert (out / "empty" / "folder").is_dir()
    assert (out / "link").readlink() == Path("nowhere")
    assert alone(out)
    check_whole(out, "again")


def test_files_are_kept_where_they_cannot_be_linked(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write_tree(out, THEIRS)
    put(out, NEW, force=True)
    assert tree(out) == {**NEW, **THEIRS}
    assert alone(out)


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_bytes(b"edited"),
        lambda file: (file.unlink(), file.symlink_to("model.c")),
        lambda file: (file.unlink(), file.mkdir()),
    ],
)
def test_changed_files_are_kept(out: Path, change: Callable[[Path], object]) -> None:
    change(out / "plan.json")
    kind = stat.S_IFMT((out / "plan.json").lstat().st_mode)
    with pytest.raises(InputError, match=r"plan\.json"):
        put(out, NEW)
    assert stat.S_IFMT((out / "plan.json").lstat().st_mode) == kind
    if kind == stat.S_IFDIR:  # theirs now, and in the way of a new file
        with pytest.raises(InputError, match=r"would have to overwrite \(plan\.json/\)"):
            put(out, NEW, force=True)
        return
    put(out, NEW, force=True)
    assert tree(out) == NEW
    assert not (out / "plan.json").is_symlink()
    assert alone(out)


def test_deleted_files_are_no_obstacle(out: Path) -> None:
    (out / "runtime" / "kernel.c").unlink()
    put(out, NEW)
    assert tree(out) == NEW


def test_a_link_out_of_the_folder_is_not_followed(out: Path, tmp_path: Path) -> None:
    write_tree(tmp_path / "mine", {"kernel.c": OLD["runtime/kernel.c"]})
    shutil.rmtree(out / "runtime")
    (out / "runtime").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="runtime"):
        put(out, NEW)
    put(out, NEW, force=True)
    assert tree(tmp_path / "mine") == {"kernel.c": OLD["runtime/kernel.c"]}
    assert (out / "runtime").is_symlink()


@pytest.mark.parametrize(
    ("theirs", "new"),
    [
        ({"include/model.h": b"mine"}, NEW),
        ({"include": b"a file"}, NEW),
        ({"model.h/notes": b"mine"}, {"model.h": b""}),
        ({"a_edgetpu.tflite": b"of another split"}, NEW),
    ],
)
def test_a_users_file_of_a_new_files_name_is_never_replaced(
    out: Path, theirs: Files, new: Files
) -> None:
    write_tree(out, theirs)
    with pytest.raises(InputError, match="would have to overwrite"):
        put(out, new, force=True, reserved=["a_edgetpu.tflite"])
    assert tree(out) == {**OLD, **theirs}
    assert alone(out)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "\udcff",
        "{" * 100_000,
        '{"format": "another"}',
        '{"format": "thimble-output", "version": 2, "tool": "", "files": {}}',
        '{"format": "thimble-output", "version": 1, "tool": "", "files": []}',
        *(
            json.dumps(
                {"format": "thimble-output", "version": 1, "tool": "", "files": {n: {"sha256": ""}}}
            )
            for n in ("../beside", "/etc/passwd", "a/../../b", "", "a//b", "./a", "a\0", MARKER)
        ),
    ],
)
def test_a_damaged_list_makes_no_folder_ours(out: Path, text: str) -> None:
    (out / MARKER).write_bytes(text.encode("utf-8", "surrogateescape"))
    before = tree(out)
    for force in (False, True):
        with pytest.raises(InputError, match="delete the folder"):
            put(out, NEW, force=force)
    with pytest.raises(InputError, match="damaged"):
        check_whole(out, "again")
    assert tree(out) == before


def test_a_list_that_is_a_link_is_none(out: Path, tmp_path: Path) -> None:
    (out / MARKER).rename(tmp_path / "list")
    (out / MARKER).symlink_to(tmp_path / "list")
    with pytest.raises(InputError, match="did not write"):
        put(out, NEW, force=True)
    assert tree(out) == OLD


# Which folder is meant


@pytest.mark.parametrize("name", ["x/../out", "./out/", "out/.", "via/out", "link"])
def test_the_resolved_path_decides(out: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = out.parent
    (place / "via").symlink_to(place)
    (place / "link").symlink_to(out)
    monkeypatch.chdir(place)
    put(Path(name), NEW)
    assert tree(out) == NEW
    assert (place / "link").is_symlink()
    write_tree(out, THEIRS)
    with pytest.raises(InputError, match=r"thesis\.txt"):
        put(Path(name), NEW)
    assert tree(out) == {**NEW, **THEIRS}
    assert {path.name for path in place.iterdir()} == {"out", "via", "link"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (".", "working folder"),
        ("..", "working folder"),
        ("x/../.", "working folder"),
        ("/", "working folder"),
        ("here", "working folder"),
        ("dangling", "symbolic link to .*nowhere"),
        ("dangling/below", "symbolic link to .*nowhere"),
        ("loop", "symbolic link that leads back to itself"),
        ("file", "is a file"),
        ("file/below", "cannot write"),
        ("a" * 300, "cannot write .*File name too long"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "place"
    here.mkdir()
    (here / "dangling").symlink_to("nowhere")
    (here / "loop").symlink_to("loop")
    (here / "here").symlink_to(here)
    (here / "file").write_bytes(b"mine")
    monkeypatch.chdir(here)
    for force in (False, True):
        with pytest.raises(InputError, match=said):
            put(Path(name), NEW, force=force)
    assert {path.name for path in here.iterdir()} == {"dangling", "loop", "here", "file"}
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_an_empty_working_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="working folder"):
        put(Path(), NEW)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(InputError, match="cannot write"):
        put(Path("out"), NEW)
    assert not list(tmp_path.iterdir())


def test_the_working_folder_may_not_lie_in_a_result(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(out / "runtime")
    for name in ("..", str(out), "../../out"):
        with pytest.raises(InputError, match="working folder"):
            put(Path(name), NEW)
    assert tree(out) == OLD


def test_home_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder in (tmp_path / "home", tmp_path):
        with pytest.raises(InputError, match="your home"):
            put(folder, NEW)
    put(tmp_path / "home" / "out", NEW)


def test_a_mount_point_is_refused() -> None:
    with pytest.raises(InputError, match="mounted"):
        put(Path("/proc"), NEW)


def test_the_folder_of_an_input_is_refused(out: Path) -> None:
    for name in ("model.c", "runtime/kernel.c"):
        with pytest.raises(InputError, match=f"{name} is read"):
            put(out, NEW, force=True, inputs=[out / name])
    assert tree(out) == OLD


def test_a_hidden_neighbour_of_others_is_not_touched(out: Path) -> None:
    write_tree(out.parent / ".out.thimble", {"diary": b"mine"})
    with pytest.raises(InputError, match="diary"):
        put(out, NEW)
    assert tree(out.parent / ".out.thimble") == {"diary": b"mine"}
    assert tree(out) == OLD


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_a_hidden_neighbour_of_another_user_is_not_used(out: Path) -> None:
    work = out.parent / ".out.thimble"
    work.mkdir()
    os.chown(work, NOBODY, NOBODY)
    with pytest.raises(InputError, match="another user"):
        put(out, NEW)
    assert tree(out) == OLD


def test_long_names_have_room_for_a_neighbour(tmp_path: Path) -> None:
    out = tmp_path / ("long" * 63)
    put(out, OLD)
    put(out, NEW)
    assert tree(out) == NEW
    assert alone(out)


def test_names_of_models_stay_in_the_folder() -> None:
    hostile = ["../../x", "/etc/passwd", "a\0b", "..", ".", "", ".hidden", "-o", "a\nb", "ä" * 300]
    for name in hostile:
        stem = file_stem(name)
        assert re.fullmatch(r"[\w+=@][\w.+=@-]{0,119}", stem, re.ASCII), (name, stem)
    assert file_stem("mobilenet_v2-1.0") == "mobilenet_v2-1.0"
    assert free_name("a", {"a", "a_2"}) == "a_3"
    assert free_name("A", {"a"}) == "A_2"


# When something goes wrong


@pytest.mark.parametrize("error", [ResultError("does not fit"), KeyboardInterrupt(), ValueError()])
def test_an_error_leaves_the_old_result(out: Path, error: BaseException) -> None:
    with pytest.raises(type(error)), replaced_folder(out) as fresh:
        write_tree(fresh, NEW)
        raise error
    assert tree(out) == OLD
    assert alone(out)
    deep = out.parent / "a" / "b" / "out"
    with pytest.raises(type(error)), replaced_folder(deep):
        raise error
    assert not (out.parent / "a").exists()


def test_a_full_disk_leaves_the_old_result(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        out = disk / "out"
        put(out, OLD)
        with pytest.raises(
            InputError, match=r"cannot write .*out: No space left on device"
        ) as told:
            put(out, {"large": bytes(1 << 21)})
        assert "\n" not in str(told.value)
        assert tree(out) == OLD
        assert alone(out)
        (disk / "filler").write_bytes(b"")
        with contextlib.suppress(OSError), (disk / "filler").open("wb") as file:
            file.write(bytes(1 << 21))
        with pytest.raises(InputError, match="No space left on device"):
            put(out, NEW)
        assert tree(out) == OLD
        (disk / "filler").unlink()
        put(out, NEW)
        assert tree(out) == NEW
        assert alone(out)


def test_where_nothing_may_be_written_nothing_changes() -> None:
    with open_folder() as place:
        out = place / "out"
        put(out, OLD)
        place.chmod(0o555)
        with as_nobody():
            with pytest.raises(InputError, match=r"cannot write .*out: Permission denied"):
                put(out, NEW)
            check_whole(out, "again")  # reading needs no leave to write
        place.chmod(0o777)
        out.chmod(0o555)
        with as_nobody(), pytest.raises(InputError, match="Permission denied"):
            put(out, NEW)
        out.chmod(0o755)
        assert tree(out) == OLD
        shutil.rmtree(place / ".out.thimble", ignore_errors=True)


@pytest.mark.parametrize("what", [".out.thimble", "."])
@pytest.mark.parametrize("error", [None, ResultError("gcc: no such file")])
def test_a_folder_that_vanishes(tmp_path: Path, what: str, error: Exception | None) -> None:
    out = tmp_path / "place" / "out"
    put(out, OLD)
    with pytest.raises(InputError, match=r"cannot write .*out: "), replaced_folder(out) as fresh:
        write_tree(fresh, NEW)
        shutil.rmtree(out.parent / what)
        if error:
            raise error
    if what == ".":
        assert not out.exists()
        return
    assert tree(out) == OLD
    assert alone(out)


def test_an_old_result_that_vanishes(out: Path) -> None:
    with replaced_folder(out) as fresh:
        write_tree(fresh, NEW)
        shutil.rmtree(out)
    assert tree(out) == NEW


def test_a_second_writer_is_refused(out: Path) -> None:
    with replaced_folder(out) as fresh:
        write_tree(fresh, NEW)
        for again in (check_folder, put_new):
            with pytest.raises(InputError, match=rf"another thimble \(process {os.getpid()}\)"):
                again(out)
        assert tree(out) == OLD
    assert tree(out) == NEW
    assert alone(out)


def test_processes_that_write_one_folder_at_once(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom toolchain.errors import InputError\n"
        "from toolchain.files import check_whole, replaced_folder\n"
        "done = 0\n"
        "while done < 20:\n"
        "    try:\n"
        "        with replaced_folder(Path(sys.argv[1])) as fresh:\n"
        "            (fresh / sys.argv[2]).write_text(sys.argv[2] * 1000)\n"
        "        done += 1\n"
        "    except InputError as error:\n"
        "        assert 'another thimble' in str(error), error\n"
        "        time.sleep(0.002)\n"
        "    check_whole(Path(sys.argv[1]), 'again')\n"
    )
    put(tmp_path / "out", OLD)
    command = [sys.executable, "-c", script, str(tmp_path / "out")]
    both = [
        subprocess.Popen([*command, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for name in "ab"
    ]
    for process in both:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
    (name,) = tree(tmp_path / "out")
    assert name in "ab"
    assert alone(tmp_path / "out")


def test_a_file_added_meanwhile_stops_the_replacement(out: Path) -> None:
    with pytest.raises(InputError, match=r"thesis\.txt"), replaced_folder(out) as fresh:
        write_tree(fresh, NEW)
        write_tree(out, THEIRS)
    assert tree(out) == {**OLD, **THEIRS}
    assert alone(out)


@pytest.mark.parametrize("exchange", [True, False])
def test_files_that_come_at_the_last_instant_are_kept(
    out: Path, exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _folders._exchanged

    def late(one: Path, other: Path) -> bool:
        write_tree(other, {"thesis.txt": b"new", "plan.json": b"edited"})
        return exchange and real(one, other)

    monkeypatch.setattr(_folders, "_exchanged", late)
    with pytest.raises(InputError, match=r"plan\.json .*out\.kept-1"):
        put(out, NEW)
    assert tree(out) == {**NEW, "thesis.txt": b"new"}
    assert tree(out.parent / "out.kept-1") == {"plan.json": b"edited"}
    assert alone(out)


# Killed processes


def test_a_killed_process_is_cleaned_up_after(out: Path) -> None:
    """Killed while building: the next start removes what it left, and nobody else's."""
    write_tree(out.parent / ".out.thimble" / "build-1-2", NEW)
    write_tree(out.parent / ".other", {"mine": b""})
    check_whole(out, "again")
    put(out, NEW)
    assert tree(out) == NEW
    assert {path.name for path in out.parent.iterdir()} == {"out", ".other"}


def test_a_loader_completes_an_interrupted_replacement(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where folders cannot be exchanged the old one is aside for an instant."""
    work = out.parent / ".out.thimble"
    put(work / "swap", NEW)
    out.rename(work / "old")
    with monkeypatch.context() as patch:
        patch.setattr(_folders, "_exchanged", lambda one, other: False)
        check_whole(out, "again")
    assert tree(out) == OLD
    assert alone(out)


CHANGES = {f"os.{name}" for name in ("mkdir", "rename", "remove", "rmdir", "link", "truncate")}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
def test_a_kill_before_any_change_to_a_file_loses_nothing(
    variant: Variant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The short form of `python -m benchmarks.kills`, which takes every system call."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    found, moment, killed = set(), 0, True
    while killed:
        moment += 1

        def kill(moment: int = moment) -> None:
            nonlocal killed
            killed = _killed_at_event(lambda: replace_once(variant, tmp_path / "place"), moment)

        found.add(killed_at(variant, tmp_path / "place", kill))
    assert moment > 10
    assert found == {"the old", "the new"}


_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _killed_at_event(work: Callable[[], object], moment: int) -> bool:
    """Do `work` in a child that kills itself before its change of that number to any file."""
    child = os.fork()
    if not child:
        left = moment

        def count(event: str, args: tuple[object, ...]) -> None:
            nonlocal left
            opens = event == "open" and isinstance(args[2], int) and args[2] & _WRITES
            if event in CHANGES or opens:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(count)
            work()
        finally:
            os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


# Loading


def test_a_loader_names_what_is_missing_or_changed(out: Path) -> None:
    whole = check_whole(out, "again")
    assert whole == check_whole(out / ".", "again")
    assert whole == check_whole(out / "runtime", "again")
    write_tree(out, THEIRS)
    assert whole == check_whole(out, "again")
    (out / "model.c").write_bytes(b"int odd;")
    with pytest.raises(InputError, match=r"changed since it was written \(model\.c\): do it again"):
        check_whole(out, "do it again")
    (out / "runtime" / "kernel.c").unlink()
    with pytest.raises(InputError, match=r"incomplete \(runtime/kernel\.c missing\): do it again"):
        check_whole(out, "do it again")
    (out / MARKER).unlink()
    with pytest.raises(InputError, match=r"has no \.thimble\.json.*do it again"):
        check_whole(out, "do it again")
    assert check_whole(out.parent, "again") == ""
