"""What a figure of time rests on, in words and in JSON."""

from __future__ import annotations

import json

from toolchain.cost.basis import Basis, basis_of_sum, milliseconds


def test_a_sum_is_measured_only_if_all_of_it_is() -> None:
    measured, trace, predicted = Basis.MEASURED, Basis.TRACE, Basis.PREDICTED
    assert basis_of_sum([measured, measured]) is measured
    assert basis_of_sum([trace]) is trace
    assert basis_of_sum([measured, trace]) is predicted
    assert basis_of_sum([measured, predicted]) is predicted
    assert basis_of_sum([]) is predicted


def test_cycles_have_a_time_and_instructions_none() -> None:
    assert milliseconds(168_000, "cycles", 168_000_000) == 1.0
    assert milliseconds(168_000, "instructions", 168_000_000) is None
    assert milliseconds(168_000, "cycles", 0) is None


def test_the_words() -> None:
    assert json.dumps(list(Basis)) == '["measured", "trace", "predicted"]'
    assert Basis.TRACE.text == "modelled from a trace" and Basis.PREDICTED.text == "predicted"
