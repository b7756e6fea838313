"""Figures of predictions: worked by hand, and what holds of any."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from toolchain.accuracy.metrics.boxes import (
    OVERLAPS,
    Detection,
    FoundBoxes,
    TrueBoxes,
    detection,
    overlaps,
)
from toolchain.accuracy.metrics.classes import Classification, ClassTally
from toolchain.accuracy.metrics.keywords import KeywordTally, keyword_classes
from toolchain.accuracy.metrics.numbers import regression
from toolchain.accuracy.run.tasks import ClassesTally, Form, Windows, form_of, pooled
from toolchain.errors import InputError
from toolchain.ir import DType, End, Tensor

Floats = NDArray[np.float64]


def counted(truths: list[int], scores: Floats) -> Classification:
    tally = ClassTally(tuple("abcdefgh"[: scores.shape[1]]))
    for truth, row in zip(truths, scores, strict=True):
        tally.add(truth, row)
    return tally.result()


def test_classes_by_hand() -> None:
    """Five of class a, of which b takes two; one of b; nothing is of c, which takes one of a."""
    tally = ClassTally(("a", "b", "c"))
    for truth, predicted in ((0, 0), (0, 0), (0, 1), (0, 1), (0, 2), (1, 1)):
        tally.add_class(truth, predicted)
    figures = tally.result()
    assert figures.matrix.tolist() == [[2, 2, 1], [0, 1, 0], [0, 0, 0]]
    assert (figures.samples, figures.correct, figures.accuracy) == (6, 3, 0.5)
    a, b, c = figures.classes
    assert (a.precision, a.recall, a.f1) == (1.0, 2 / 5, 4 / 7)
    assert (b.precision, b.recall, b.f1) == (1 / 3, 1.0, 1 / 2)
    assert (c.precision, c.recall, c.f1) == (0.0, None, 0.0)
    assert figures.macro_f1 == pytest.approx((4 / 7 + 1 / 2) / 3)
    assert [(c.truth, c.predicted, c.count) for c in figures.confusions] == [
        ("a", "b", 2),
        ("a", "c", 1),
    ]
    assert figures.top_5 is None
    # Wilson, 3 of 6: (0.5 + z2/12 -+ z sqrt(0.25/6 + z2/144)) / (1 + z2/6), z = 1.96
    assert figures.interval == pytest.approx((0.18762, 0.81238), abs=1e-5)


def test_the_five_best_of_six() -> None:
    scores = np.array([[6.0, 5, 4, 3, 2, 1], [6, 5, 4, 3, 2, 1], [1, 1, 1, 1, 1, 1]])
    assert counted([4, 5, 0], scores).top_5 == 2 / 3
    assert counted([0, 0, 5], scores).top_5 == 2 / 3  # of equal scores the first is the best
    assert counted([0, 0, 0], scores).accuracy == 1.0
    assert counted([1], np.array([[np.nan, 0.0]])).accuracy == 1.0


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.lists(st.integers(-3, 3), min_size=7, max_size=7)))
    .filter(bool)
    .map(lambda rows: ([t for t, _ in rows], np.array([s for _, s in rows], np.float64)))
)
def test_the_matrix_has_the_accuracy(rows: tuple[list[int], Floats]) -> None:
    truths, scores = rows
    figures = counted(truths, scores)
    best = scores.argmax(axis=1)
    assert figures.accuracy == pytest.approx(float(np.mean(best == truths)))
    assert figures.accuracy <= (figures.top_5 or 0) <= 1
    low, high = figures.interval
    assert 0 <= low <= figures.accuracy <= high <= 1 + 1e-12
    assert sum(one.samples for one in figures.classes) == len(truths)
    assert 0 <= figures.macro_f1 <= 1
    perfect = counted(truths, np.eye(7)[truths])
    assert (perfect.accuracy, perfect.macro_f1, perfect.top_5) == (1.0, 1.0, 1.0)
    assert not perfect.confusions


def test_numbers_by_hand() -> None:
    truths = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    figures = regression(truths, truths + np.array([[0.0, 1.0], [0.0, -1.0], [3.0, 1.0]]))
    first, second = figures.numbers
    assert (first.mae, first.rmse) == (1.0, pytest.approx(np.sqrt(3)))
    assert first.r2 == pytest.approx(1 - 9 / 2)
    assert (second.mae, second.rmse, second.r2) == (1.0, 1.0, None)  # its labels are all equal
    assert (figures.mae, figures.rmse) == (1.0, pytest.approx(np.sqrt(2)))
    assert (figures.r2, figures.largest_error) == (first.r2, 3.0)
    assert regression(truths, truths).r2 == 1.0


def true(*boxes: tuple[float, ...], crowds: tuple[bool, ...] = (), label: int = 0) -> TrueBoxes:
    marks = crowds or (False,) * len(boxes)
    sides = np.array(boxes, np.float64).reshape(-1, 4)
    return TrueBoxes(sides, np.full(len(boxes), label), np.array(marks, np.bool_))


def found(*boxes: tuple[float, ...], scores: tuple[float, ...], label: int = 0) -> FoundBoxes:
    sides = np.array(boxes, np.float64).reshape(-1, 4)
    return FoundBoxes(sides, np.full(len(boxes), label), np.array(scores))


LEFT, RIGHT, BELOW = (0.0, 0.0, 0.4, 0.4), (0.0, 0.6, 0.4, 1.0), (0.6, 0.0, 1.0, 0.4)


def test_average_precision_by_hand() -> None:
    """Two of three boxes are found, with a wrong one between them: precision 1 up to a recall of
    1/3 (34 of the 101 recalls), 2/3 up to 2/3 (33), then 0."""
    made = found(LEFT, (0.6, 0.6, 0.7, 0.7), RIGHT, scores=(0.9, 0.8, 0.7))
    figures = detection([true(LEFT, RIGHT), true(BELOW)], [made, found(scores=())], ("cat",))
    expected = (34 + 33 * 2 / 3) / 101
    shares = (figures.map, figures.map_50, figures.map_75)
    assert shares == pytest.approx((expected,) * 3)
    assert (figures.samples, figures.boxes, figures.found) == (2, 3, 3)


def test_an_overlap_counts_up_to_its_size() -> None:
    """An overlap of 0.62 is right at 0.5, 0.55 and 0.6 of the ten."""
    made = found((0.0, 0.0, 1.0, 0.62), scores=(0.5,))
    figures = detection([true((0.0, 0.0, 1.0, 1.0))], [made], ("cat",))
    assert (figures.map, figures.map_50, figures.map_75) == (pytest.approx(0.3), 1.0, 0.0)


def test_each_true_box_is_taken_once_and_by_the_best_first() -> None:
    made = found(LEFT, LEFT, scores=(0.4, 0.9))
    assert detection([true(LEFT)], [made], ("cat",)).map == 1.0
    twice = detection([true(LEFT, RIGHT)], [made], ("cat",))
    assert twice.map == pytest.approx(51 / 101)


def test_boxes_in_a_crowd_do_not_count() -> None:
    crowd = (0.0, 0.5, 1.0, 1.0)
    truth = true(crowd, LEFT, crowds=(True, False))
    made = found(RIGHT, RIGHT, LEFT, scores=(0.9, 0.8, 0.7))
    figures = detection([truth], [made], ("cat",))
    assert (figures.map, figures.boxes) == (1.0, 1)
    assert overlaps(np.array([RIGHT]), np.array([crowd]), np.array([True])).item() == 1.0


def test_classes_without_boxes_are_left_out_of_the_mean() -> None:
    figures = detection([true(LEFT)], [found(LEFT, scores=(0.9,), label=1)], ("cat", "dog", "cow"))
    cat, dog, cow = figures.classes
    assert (cat.ap, dog.ap, cow.ap) == (0.0, None, None)
    assert figures.map == 0.0
    assert detection([true()], [found(LEFT, scores=(0.9,))], ("cat",)).map is None


def _boxes(rng: np.random.Generator, count: int) -> Floats:
    corners = rng.random((count, 2)) * 0.6
    return np.hstack([corners, corners + 0.1 + 0.3 * rng.random((count, 2))])


def drawn(rng: np.random.Generator, images: int) -> tuple[list[TrueBoxes], list[FoundBoxes]]:
    """Boxes of three classes, some of them crowds; and boxes near these, some twice, some of
    another class, some anywhere, with many equal scores."""
    truths, made = [], []
    for _ in range(images):
        count = int(rng.integers(0, 6))
        sides, classes = _boxes(rng, count), rng.integers(0, 3, count)
        if count > 2:
            sides[1] = sides[0]
        truths.append(TrueBoxes(sides, classes, rng.random(count) < 0.2))
        near = rng.integers(0, count, 2 * count) if count else np.empty(0, np.int64)
        others = int(rng.integers(0, 3))
        found_sides = sides[near] + rng.normal(0, 0.015, (len(near), 4))
        labels = np.append(classes[near], rng.integers(0, 3, others))
        labels = np.where(rng.random(len(labels)) < 0.9, labels, 0)
        scores = rng.integers(1, 20, len(labels)) / 20
        made.append(FoundBoxes(np.vstack([found_sides, _boxes(rng, others)]), labels, scores))
    return truths, made


NAMES = ("cat", "dog", "cow")


@pytest.mark.parametrize("seed", range(8))
def test_precision_is_a_share_and_perfect_boxes_have_all_of_it(seed: int) -> None:
    truths, made = drawn(np.random.default_rng(seed), 6)
    figures = detection(truths, made, NAMES)
    assert 0 < (figures.map or 0) < (figures.map_50 or 0) < 1
    alone = [TrueBoxes(t.sides, t.classes, np.zeros(len(t.sides), np.bool_)) for t in truths]
    perfect = [FoundBoxes(t.sides, t.classes, np.full(len(t.sides), 0.5)) for t in alone]
    assert detection(alone, perfect, NAMES).map == 1.0


def coco(truths: list[TrueBoxes], made: list[FoundBoxes]) -> Detection:
    """The figures of pycocotools, on an image of 1000 x 1000 pixels."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    def entry(image: int, sides: Floats, label: int) -> dict[str, object]:
        ymin, xmin, ymax, xmax = (float(1000 * side) for side in sides)
        box = [xmin, ymin, xmax - xmin, ymax - ymin]
        area = box[2] * box[3]
        return {"image_id": image, "bbox": box, "category_id": int(label), "area": area}

    known = [
        {**entry(image, sides, label), "iscrowd": int(crowd)}
        for image, t in enumerate(truths)
        for sides, label, crowd in zip(t.sides, t.classes, t.crowds, strict=True)
    ]
    seen = [
        {**entry(image, sides, label), "score": float(score)}
        for image, f in enumerate(made)
        for sides, label, score in zip(f.sides, f.classes, f.scores, strict=True)
    ]
    reference = COCO()
    reference.dataset = {
        "info": {},
        "images": [{"id": image} for image in range(len(truths))],
        "annotations": [{**one, "id": n + 1} for n, one in enumerate(known)],
        "categories": [{"id": n, "name": name} for n, name in enumerate(NAMES)],
    }
    reference.createIndex()
    judged = COCOeval(reference, reference.loadRes(seen), "bbox")
    judged.evaluate()
    judged.accumulate()
    judged.summarize()
    whole, half, three_quarters = (float(one) for one in judged.stats[:3])
    return Detection(len(truths), 0, 0, whole, half, three_quarters, ())


