"""A wrong name is answered with the ones that it resembles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from toolchain.boards import as_target, board, chip
from toolchain.cli import run
from toolchain.deployment.folder import PLAN_FILE, compiled_model
from toolchain.errors import InputError, did_you_mean
from toolchain.export import exporter
from toolchain.files.bounded import read_bounded
from toolchain.ops.preference import preference
from toolchain.planning.options import PlanOptions
from toolchain.schedule import scheduler
from toolchain.sweep.sweep import Request, planned


@pytest.mark.parametrize(
    ("given", "known", "said"),
    [
        ("sped", ("speed", "size"), ". Did you mean speed?"),
        ("SPEED", ("speed", "size"), ". Did you mean speed?"),
        (
            "h743",
            ("nucleo-h743zi", "stm32h743", "host"),
            ". Did you mean stm32h743 or nucleo-h743zi?",
        ),
        ("aab", ("aaa", "aac", "aad", "aae"), ". Did you mean aaa or aac or aad?"),
        ("no", ("not-so", "nothing"), ""),
        ("", ("a", "b"), ""),
        ("x", (), ""),
    ],
)
def test_the_likest_names_are_said(given: str, known: tuple[str, ...], said: str) -> None:
    assert did_you_mean(given, (*known, *known)) == said


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda: board("nucleo-f446"), "no board 'nucleo-f446'. Did you mean nucleo-f446re?"),
        (lambda: board("STM32F44"), "Did you mean stm32f446? `thimble boards` lists all"),
        (lambda: as_target("nucleo-h74zi"), "Did you mean nucleo-h743zi?"),
        (lambda: chip("stm32h74"), "no chip 'stm32h74'. Did you mean stm32h743?"),
        (lambda: PlanOptions.of({"optimise": "sped"}), "size. Did you mean speed?"),
        (lambda: PlanOptions.of({"plan": "fas"}), "full, fast. Did you mean fast?"),
        (lambda: preference("cmsisnn"), "thimble. Did you mean cmsis-nn?"),
        (lambda: scheduler("khan"), "Did you mean kahn?"),
        (lambda: exporter("cmak"), "Did you mean cmake?"),
        (lambda: planned(Request((), (), ("verfy",), ())), "profile. Did you mean verify?"),
    ],
)
def test_names_of_all_kinds(what: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError) as told:
        what()
    assert said in str(told.value)


def test_names_of_files_and_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.tflite").write_bytes(b"")
    (tmp_path / "out1").mkdir()
    (tmp_path / "out2").mkdir()
    (tmp_path / "out2" / PLAN_FILE).write_text("{}")
    with pytest.raises(InputError, match=r"no file \S+/modle.tflite. Did you mean model.tflite\?$"):
        read_bounded(tmp_path / "modle.tflite", 1)
    with pytest.raises(InputError, match=r"no file \S+/no-folder/model.tflite$"):
        read_bounded(tmp_path / "no-folder" / "model.tflite", 1)
    with pytest.raises(InputError, match=r"makes one. Did you mean out2\?$"):
        compiled_model(tmp_path / "out")
    with pytest.raises(InputError, match=r"makes one$"):
        compiled_model(tmp_path / "out1")
    assert run(["plan", str(tmp_path / "model"), "-b", "host"]) == 2
    assert "Did you mean model.tflite?" in capsys.readouterr().err
