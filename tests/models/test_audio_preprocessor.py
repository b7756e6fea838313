"""tflite-micro's audio preprocessor, where it lies beside the checkout, on sound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.sounds import clips
from toolchain import passes
from toolchain.frontends import load_model
from toolchain.ops.interpret import interpret
from toolchain.preprocess.audio import AudioFeatures
from toolchain.preprocess.tables import filter_bank, gain_table, window_weights
from toolchain.reference.process import Runtime, RuntimeProcess, open_model

FILE = Path(__file__).parents[2] / "../shared/models/tflm_audio_preprocessor_int8.tflite"
WINDOW = 480
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason=f"{FILE.name} is not there")


def test_its_tables_are_ours_within_one() -> None:
    """Its author cut off weights of filters, which the front end rounds."""
    graph = load_model(FILE)
    found = [t.constant.reshape(-1) for t in graph.tensors.values() if t.is_constant]
    bank, gains = filter_bank(AudioFeatures()), gain_table(AudioFeatures())
    for table in (bank.starts, bank.weight_starts, bank.widths, gains):
        assert any(np.array_equal(table, one) for one in found)
    for table in (bank.weights, bank.unweights, window_weights(WINDOW)):
        alike = [one for one in found if len(one) == len(table)]
        assert min(np.abs(one.astype(int) - table).max() for one in alike) == 1


@pytest.mark.parametrize("name", ["speech", "loud"])
def test_it_is_computed_as_tflite_micro_does(name: str) -> None:
    pytest.importorskip("tflite_micro")
    graph = passes.prepare(load_model(FILE)).graph
    judge = open_model(RuntimeProcess(), Runtime.TFLITE_MICRO, FILE.read_bytes(), 1)
    memory: dict[str, np.ndarray] = {}
    windows = clips()[name][: 10 * WINDOW].reshape(10, 1, WINDOW)
    for window in windows:
        (want,) = judge.run([window])
        np.testing.assert_array_equal(interpret(graph, [window], memory)[0], want)