@pytest.mark.parametrize("seed", range(4))
def test_the_same_as_pycocotools(seed: int) -> None:
    pytest.importorskip("pycocotools")
    truths, made = drawn(np.random.default_rng(seed), 30)
    ours, theirs = detection(truths, made, NAMES), coco(truths, made)
    for name in ("map", "map_50", "map_75"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=1e-9)


def test_overlaps_from_a_half_on() -> None:
    assert OVERLAPS.tolist() == pytest.approx([0.5 + 0.05 * step for step in range(10)])


def test_accepts_by_hand() -> None:
    """Scores of yes, no, silence in windows a second apart; after an accept two seconds are off."""
    tally = KeywordTally(("yes", "no", "_silence_"), (0, 1), 0.6, 2.0)
    tally.begin(1800.0)
    windows = [
        (0.9, 0.1, 0.0),  # yes
        (0.9, 0.1, 0.0),  # within the two seconds
        (0.1, 0.7, 0.2),  # no: they are over
        (0.0, 0.1, 0.9),
        (0.5, 0.3, 0.2),  # below the threshold
        (0.3, 0.6, 0.1),  # no, at the threshold
        (0.6, 0.1, 0.7),  # silence is likelier
    ]
    for second, scores in enumerate(windows):
        tally.hear(float(second), np.array(scores))
    tally.begin(1800.0)
    tally.hear(0.0, np.array([1.0, 0.0, 0.0]))  # another recording begins anew
    for truth, scores in ((0, (0.9, 0.0, 0.1)), (0, (0.5, 0.4, 0.1)), (1, (0.7, 0.1, 0.2))):
        tally.say(truth, np.array(scores))
    tally.say(2, np.array([0.9, 0.0, 0.1]))  # no keyword: nothing to be rejected
    figures = tally.result()
    assert figures.accepts == (2, 2)
    assert (figures.hours, figures.false_accepts_per_hour) == (1.0, 4.0)
    assert figures.false_reject_rate == 2 / 3


