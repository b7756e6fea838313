"""Options of custom operators: what is read of a FlexBuffer, and that a broken one is none."""

from __future__ import annotations

import numpy as np
import pytest
from flatbuffers import flexbuffers

from toolchain.frontends.tflite.flexbuffer import read_flexbuffer


def read(data: bytes) -> dict[str, int] | None:
    found = read_flexbuffer(np.frombuffer(data, np.uint8))
    return None if found is None else vars(found)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"shift": 12},
        {"T": 7, "fft_length": 512},
        {"small": -3, "large": 1 << 40, "clamping": True},
        {f"name_{i}": i * 1000 for i in range(20)},
    ],
)
def test_integers_are_read_by_name(values: dict[str, int]) -> None:
    assert read(flexbuffers.Dumps(values)) == values


def test_values_of_other_types_are_left_out() -> None:
    assert read(flexbuffers.Dumps({"a": 1, "b": "text", "c": [1, 2]})) == {"a": 1}


def test_floats_of_both_widths() -> None:
    values = {"half": 0.5, "third": 1 / 3, "whole": 4.0, "tiny": 1e-300}
    assert read(flexbuffers.Dumps(values)) == values


def test_what_is_no_map_is_none() -> None:
    assert read_flexbuffer(None) is None
    for data in (b"", b"\0", flexbuffers.Dumps(5), flexbuffers.Dumps([1, 2])):
        assert read(data) is None


def test_damaged_bytes_never_raise() -> None:
    whole = flexbuffers.Dumps({"num_channels": 40, "snr_shift": 6})
    rng = np.random.default_rng(5)
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(int(rng.integers(1, 4))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        read(bytes(data[: int(rng.integers(len(data) + 1))] or data))
        read(bytes(data))
