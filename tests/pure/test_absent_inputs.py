"""An input that an operator needs, and that a file leaves out, is refused by name in every kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from toolchain.boards import board
from toolchain.errors import UnsupportedError
from toolchain.ir.verify import InvalidGraphError
from toolchain.ops import forms
from toolchain.ops.check import check
from toolchain.ops.lowering import lower

M4 = board("netduinoplus2").core
FORMS = {name: form for name, form in forms().items() if form.sample is not None}


@pytest.mark.parametrize("name", FORMS)
def test_absent_inputs_are_taken_or_refused(name: str) -> None:
    sample = FORMS[name].sample
    assert sample is not None
    graph, refused = sample(np.random.default_rng(3)), 0
    inputs = [(at, index) for at, op in enumerate(graph.ops) for index in range(len(op.inputs))]
    for at, index in inputs:
        op = graph.ops[at]
        without = replace(op, inputs=(*op.inputs[:index], "", *op.inputs[index + 1 :]))
        ops = [*graph.ops[:at], without, *graph.ops[at + 1 :]]
        try:
            lower(check(graph.with_ops(ops)), M4)
        except (InvalidGraphError, UnsupportedError) as error:
            refused += 1
            assert op.name in str(error)
    assert refused or not inputs