def test_which_classes_are_keywords() -> None:
    names = ("_silence_", "Unknown", "yes", "no", "_background_noise_", "noise")
    assert keyword_classes(names) == (2, 3)
    assert keyword_classes(("silence", "unknown", "other noise")) == ()


def test_one_score_is_held_against_the_threshold() -> None:
    tally = ClassesTally("y", Form.SCORE, Windows.EACH, 0.7, ClassTally(("no", "yes")))
    outputs = [{"y": np.array([[score]])} for score in (0.69, 0.7, 0.9)]
    assert tally.add(1, outputs) == [0, 1, 1]
    assert tally.result().matrix.tolist() == [[0, 0], [1, 2]]


def test_how_an_output_tells_a_class() -> None:
    def form(shape: tuple[int, ...], dtype: DType) -> Form:
        return form_of(End(Tensor("y", shape, dtype)))

    assert form((1, 7), DType.FLOAT32) is Form.SCORES
    assert form((1, 1), DType.FLOAT32) is Form.SCORE
    assert form((), DType.INT64) is Form.NUMBER
    with pytest.raises(InputError, match=r"output 'y' \[1, 4, 7\] is no row of classes"):
        form((1, 4, 7), DType.FLOAT32)
    tally = ClassesTally("y", Form.NUMBER, Windows.EACH, 0.5, ClassTally(("a", "b")))
    assert tally.add(0, [{"y": np.array(1.0)}]) == [1]
    with pytest.raises(InputError, match="output 'y' says class 2, and there are 2"):
        tally.add(0, [{"y": np.array(2.0)}])


def test_windows_of_a_sample() -> None:
    rows = [np.array([1.0, 4.0]), np.array([3.0, 0.0])]
    assert [row.tolist() for row in pooled(rows, Windows.EACH)] == [[1, 4], [3, 0]]
    assert pooled(rows, Windows.MEAN)[0].tolist() == [2, 2]
    assert pooled(rows, Windows.MAX)[0].tolist() == [3, 4]
    assert pooled(rows, Windows.LAST)[0].tolist() == [3, 0]
