"""`benchmarks.same`: what counts as a difference between two trees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.same import Result, cases, differences, report, steady

OLD = Result(0, "5a", {"model.c": "01", "runtime/source/thimble_add_s8.c": "02"}, "")


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        (OLD, []),
        (replace(OLD, message="other words"), []),
        (replace(OLD, code=2), ["exit code 0, now 2"]),
        (replace(OLD, document="5b"), ["the document of --json"]),
        (replace(OLD, files={**OLD.files, "model.c": "03"}), ["model.c"]),
        (replace(OLD, files={"model.c": "01"}), ["runtime/source/thimble_add_s8.c"]),
        (replace(OLD, files={**OLD.files, "model.h": "04"}), ["model.h"]),
    ],
    ids=str,
)
def test_what_differs(new: Result, wanted: list[str]) -> None:
    assert differences(OLD, new) == wanted
    assert report({"a/b": OLD}, {"a/b": new}, None) == bool(wanted)


def test_a_run_of_no_case_is_no_proof() -> None:
    assert report({}, {}, None) == 1


def test_seconds_are_left_out_at_every_depth() -> None:
    assert steady({"seconds": 1.5, "rows": [{"seconds": 2, "ok": 1}]}) == {"rows": [{"ok": 1}]}


def test_names_of_cases_are_unique(tmp_path: Path) -> None:
    for name in ("a.tflite", "b.onnx"):
        (tmp_path / name).touch()
    names = [case.name for case in cases(("models", "samples"), tmp_path, tmp_path, thorough=True)]
    assert len(names) == len(set(names))
    assert any("/a/" in name for name in names)
