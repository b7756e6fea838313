"""The figures of every task, as JSON, as text and on the page."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tests.support.pages import DIGITS, HOSTILE
from toolchain.accuracy.metrics.boxes import BoxClass, Detection
from toolchain.accuracy.metrics.classes import Classification
from toolchain.accuracy.metrics.keywords import Keywords
from toolchain.accuracy.metrics.numbers import regression
from toolchain.accuracy.run.result import Accuracy, Agreement, Measured, Task
from toolchain.accuracy.run.tasks import Figures
from toolchain.accuracy.show.document import accuracy_json
from toolchain.accuracy.show.tables import accuracy_lines
from toolchain.errors import InputError
from toolchain.memory.firmware_size import estimated_need
from toolchain.page.build import Findings, build, document
from toolchain.page.render import page
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions
from toolchain.report.latency import predict_latency
from toolchain.report.plan import plan_json

MANY = 70
"""More classes than a page has a table of squares for."""


def classes(count: int, wrong: int) -> Classification:
    """`count` classes of four samples each; of the first, `wrong` are taken for the second."""
    matrix = 4 * np.eye(count, dtype=np.int64)
    matrix[0, :2] = 4 - wrong, wrong
    names = (HOSTILE, *(f"c{place}" for place in range(1, count)))
    return Classification(names, matrix, 4 * count if count > 5 else None)


def boxes(ap: float) -> Detection:
    found = (BoxClass("car", 3, 4, ap, 1.0), BoxClass("bus", 0, 1, None, None))
    return Detection(2, 3, 5, ap, 1.0, 0.25, found)


def result(task: Task, floating: Figures, board: Figures, keywords: bool = False) -> Accuracy:
    heard = Keywords(("yes", "no"), 0.5, 1.0, 2.0, (3, 1), 8, 2) if keywords else None
    columns = (
        Measured("float", "model.onnx", floating, heard),
        Measured("board", "mps2-an386", board, heard),
    )
    agreement = Agreement(40, 4, 2.0, 20, 19)
    return Accuracy("m.tflite", "mps2-an386", "mps2-an386", task, 20, 21, columns, agreement)


LINE = np.array([[1.0, 0.0], [2.0, 4.0]])
RESULTS = {
    "few": result(Task.CLASSES, classes(3, 0), classes(3, 1), keywords=True),
    "many": result(Task.CLASSES, classes(MANY, 1), classes(MANY, 3)),
    "numbers": result(Task.NUMBERS, regression(LINE, LINE), regression(LINE, LINE + 0.5)),
    "boxes": result(Task.BOXES, boxes(0.75), boxes(0.5)),
}
TOLD = {
    "few": ("91.67%", "c1", "4 2.00 25.00% 3 1", "4 of 40", "by up to 2"),
    "many": ("98.93%", "taken for c1 (3)", "15 of 70; --json has all"),
    "numbers": ("0.5", "0.0000", "20 samples, 21 inferences"),
    "boxes": ("0.5000", "1.0000", "0.2500", "car 3 4", "bus 0 1 - -"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_text(name: str) -> None:
    console = Console(width=140, file=StringIO(), record=True)
    for part in accuracy_lines(RESULTS[name]):
        console.print(part, markup=not isinstance(part, str))
    text = " ".join(console.export_text().replace("│", " ").split())
    for told in TOLD[name]:
        assert told in text, text


def test_losses_are_those_from_float_to_board() -> None:
    fields = {name: accuracy_json(one) for name, one in RESULTS.items()}
    assert fields["few"]["accuracy_loss"] == pytest.approx(1 / 12)
    assert fields["boxes"]["map_loss"] == 0.25
    assert "accuracy_loss" not in fields["numbers"]
    assert fields["few"]["false_accepts_per_hour"] == 2.0
    assert fields["few"]["false_reject_rate"] == 0.25
    assert fields["few"]["top_5"] is None and fields["many"]["top_5"] == 1.0
    assert fields["numbers"]["mae"] == fields["numbers"]["largest_error"] == 0.5
    assert json.loads(json.dumps(fields)) == fields


@pytest.fixture(scope="module")
def fields() -> dict[str, Any]:
    pytest.importorskip("vl_convert", reason="the extra [report] is not installed")
    plan = plan_model(DIGITS, "netduinoplus2", PlanOptions().unsplit)
    return plan_json(plan, estimated_need(plan), predict_latency(plan))


def test_pages(fields: dict[str, Any]) -> None:
    """Two builds on a page each; names stay text."""
    made = {
        name: build(Findings(fields, accuracy=accuracy_json(one))) for name, one in RESULTS.items()
    }
    text = page(document([made["few"], made["boxes"]], "thimble accuracy"))
    for told in (
        "Confusion matrix, board",
        ">0.9167<",
        "2 hours of sound",
        "95.00% of predictions",
    ):
        assert told in text, told
    assert "mAP@0.5:0.95" in text and ">0.2500<" in text and HOSTILE not in text
    text = page(document([made["many"], made["numbers"]], "thimble accuracy"))
    for told in ("all 1 pairs of classes", "largest error", "20 labelled samples", ">0.5<"):
        assert told in text, told


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"task": "guesses"}, "has no figures of its task"),
        ({"judged": "reference"}, "has no figures of its task"),
        ({"runtimes": {"board": {"title": "b"}}}, "the field 'accuracy' is missing"),
        ({"samples": "many"}, 'samples is "many", not a whole number'),
    ],
)
def test_json_of_something_else(
    change: dict[str, Any], complaint: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match=complaint):
        build(Findings(fields, accuracy={**accuracy_json(RESULTS["few"]), **change}))
