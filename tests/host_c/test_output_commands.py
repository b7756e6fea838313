"""Commands that write folders (`compile`, `verify -o`, `edgetpu split`) and that read them."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from benchmarks.kills import THEIRS, tree, write_tree
from tests.support.refused import small_disk
from toolchain.cli import run
from toolchain.edgetpu.run.folder import read_folder
from toolchain.files import MARKER

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
COLLISION = ROOT.parent / "shared" / "hostile" / "edgetpu_collision"
OLD = "of the past"


def compiling(out: Path, *more: str, board: str = "host") -> list[str]:
    return ["compile", str(DIGITS), "-b", board, "-o", str(out), *more]


LIBRARY = ("--library", "--no-split")
"""No search for splits: it takes most of the time and writes no other files."""
COMMANDS = {
    "compile": compiling,
    "library": lambda out, *more: compiling(out, *LIBRARY, *more, board="netduinoplus2"),
    "shared": lambda out, *more: [
        *("compile", str(DIGITS), str(DIGITS), "-b", "netduinoplus2", "--share-arena", *LIBRARY),
        *("-o", str(out), *more),
    ],
    "verify": lambda out, *more: [
        *("verify", str(DIGITS), "-b", "host", "--runs", "1", "-o", str(out), *more)
    ],
    "split": lambda out, *more: [
        *("edgetpu", "split", str(DIGITS), "-n", "2", "-o", str(out), *more)
    ],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_user_put_there_is_never_lost(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, out = COMMANDS[name], tmp_path / "out"
    assert run(command(out)) == 0
    ours = tree(out)
    assert json.loads((out / MARKER).read_text())["files"].keys() == ours.keys()
    assert run(command(out)) == 0  # its own folder is replaced without a word
    assert tree(out).keys() == ours.keys()
    write_tree(out, THEIRS)
    capsys.readouterr()
    assert run(command(out)) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "thesis.txt" in told and "--force" in told
    assert run(command(out, "--force")) == 0
    assert tree(out).keys() == ours.keys() | THEIRS.keys()
    assert {name: tree(out)[name] for name in THEIRS} == THEIRS
    for file in THEIRS:
        (out / file).unlink()
    for folder in ("src/deep", "src", "runtime"):
        with contextlib.suppress(OSError):
            (out / folder).rmdir()
    changed = next(iter(ours))
    (out / changed).write_text(OLD)
    assert run(command(out)) == 2
    assert changed in capsys.readouterr().err
    assert (out / changed).read_text() == OLD
    assert run(command(out, "--force")) == 0
    assert tree(out).keys() == ours.keys()
    assert (out / changed).read_text(errors="replace") != OLD
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("decoy", ["plan.json", "pipeline.json"])
def test_a_file_of_our_name_does_not_make_a_folder_ours(
    name: str, decoy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = {**THEIRS, decoy: b'{"board": "host"}'}
    write_tree(tmp_path / "work", theirs)
    for more in ([], ["--force"]):
        assert run(COMMANDS[name](tmp_path / "work", *more)) == 2
        assert "did not write" in capsys.readouterr().err
    assert tree(tmp_path / "work") == theirs


def test_a_result_may_not_name_a_file_in_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("compile", "verify", "split"):
        out = tmp_path / name
        assert run(COMMANDS[name](out, "--json", str(out / "x" / ".." / "report.json"))) == 2
        assert "name a file elsewhere" in capsys.readouterr().err
        assert not out.exists()


@pytest.mark.parametrize("name", ["..", "models/..", "."])
def test_the_folder_of_the_model_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    shutil.copy(DIGITS, tmp_path / "model.tflite")
    monkeypatch.chdir(tmp_path / "models")
    before = tree(tmp_path)
    for command in (["compile", "-b", "host"], ["edgetpu", "split", "-n", "2"]):
        assert run([*command, "../model.tflite", "-o", name, "--force"]) == 2
    assert tree(tmp_path) == before


@pytest.mark.parametrize("command", [["run"], ["profile"], ["flash", "--dry-run"]])
def test_a_folder_that_lacks_a_file_is_not_run(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(compiling(out)) == 0
    (out / "digits_int8_weights.h").unlink()
    capsys.readouterr()
    assert run([*command, str(out)]) == 2
    told = capsys.readouterr().err
    assert "incomplete (digits_int8_weights.h missing): compile again" in told
    assert told.count("\n") == 1
    assert run(compiling(out)) == 0
    (out / MARKER).unlink()
    assert run([*command, str(out)]) == 2
    assert "compile again" in capsys.readouterr().err
    assert run(compiling(out)) == 2
    assert "earlier Thimble" in capsys.readouterr().err


def test_one_of_several_models_is_checked_with_the_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shared = ["compile", str(DIGITS), str(DIGITS), "--share-arena", "-b", "host", "-o", str(out)]
    assert run(shared) == 0
    assert run(["run", str(out / "digits_int8_2")]) == 0
    (out / "digits_int8_2" / "main.c").unlink()
    assert run(["run", str(out / "digits_int8")]) == 2
    assert "digits_int8_2/main.c" in capsys.readouterr().err
    assert run([*shared[:-1], str(out / "digits_int8")]) == 2
    assert "did not write" in capsys.readouterr().err


def test_stages_of_models_with_colliding_names(tmp_path: Path) -> None:
    models = []
    for folder, name in (("1", "a"), ("2", "a_2"), ("3", "a"), ("4", "A"), ("5", ".a\nb")):
        (tmp_path / folder).mkdir()
        models.append(str(shutil.copy(DIGITS, tmp_path / folder / f"{name}.tflite")))
    given = [sorted(map(str, COLLISION.rglob("*.tflite")))] if COLLISION.is_dir() else []
    for number, files in enumerate((models, *given)):
        out = tmp_path / f"out{number}"
        assert run(["edgetpu", "split", *files, "-n", "2", "-o", str(out)]) == 0
        read = read_folder(out)
        names = {stage.file.lower() for model in read.models for stage in model.stages}
        assert len(names) == 2 * len(files) == len(list(out.glob("*.tflite")))


def test_names_in_a_model_stay_names(tmp_path: Path) -> None:
    """The graph, its ends and its operators are called as paths; nothing is written elsewhere."""
    model = onnx.load(str(DIGITS.with_name("digits_qdq.onnx")))
    hostile = "../../../escaped"
    model.graph.name = hostile
    for node in model.graph.node:
        node.name = hostile + node.name
    for value in (*model.graph.input, *model.graph.output):
        old, value.name = value.name, f"{hostile}/{value.name}"
        for node in model.graph.node:
            for names in (node.input, node.output):
                names[:] = [value.name if name == old else name for name in names]
    file = tmp_path / "a" / "b" / "c" / "..;x.onnx"
    file.parent.mkdir(parents=True)
    onnx.save(model, str(file))
    assert run(["compile", str(file), "-b", "host", "-o", str(file.parent / "out")]) == 0
    assert run(["run", str(file.parent / "out")]) == 0
    assert not [path for path in tmp_path.rglob("*escaped*") if "out" not in path.parts]
    assert {path.name for path in file.parent.iterdir()} == {file.name, "out"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At every size: one line, exit code 2, nothing left; or it fits."""
    codes = set()
    for pages in (1, 4, 12, 40, 400):
        with small_disk(tmp_path / f"{pages}", pages * 4096) as disk:
            capsys.readouterr()
            codes.add(code := run(COMMANDS[name](disk / "out")))
            told = capsys.readouterr().err
            if code:
                assert code == 2
                assert "No space left on device" in told and told.count("\n") == 1
                assert not list(disk.iterdir())
                continue
            (disk / "filler").write_bytes(b"")
            with pytest.raises(OSError), (disk / "filler").open("wb") as file:
                while True:
                    file.write(bytes(4096))
            before = tree(disk / "out")
            assert run(COMMANDS[name](disk / "out")) == 2
            told = capsys.readouterr().err
            assert "No space left on device" in told and told.count("\n") == 1
            assert tree(disk / "out") == before
            assert {path.name for path in disk.iterdir()} == {"filler", "out"}
    assert codes == {0, 2}


def test_two_compilers_of_one_folder(tmp_path: Path) -> None:
    """Each ends well or is refused in one line; the folder is whole."""
    command = [sys.executable, "-m", "toolchain.cli", *compiling(tmp_path / "out")]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [process.communicate()[1] for process in both]
    codes = [process.returncode for process in both]
    assert 0 in codes
    for code, error in zip(codes, errors, strict=True):
        assert code == 0 or (code == 2 and "another thimble" in error and error.count("\n") == 1)
    assert run(["run", str(tmp_path / "out")]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
