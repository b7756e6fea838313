"""What int32 accumulators end with, what is refused of it, and what is reported."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import wrapping
from tests.support.host import plan_of
from toolchain.ops import forms
from toolchain.ops.arithmetic.fixed_point import (
    ScaleError,
    check_sums,
    held_in_int32,
    wrap_int32,
)
from toolchain.report.suspicions import plan_warnings, warnings_json

_MOST = 2**31 - 1


def test_the_ends_of_sums_that_wrap() -> None:
    rng = np.random.default_rng(1)
    lowest = rng.integers(-(2**34), 2**34, 2000)
    highest = lowest + rng.integers(0, 2**10, 2000)
    lowest[:1000] = rng.choice([-(2**31), 2**31, 2**32], 1000) - rng.integers(0, 2**9, 1000)
    highest[:1000] = lowest[:1000] + rng.integers(0, 2**10, 1000)
    least, most = held_in_int32(lowest, highest)
    for low, high, begin, end in zip(lowest, highest, least, most, strict=True):
        values = wrap_int32(np.arange(low, high + 1))
        if (np.diff(values) == 1).all():
            assert (begin, end) == (values[0], values[-1])
        else:
            assert (begin, end) == (-(2**31), _MOST)


@pytest.mark.parametrize(
    ("ends", "multiplier", "shift", "offset", "refused"),
    [
        ((-(2**31), _MOST), 1 << 30, 0, 127, ""),
        ((-(2**40), 2**40), 1 << 30, -3, 127, ""),
        ((-(2**40), 2**40), 1 << 30, 1, 0, "overruns 32 bits"),
        ((-(2**30), 2**30 - 1), 1 << 30, 1, 0, ""),
        ((-(2**30), 2**30), 1 << 30, 1, 0, "overruns 32 bits"),
        ((2**32 - 5, 2**32 + 5), 1 << 30, 20, 0, ""),
        ((_MOST, _MOST), _MOST, 0, 127, "zero point 127 overrun 32 bits"),
        ((_MOST, _MOST), _MOST, 0, -128, ""),
    ],
)
def test_what_the_reference_leaves_undefined_is_refused(
    ends: tuple[int, int], multiplier: int, shift: int, offset: int, refused: str
) -> None:
    lowest, highest = (np.array([end], np.int64) for end in ends)
    if refused:
        with pytest.raises(ScaleError, match=refused):
            check_sums(lowest, highest, multiplier, shift, offset)
    else:
        check_sums(lowest, highest, multiplier, shift, offset)


def test_saturated_biases_are_reported_once() -> None:
    rng = np.random.default_rng(2)
    plan = plan_of(wrapping.biased("conv2d", rng))
    (text,) = plan_warnings(plan)
    assert text.startswith(f"operator {plan.graph.ops[0].name!r} has a bias of 2**30 steps or more")
    assert warnings_json(plan) == {"warnings": [text]}
    assert warnings_json(plan_of(forms()["conv2d"].sample(rng))) == {}


def test_a_cell_state_without_a_tanh_is_reported() -> None:
    rng = np.random.default_rng(3)
    *_, text = plan_warnings(plan_of(wrapping.without_tanh(rng, -16)))
    assert text.startswith("operator 'lstm' has a cell state whose scale is not 2**-15 to 2**-9")
    assert plan_warnings(plan_of(forms()["lstm"].sample(rng))) == ()
