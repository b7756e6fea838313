"""Frames in Python: stuffing, checksums, damage."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolchain.device import protocol
from toolchain.device.protocol import Decoder, Frame, FrameError, VersionError
from toolchain.errors import LinkError

BODIES = st.one_of(
    st.binary(max_size=700),
    st.integers(250, 260).map(lambda n: bytes([7]) * n),
    st.integers(0, 20).map(bytes),
)
FRAMES = st.builds(Frame, st.integers(0, 0xFFFFFFFF), st.integers(0, 255), BODIES)


@given(BODIES)
def test_stuffing_inverts_and_has_no_zero(data: bytes) -> None:
    encoded = protocol.cobs_encode(data)
    assert 0 not in encoded
    assert protocol.cobs_decode(encoded) == data
    assert len(encoded) <= len(data) + len(data) // 254 + 1


@given(st.lists(FRAMES, max_size=4), st.integers(1, 50))
def test_frames_survive_any_cutting_of_the_stream(frames: list[Frame], step: int) -> None:
    stream = b"\0".join(protocol.encode(frame) for frame in frames)
    decoder, got = Decoder(), []
    for start in range(0, len(stream), step):
        got += [protocol.decode(raw) for raw in decoder.feed(stream[start : start + step])]
    assert got == frames


@given(FRAMES, st.data())
def test_one_damaged_byte_is_noticed(frame: Frame, data: st.DataObject) -> None:
    encoded = protocol.encode(frame)[:-1]
    position = data.draw(st.integers(0, len(encoded) - 1))
    value = data.draw(st.integers(1, 255).filter(lambda v: v != encoded[position]))
    damaged = encoded[:position] + bytes([value]) + encoded[position + 1 :]
    with pytest.raises(FrameError):
        protocol.decode(damaged)


@given(FRAMES, st.data())
def test_a_truncated_frame_is_noticed(frame: Frame, data: st.DataObject) -> None:
    encoded = protocol.encode(frame)[:-1]
    with pytest.raises(FrameError):
        protocol.decode(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


def test_another_version_is_told_and_no_damage() -> None:
    old = bytes((1, 9, 0xFF, 4))  # version 1: sequence of one byte, error 4
    encoded = protocol.cobs_encode(old + zlib.crc32(old).to_bytes(4, "little"))
    with pytest.raises(VersionError, match="version 1 of the protocol, not 2: compile and flash"):
        protocol.decode(encoded)


@given(st.binary(max_size=60))
def test_no_payload_makes_a_parser_crash(payload: bytes) -> None:
    parsers = (protocol.parse_hello, protocol.parse_describe, protocol.parse_fault)
    for parse in parsers:
        try:
            parse(payload)
        except LinkError as error:
            assert str(error)


def test_pattern_is_xorshift32() -> None:
    first = 270369  # Marsaglia's generator from 1
    second = first ^ first << 13 & 0xFFFFFFFF
    second ^= second >> 17
    second ^= second << 5 & 0xFFFFFFFF
    assert protocol.pattern(1, 2) == bytes((first >> 24, second >> 24))
    assert protocol.pattern(first, 4) == protocol.pattern(1, 5)[1:]
    with pytest.raises(ValueError, match="seed"):
        protocol.pattern(0, 1)


def fault(sp: int) -> protocol.Fault:
    """A HardFault of a core whose registers do not tell the cause."""
    words = [0] * 18
    words[8], words[10], words[16] = sp, 3, 0x20000000
    read = protocol.parse_fault(b"".join(word.to_bytes(4, "little") for word in words))
    assert read is not None
    return read


def test_a_fault_without_status_registers_is_told_by_the_stack() -> None:
    assert fault(0x20000100).reason() == "a HardFault, whose cause the core does not tell"
    assert fault(0x1FFFFFF0).reason() == "the stack overflowed"
