"""The firmware's framing, compiled for this machine, against the Python of the other end."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolchain.device import protocol
from toolchain.device.protocol import Frame
from toolchain.resources import RUNTIME_C

FIRMWARE = RUNTIME_C / "firmware"
DATA_BYTES = 256
BODY_BYTES = 6 + 5 + DATA_BYTES + 4
MORE, OK, CHECKSUM, MALFORMED, TOO_LONG = -1, 0, 1, 2, 3

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

FRAMES = st.builds(
    Frame,
    st.integers(0, 0xFFFFFFFF),
    st.integers(0, 255),
    st.one_of(
        st.binary(max_size=DATA_BYTES + 5),
        st.integers(240, 260).map(lambda n: bytes([9]) * n),
        st.integers(240, DATA_BYTES + 5).map(bytes),
    ),
)


class Decoder(ctypes.Structure):
    _fields_ = (
        ("length", ctypes.c_uint32),
        ("block", ctypes.c_uint8),
        ("block_left", ctypes.c_uint8),
        ("body", ctypes.c_uint8 * BODY_BYTES),
    )


PUT = ctypes.CFUNCTYPE(None, ctypes.c_uint8)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ctypes.CDLL]:
    target = tmp_path_factory.mktemp("frame") / "frame.so"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wundef", "-Werror", "-O1"]
    trap = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-shared", "-fPIC"]
    source = [f"-I{FIRMWARE / 'include'}", str(FIRMWARE / "frame.c")]
    subprocess.run(["gcc", *flags, *trap, *source, "-o", str(target)], check=True)
    yield ctypes.CDLL(str(Path(target)))


def decode(library: ctypes.CDLL, data: bytes) -> list[tuple[int, bytes]]:
    """Status and body of every frame that the C finds in `data`."""
    decoder, found = Decoder(), []
    for byte in data:
        status = library.thimble_frame_decode(ctypes.byref(decoder), ctypes.c_uint8(byte))
        if status != MORE:
            found.append((status, bytes(decoder.body[: min(decoder.length, BODY_BYTES)])))
    return found


def encode(library: ctypes.CDLL, body: bytes) -> bytes:
    decoder, sent = Decoder(), bytearray()
    decoder.length = len(body)
    decoder.body[: len(body)] = list(body)
    put: Callable[[int], None] = PUT(sent.append)
    library.thimble_frame_encode(ctypes.byref(decoder), put)
    return bytes(sent)


def whole_body(frame: Frame) -> bytes:
    header = bytes((protocol.VERSION, frame.type))
    return header + frame.sequence.to_bytes(4, "little") + frame.payload


@given(FRAMES)
def test_both_ends_agree(library: ctypes.CDLL, frame: Frame) -> None:
    body = whole_body(frame)
    assert decode(library, b"\0" + protocol.encode(frame)) == [(OK, body)]
    sent = encode(library, body)
    assert sent.count(0) == 1 and sent[-1] == 0
    assert protocol.decode(sent[:-1]) == frame


@given(FRAMES, st.data())
def test_damage_never_passes(library: ctypes.CDLL, frame: Frame, data: st.DataObject) -> None:
    encoded = bytearray(protocol.encode(frame))
    position = data.draw(st.integers(0, len(encoded) - 2))
    encoded[position] ^= data.draw(st.integers(1, 255))
    assert all(status != OK for status, _ in decode(library, bytes(encoded)))
    truncated = protocol.encode(frame)[: position + 1] + b"\0"
    if position < len(encoded) - 2:
        assert [status for status, _ in decode(library, truncated)] in ([CHECKSUM], [MALFORMED])


@given(st.binary(max_size=2000), FRAMES)
def test_a_good_frame_after_garbage(library: ctypes.CDLL, noise: bytes, frame: Frame) -> None:
    body = whole_body(frame)
    assert decode(library, noise + b"\0" + protocol.encode(frame))[-1] == (OK, body)


@given(st.integers(DATA_BYTES + 6, 4000))
def test_too_long_is_told_and_stays_in_the_buffer(library: ctypes.CDLL, size: int) -> None:
    frame = Frame(1, 3, bytes([5]) * size)
    following = Frame(2, 1)
    statuses = decode(library, protocol.encode(frame) + protocol.encode(following))
    assert [status for status, _ in statuses] == [TOO_LONG, OK]


def test_crc_is_that_of_zlib(library: ctypes.CDLL) -> None:
    library.thimble_crc32.restype = ctypes.c_uint32
    data = b"123456789"
    assert library.thimble_crc32(0, data, ctypes.c_size_t(len(data))) == 0xCBF43926
