"""What counts as a difference between a board's output and the reference's."""

from __future__ import annotations

import numpy as np
import pytest

from toolchain.errors import LinkError
from toolchain.verification import Difference, compare


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


def test_another_type_is_an_error_not_a_difference() -> None:
    with pytest.raises(LinkError, match="int8"):
        list(compare(0, "y", np.zeros(1, np.int8), np.zeros(1, np.uint8)))
