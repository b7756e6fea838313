"""Weights outside of the code on emulated boards: in the firmware, at an address, new ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.support.graphs import dense_chain
from tests.support.host import random_inputs, reference_outputs
from tests.support.retrained import retrained
from tests.support.tflite_writer import tflite_bytes
from toolchain import passes
from toolchain.cli import run
from toolchain.deployment.compile import compile_library, compile_model
from toolchain.deployment.run import deployed
from toolchain.deployment.verification import verify_model
from toolchain.deployment.weights import check_weights, intel_hex, new_weights
from toolchain.errors import InputError, LinkError, UnsupportedError
from toolchain.frontends import load_model
from toolchain.ir import External, Graph
from toolchain.ops.check import check

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
needs_qemu = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


def model_of(graph: Graph, file: Path) -> Path:
    file.write_bytes(tflite_bytes(graph))
    return file


@needs_qemu
@pytest.mark.parametrize(
    ("board_name", "address", "fetched"),
    [
        ("netduinoplus2", None, False),
        ("netduinoplus2", 0x080C0000, False),
        ("mps3-an547", 0x60100000, False),
        ("mps2-an386", 0x21800000, True),
        ("mps3-an547", None, True),
    ],
)
def test_verify_finds_no_difference(
    board_name: str, address: int | None, fetched: bool, tmp_path: Path
) -> None:
    """In the firmware; at the end of its flash; in memory that it does not use otherwise."""
    external = External(address, fetched)
    found = verify_model(DIGITS, board_name, runs=3, out=tmp_path / "out", external=external)
    assert found.elements and not found.differing
    sizes = found.compiled.sizes
    assert sizes is not None
    assert (sizes.weight_bytes < 1000) == (address is not None)
    image = (tmp_path / "out" / "firmware.bin").read_bytes()
    blob = (tmp_path / "out" / "digits_int8_weights.bin").read_bytes()
    assert (blob in image) == (address is None)


@needs_qemu
def test_old_firmware_computes_with_new_weights_and_says_what_is_wrong(tmp_path: Path) -> None:
    """Over the air: the blob in memory is another, the firmware is not."""
    rng = np.random.default_rng(6)
    graph = passes.prepare(load_model(DIGITS)).graph
    again = check(retrained(graph, rng))
    old, new = (model_of(g, tmp_path / f"{n}.tflite") for g, n in ((graph, "net"), (again, "new")))
    out = tmp_path / "out"
    compile_model(old, "mps2-an386", out, external=External(0x21800000))
    sound = new_weights(new, out)
    blob = tmp_path / "received.bin"
    inputs = random_inputs(again, rng)

    def outputs(data: bytes) -> list[np.ndarray]:
        blob.write_bytes(data)
        with deployed(out, weights=blob) as deployment:
            given = dict(zip(again.inputs, inputs, strict=True))
            found = deployment.run(given).outputs
            return [found[name] for name in again.outputs]

    for one, want in zip(outputs(sound), reference_outputs(again, inputs), strict=True):
        np.testing.assert_array_equal(one, want)
    with pytest.raises(LinkError, match=r"status -26 .the blob of its weights is damaged"):
        outputs(sound[:-9] + bytes([sound[-9] ^ 4]) + sound[-8:])
    with pytest.raises(LinkError, match=r"status -2[56]"):
        outputs(sound[:100])
    with pytest.raises(LinkError, match=r"status -22 .where its weights should be is no blob"):
        outputs(b"")


def test_the_command_makes_a_blob_checks_it_and_says_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = dense_chain("net", (6, 5, 3))
    model = model_of(graph, tmp_path / "net.tflite")
    out, blob = tmp_path / "out", tmp_path / "new.bin"
    made = ["--library", "--weights", "external", "--weights-address", "0x21800000"]
    assert run(["compile", str(model), "-b", "mps2-an386", "-o", str(out), *made]) == 0
    assert "Weights outside of the code: net_weights.bin" in capsys.readouterr().out
    listed = {path.name for path in out.iterdir()}
    assert {"net_weights.bin", "net_weights.hex", "weights.json", "net.h"} <= listed
    assert "net_weights.h" not in listed
    rng = np.random.default_rng(0)
    again = model_of(check(retrained(graph, rng)), tmp_path / "again.tflite")
    command = ["weights", str(again), "--for", str(out), "-o", str(blob), "--json", "-"]
    assert run(command) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["size_bytes"] == len(blob.read_bytes())
    assert blob.read_bytes() != (out / "net_weights.bin").read_bytes()
    assert run(["weights", str(blob), "--for", str(out)]) == 0
    assert "takes these weights" in capsys.readouterr().out
    other = model_of(dense_chain("net", (6, 7, 3)), tmp_path / "other.tflite")
    assert run(["weights", str(other), "--for", str(out), "-o", str(tmp_path / "x.bin")]) == 2
    assert "what differs" in capsys.readouterr().err
    assert not (tmp_path / "x.bin").exists()
    for given in ([str(again)], [str(blob), "-o", "x.bin"], [str(tmp_path / "absent.bin")]):
        assert run(["weights", *given, "--for", str(out)]) == 2


def test_a_blob_that_code_would_refuse_is_refused_with_the_same_reason(tmp_path: Path) -> None:
    model = model_of(dense_chain("net", (6, 5, 3)), tmp_path / "net.tflite")
    out = tmp_path / "out"
    compile_library(model, "host", out, external=External())
    sound = (out / "net_weights.bin").read_bytes()
    cases = {
        "NO_BLOB": b"x" + sound[1:],
        "VERSION": sound[:4] + b"\2" + sound[5:],
        "MODEL": sound[:16] + bytes([sound[16] ^ 1]) + sound[17:],
        "SHORT": sound[:-1],
        "DAMAGED": sound[:-1] + bytes([sound[-1] ^ 1]),
    }
    assert check_weights(out / "net_weights.bin", out)["size_bytes"] == len(sound)
    for reason, data in cases.items():
        (tmp_path / "case.bin").write_bytes(data)
        with pytest.raises(InputError, match=f"ERROR_WEIGHTS_{reason}"):
            check_weights(tmp_path / "case.bin", out)
    plain = tmp_path / "plain"
    compile_library(model, "host", plain)
    with pytest.raises(InputError, match="--weights external"):
        new_weights(model, plain)
    with pytest.raises(UnsupportedError, match=r"input 'x', type: int8\[1, 6\] in the code"):
        new_weights(model_of(dense_chain("net", (7, 5, 3)), tmp_path / "wide.tflite"), out)


@pytest.mark.parametrize("address", [0x90000004, -8, 1 << 32])
def test_an_address_where_no_blob_can_lie_is_refused(address: int) -> None:
    with pytest.raises(InputError, match="--weights-address"):
        External(address)


@needs_qemu
def test_an_address_that_leaves_the_firmware_no_place_is_refused(tmp_path: Path) -> None:
    for address in (0x08000000, 0x080FFF00):
        with pytest.raises(InputError, match="do not leave the beginning of FLASH"):
            compile_model(DIGITS, "netduinoplus2", tmp_path / "out", external=External(address))


def test_intel_hex_crosses_64_kib() -> None:
    data = bytes(range(256)) * 2
    memory: dict[int, int] = {}
    upper = 0
    for line in intel_hex(data, 0x9000FF00).splitlines():
        record = bytes.fromhex(line[1:])
        assert sum(record) % 256 == 0 and len(record) == record[0] + 5
        place, kind, payload = int.from_bytes(record[1:3], "big"), record[3], record[4:-1]
        if kind == 4:
            upper = int.from_bytes(payload, "big") << 16
        elif kind == 0:
            memory.update({upper + place + i: byte for i, byte in enumerate(payload)})
    assert line == ":00000001FF"
    assert memory == {0x9000FF00 + i: byte for i, byte in enumerate(data)}
