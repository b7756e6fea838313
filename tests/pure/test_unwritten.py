"""Places that tflite-micro leaves unwritten are 0 in what `verify` compares with, in every run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.tflite_writer import tflite_bytes
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops.interpret import interpret
from toolchain.ops.signal.signal_energy import SignalEnergy
from toolchain.reference import TfliteReference, open_reference


def test_energies_of_two_parts_of_a_spectrum(tmp_path: Path) -> None:
    """Both outputs lie where others lay before: what is left there is not 0."""
    pytest.importorskip("tflite_micro")
    parts = (SignalEnergy(end_index=9, start_index=2), SignalEnergy(end_index=21, start_index=20))
    tensors = [Tensor("spectrum", (46,), DType.INT16)]
    tensors += [Tensor(f"energy{n}", (23,), DType.UINT32) for n in range(len(parts))]
    ops = [
        Op("signal_energy", f"part{n}", ("spectrum",), (f"energy{n}",), part)
        for n, part in enumerate(parts)
    ]
    graph = Graph.build("parts", tensors, ops, ["spectrum"], ["energy0", "energy1"])
    path = tmp_path / "parts.tflite"
    path.write_bytes(tflite_bytes(graph))
    reference = open_reference(path)
    assert isinstance(reference, TfliteReference)
    rng = np.random.default_rng(3)
    for _ in range(3):
        inputs = [rng.integers(-(2**15), 2**15, 46, dtype=np.int16)]
        for want, got in zip(reference.run(inputs), interpret(graph, inputs, {}), strict=True):
            np.testing.assert_array_equal(got, want.reshape(got.shape))
            assert np.count_nonzero(got) <= 7
