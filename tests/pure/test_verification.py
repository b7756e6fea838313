"""What counts as a difference between a board's output and the reference's."""

from __future__ import annotations

import time

import numpy as np
import pytest

from toolchain.deployment.verification import Difference, Differences, compare
from toolchain.errors import ResultError


def test_every_differing_element_is_found_and_placed() -> None:
    want = np.zeros((2, 3), np.int8)
    got = want.copy()
    got[1, 2], got[0, 0] = 5, -1
    assert list(compare(3, "y", got, want)) == [
        Difference(3, "y", (0, 0), -1.0, 0.0),
        Difference(3, "y", (1, 2), 5.0, 0.0),
    ]


def test_floats_are_compared_by_their_bits() -> None:
    want = np.array([0.0, np.nan, 1.0], np.float32)
    assert not list(compare(0, "y", want.copy(), want))
    got = np.array([-0.0, np.nan, np.nextafter(np.float32(1), np.float32(2))], np.float32)
    assert [d.index for d in compare(0, "y", got, want)] == [(0,), (2,)]
    negative = np.array([0.0, -np.nan, 1.0], np.float32)
    assert negative.tobytes() != want.tobytes()
    assert not list(compare(0, "y", negative, want))


def test_another_type_is_an_error_not_a_difference() -> None:
    with pytest.raises(ResultError, match="int8"):
        compare(0, "y", np.zeros(1, np.int8), np.zeros(1, np.uint8))


def test_a_scalar_is_compared_like_any_array() -> None:
    found = compare(0, "y", np.array(3, np.int16), np.array(1, np.int16))
    assert list(found) == [Difference(0, "y", (), 3.0, 1.0)]
    assert found.largest(1.0) == 2.0
    assert not len(compare(0, "y", np.array(3, np.int16), np.array([3], np.int16)))


def test_another_number_of_elements_is_an_error() -> None:
    with pytest.raises(ResultError, match=r"int8\[2\].*int8\[3\]"):
        compare(0, "y", np.zeros(2, np.int8), np.zeros(3, np.int8))


def test_what_is_no_number_differs_without_end() -> None:
    got, want = np.array([np.nan, 1.0], np.float32), np.array([0.0, 1.0], np.float32)
    assert compare(0, "y", got, want).largest(1.0) == np.inf


def test_differences_are_one_sequence_over_outputs() -> None:
    zeros = np.zeros((2, 2), np.int8)
    first, second = zeros.copy(), zeros.copy()
    first[0, 1], second[1, 0], second[1, 1] = 1, 2, 3
    none = compare(0, "z", zeros, zeros)
    found = Differences((compare(0, "y", first, zeros), none, compare(1, "y", second, zeros)))
    assert [d.board for d in found] == [1.0, 2.0, 3.0]
    assert found[-1] == found[2] == Difference(1, "y", (1, 1), 3.0, 0.0)
    assert [d.index for d in found[1:]] == [(1, 0), (1, 1)]
    with pytest.raises(IndexError):
        found[3]


def test_a_million_differing_floats_are_compared_at_once() -> None:
    """Once this took minutes: the largest element was sought again for each that differed."""
    rng = np.random.default_rng(0)
    want = rng.normal(size=(1000, 1000)).astype(np.float32)
    begin = time.process_time()
    found = compare(0, "y", want + np.float32(1), want)
    assert len(found) > 990_000
    assert 0.9 < found.largest(1.0) < 1.1
    assert time.process_time() - begin < 2
