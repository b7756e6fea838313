"""What output folders say of themselves, with any value in any place: read, or refused by name."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolchain.boards import board
from toolchain.deployment.folder import PLAN_FILE, compiled_board, compiled_model
from toolchain.device.firmware import (
    Firmware,
    FirmwareModel,
    FirmwarePart,
    OperatorName,
    Port,
    Sizes,
    load_firmware,
)
from toolchain.edgetpu.model.figures import EdgeTpuCost
from toolchain.edgetpu.run.folder import MANIFEST as PIPELINE
from toolchain.edgetpu.run.folder import read_folder
from toolchain.edgetpu.run.profile import read_profile
from toolchain.errors import InputError
from toolchain.files import replaced_folder
from toolchain.ir import Boundary, DType, End, Quantisation, Tensor
from toolchain.report.ends import end_json

_Q = Quantisation((0.5,), (-3,))
_END = End(Tensor("x", (2, 3), DType.INT8, _Q), Boundary("x", DType.FLOAT32, permutation=(1, 0)))
_PORT = Port("x", "x", 0, (2, 3), DType.INT8)


def _firmware(folder: Path) -> dict[str, Any]:
    ports = (_PORT,)
    parts = (FirmwarePart(64),)
    model = FirmwareModel("m", parts, ports, ports, (OperatorName("a", "relu", ("b",)),))
    sizes = Sizes(*range(1, 7))
    Firmware(folder, board("netduinoplus2"), (model,), sizes, "0123").save()
    found: dict[str, Any] = json.loads((folder / "firmware.json").read_text())
    return found


def _plan(folder: Path) -> dict[str, Any]:
    ends = [end_json(_END), end_json(End(_END.tensor))]
    return {"board": "netduinoplus2", "inputs": ends, "outputs": ends, "states": []}


def _pipeline(folder: Path) -> dict[str, Any]:
    stage = {
        "file": "s.tflite",
        "sha256": "0" * 64,
        "inputs": ["x"],
        "outputs": ["y"],
        "operators": [0],
        "param_bytes": 1,
        "spill_bytes": 0,
        "streamed_bytes": 0,
        "in_bytes": 1,
        "out_bytes": 1,
        "arithmetic_ms": 0.5,
        "time_ms": 1,
        "compiled_bytes": 2,
    }
    model = {"name": "m", "inputs": ["x"], "outputs": ["y"], "stages": [stage]}
    return {
        "format": "thimble-edgetpu-pipeline",
        "version": 1,
        "objective": "period",
        "stages": 1,
        "cost": vars(EdgeTpuCost()),
        "models": [model],
        "weights_ms": [[0.5]],
        "kinds": [["RELU"]],
        "period_ms": 1.0,
    }


def _profile(folder: Path) -> dict[str, Any]:
    operators = [{"name": "0", "kind": "RELU", "count": 1.5}]
    head = {"format": "thimble-edgetpu-profile", "model": "m", "board": "cpu", "unit": "ms"}
    return {**head, "operators": operators}


FILES: dict[str, tuple[Callable[[Path], dict[str, Any]], Callable[[Path], object]]] = {
    "firmware.json": (_firmware, load_firmware),
    PLAN_FILE: (_plan, lambda folder: (compiled_model(folder), compiled_board(folder))),
    PIPELINE: (_pipeline, read_folder),
    "profile.json": (_profile, lambda folder: read_profile(folder / "profile.json")),
}


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in entries:
            yield from _places(inner, (*path, key))


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = copy.deepcopy(value)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return changed


def _read(name: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "out"
        with replaced_folder(folder) as fresh:
            (fresh / name).write_text(text)
            (fresh / "s.tflite").write_bytes(b"")
        FILES[name][1](folder)


_PLAIN = [None, True, -1, 0, 1, 2**31, 2**63, 10**40, 0.5, -0.0, 1e300, "", "x", "../x", "é\x00"]
_ODD = st.sampled_from([*_PLAIN, [], {}, [[]], [1, 2, 3], ["x"], {"x": 1}, [None]])


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@settings(max_examples=150)
@given(data=st.data())
def test_any_value_in_any_place(name: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        good = FILES[name][0](Path(scratch))
    path = data.draw(st.sampled_from(sorted(_places(good), key=repr)))
    changed = _with(good, path, data.draw(_ODD))
    try:
        _read(name, json.dumps(changed))
    except InputError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("text", ["", "[" * 10_000, "[]", "{}", "null", "\ud800", "1e999"])
def test_what_is_no_such_file(name: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "out"
        with replaced_folder(folder) as fresh:
            (fresh / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(InputError, match=name):
            FILES[name][1](folder)


@pytest.mark.parametrize("name", ["firmware.json", PLAN_FILE, "profile.json"])
def test_what_was_written_is_read(name: str) -> None:
    """Else the tests above would see nothing but refusals."""
    with tempfile.TemporaryDirectory() as scratch:
        good = FILES[name][0](Path(scratch))
    _read(name, json.dumps(good))


def test_the_field_at_fault_is_named() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        good = _firmware(Path(scratch))
    changed = _with(good, ("models", 0, "inputs", 0, "offset_bytes"), "64")
    with pytest.raises(InputError, match=r"inputs\[0\]: offset_bytes is \"64\", not a whole"):
        _read("firmware.json", json.dumps(changed))
    changed = _with(good, ("models", 0, "inputs", 0, "offset_bytes"), 64)
    with pytest.raises(InputError, match="'x' ends at byte 70 of 64 of the arena"):
        _read("firmware.json", json.dumps(changed))
