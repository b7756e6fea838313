"""Passes compute with operators' references: scales that leave these undefined are refused there,
with the operator's name, as lowering refuses them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks._cases import sample
from toolchain.errors import UnsupportedError
from toolchain.ir import Quantisation
from toolchain.ops.interpret import interpret


def test_a_reference_names_its_operator() -> None:
    graph, _ = sample("conv2d", 0, 0)
    (op,) = graph.ops
    end = graph.output(op)
    tiny = replace(end, quantisation=Quantisation((1.2e-38,), (0,)))
    absurd = graph.with_ops(
        graph.ops, [tiny if t.name == end.name else t for t in graph.tensors.values()]
    )
    given = [np.zeros(graph.tensors[name].shape, np.int8) for name in graph.inputs]
    with pytest.raises(UnsupportedError, match=op.name):
        interpret(absurd, given)
