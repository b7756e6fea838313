"""Single files that Thimble writes, whole or not at all, and folders for the time of a command."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.support.refused import as_nobody, open_folder, small_disk
from toolchain.cli import run
from toolchain.errors import InputError
from toolchain.files import replaced_file, scratch_folder, write_file
from toolchain.frontends import model_file

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_users_mode_and_an_old_one_its_own(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_file(tmp_path / "new", "text")
        (tmp_path / "old").write_bytes(b"")
        (tmp_path / "old").chmod(0o640)
        write_file(tmp_path / "old", b"bytes")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o666 & ~umask
    assert mode(tmp_path / "old") == 0o640
    assert (tmp_path / "new").read_text() == "text"
    assert (tmp_path / "old").read_bytes() == b"bytes"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", str(DIGITS), "-b", "host", "--pareto", "--plot", "FILE"],
        ["plan", str(DIGITS), "-b", "host", "--json", "FILE"],
        ["edgetpu", "plan", str(DIGITS), "-n", "2", "--picture", "FILE"],
        ["cost", "export", "FILE"],
    ],
)
def test_commands_write_files_that_others_may_read(tmp_path: Path, arguments: list[str]) -> None:
    file = tmp_path / "file.svg"
    command = [str(file) if word == "FILE" else word for word in arguments]
    before = os.umask(0o022)
    try:
        assert run(command) == 0
    finally:
        os.umask(before)
    assert mode(file) == 0o644
    assert file.stat().st_size > 0
    assert [path.name for path in tmp_path.iterdir()] == ["file.svg"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_file(tmp_path / "file", "old")
    for name in ("file", "other"):
        with pytest.raises(ValueError, match="half"), replaced_file(tmp_path / name) as file:
            file.write(b"new")
            raise ValueError("half")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize("name", ["absent/file", "folder", "a" * 300, "loop", "file/below"])
def test_what_cannot_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"^cannot write ") as told:
        write_file(tmp_path / name, "text")
    assert "\n" not in str(told.value)
    assert run(["boards", "--json", str(tmp_path / name)]) == 2
    assert sorted(tmp_path.iterdir()) == before


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 18) as disk:
        write_file(disk / "file", "old")
        with pytest.raises(InputError, match=r"cannot write .*file: No space left on device"):
            write_file(disk / "file", bytes(1 << 19))
        with (
            pytest.raises(InputError, match="No space left on device"),
            replaced_file(disk / "file") as file,
        ):
            np.savez(file, values=np.zeros(1 << 19, np.uint8))  # type: ignore[arg-type]
        assert [path.name for path in disk.iterdir()] == ["file"]
        assert (disk / "file").read_text() == "old"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_is_told() -> None:
    assert run(["boards", "--json", "/dev/full"]) == 2
    command = [sys.executable, "-m", "toolchain.cli", "boards", "--json", "-"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, text=True)
    assert done.returncode == 2
    assert "error: cannot write the standard output: No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_leave_to_write_the_old_file_stays() -> None:
    with open_folder() as place:
        write_file(place / "file", "old")
        place.chmod(0o555)
        with as_nobody(), pytest.raises(InputError, match=r"cannot write .*: Permission denied"):
            write_file(place / "file", "new")
        assert (place / "file").read_text() == "old"


def test_what_is_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THIMBLE_MEASUREMENTS", str(tmp_path / "kept.sqlite"))
    for name in ("model.onnx", "kept.sqlite"):
        (tmp_path / name).write_bytes(b"mine")
        (tmp_path / f"to-{name}").symlink_to(name)
    before = {path.name for path in tmp_path.iterdir()}
    model, link = str(tmp_path / "model.onnx"), str(tmp_path / "to-model.onnx")
    for out in (model, link):
        assert run(["quantize", model, "-o", out, "--data", model]) == 2
        assert run(["quantize", link, "-o", out, "--data", model]) == 2
    for file in ("kept.sqlite", "to-kept.sqlite"):
        assert run(["cost", "export", str(tmp_path / file)]) == 2
    assert {path.name for path in tmp_path.iterdir()} == before
    assert (tmp_path / "model.onnx").read_bytes() == b"mine"
    assert (tmp_path / "kept.sqlite").read_bytes() == b"mine"


def test_links_and_open_files_stay(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("made")
    write_file(tmp_path / "link", "new")
    write_file(tmp_path / "dangling", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "dangling").is_symlink()
    assert (tmp_path / "file").read_text() == (tmp_path / "made").read_text() == "new"
    script = "from toolchain.files import write_file\nfrom pathlib import Path\n"
    script += "print('before', flush=True)\nwrite_file(Path('/dev/stdout'), 'text')\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"before\ntext"
    assert Path("/dev/stdout").exists()


def test_names_that_are_no_text(tmp_path: Path) -> None:
    write_file(tmp_path / "file", "of \udcff.tflite")
    assert (tmp_path / "file").read_text() == r"of \udcff.tflite"


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from toolchain.files import replaced_file\n"
        "with replaced_file(Path(sys.argv[1])) as file:\n"
        "    file.write(bytes(100000))\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    write_file(tmp_path / "file", "old")
    command = [sys.executable, "-c", script, str(tmp_path / "file")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert (tmp_path / "file").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2
    write_file(tmp_path / "file", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_writers_of_one_file_wait_for_each_other(tmp_path: Path) -> None:
    texts = [str(number) * 50_000 for number in range(8)]
    threads = [threading.Thread(target=write_file, args=(tmp_path / "f", t)) for t in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "f").read_text() in texts
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_folders_of_killed_commands_are_removed_by_the_next(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from toolchain.files import scratch_folder\n"
        "with scratch_folder(Path(sys.argv[1])) as folder:\n"
        "    (folder / 'deep').mkdir()\n    (folder / 'deep' / 'file').write_text('')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    (tmp_path / "thimble-notes").mkdir()
    (tmp_path / "thimble-notes" / "mine").write_bytes(b"mine")
    command = [sys.executable, "-c", script, str(tmp_path)]
    with scratch_folder(tmp_path) as held:
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert len(list(tmp_path.iterdir())) == 3
        with scratch_folder(tmp_path):
            left = {path.name for path in tmp_path.iterdir()}
            assert len(left) == 3 and {held.name, "thimble-notes"} < left
    assert [path.name for path in tmp_path.rglob("*")] == ["thimble-notes", "mine"]
    with pytest.raises(InputError, match=r"cannot write to"), scratch_folder(tmp_path / "absent"):
        pass


def test_results_of_a_failed_command_leave_no_file(tmp_path: Path) -> None:
    (tmp_path / "bad.tflite").write_bytes(b"bad")
    for arguments in (["plan"], ["verify", "-b", "host"], ["edgetpu", "plan"]):
        given = [*arguments, str(tmp_path / "bad.tflite"), "--json", str(tmp_path / "out.json")]
        assert run(given) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["bad.tflite"]
    assert run(["plan", str(DIGITS), "-b", "host", "--json", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text())["board"] == "host"


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "MODEL", "-b", "host", "--json", "MODEL"],
        ["plan", "MODEL", "-b", "host", "--plot", "LINK"],
        ["verify", "MODEL", "-b", "host", "--json", "MODEL"],
        ["schedule", "MODEL", "--json", "MODEL"],
        ["edgetpu", "plan", "MODEL", "-n", "2", "--picture", "MODEL"],
        ["arena", "MODEL", "-o", "MODEL"],
    ],
)
def test_what_is_read_is_not_written_over(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    model, link = tmp_path / "model.tflite", tmp_path / "link"
    model.write_bytes(DIGITS.read_bytes())
    link.symlink_to(model)
    places = {"MODEL": str(model), "LINK": str(link)}
    assert run([places.get(word, word) for word in arguments]) == 2
    assert "is read by this command" in " ".join(capfd.readouterr().err.split())
    assert model.read_bytes() == DIGITS.read_bytes()


def test_files_of_a_result_that_is_read_are_not_written_over(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stages = tmp_path / "stages"
    assert run(["edgetpu", "split", str(DIGITS), "-n", "2", "-o", str(stages)]) == 0
    for name in ("pipeline.json", ".thimble.json"):
        before = (stages / name).read_bytes()
        command = ["edgetpu", "simulate", str(stages), "--picture", str(stages / name)]
        assert run(command) == 2
        assert "belongs to the result in" in " ".join(capfd.readouterr().err.split())
        assert (stages / name).read_bytes() == before
    picture = stages / "picture.svg"
    for _ in range(2):  # a file beside them may be written, and written again
        assert run(["edgetpu", "simulate", str(stages), "--picture", str(picture)]) == 0


def test_two_results_need_two_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one = str(tmp_path / "one")
    assert run(["cost", "export", one, "--json", one]) == 2
    assert "named for two results" in " ".join(capfd.readouterr().err.split())
    assert not Path(one).exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["arena", "FILE", "--time-limit", "nan"],
        ["schedule", "FILE", "--time-limit", "nan"],
    ],
)
def test_nan_is_no_number(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run([str(tmp_path / "file") if word == "FILE" else word for word in arguments]) == 2
    assert "is NaN; it must be a number" in capfd.readouterr().err


def test_a_file_without_an_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(model_file, "LARGEST_FILE_BYTES", 1 << 20)
    assert run(["arena", "/dev/zero"]) == 2
    assert "/dev/zero is larger than" in capfd.readouterr().err
