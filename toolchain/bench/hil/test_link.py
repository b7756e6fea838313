"""The line to the board: greeting, echo, refusals, noise, order, resets."""

from __future__ import annotations

import numpy as np
import pytest

from toolchain.bench.bench_file import BenchBoard
from toolchain.bench.echo import ECHO_BYTES
from toolchain.device import protocol
from toolchain.device.link import BoardResetError, Link, RefusedError, Transport
from toolchain.device.protocol import Frame, Type
from toolchain.device.session import Session


class Recorder:
    """A line that keeps what is written to it. It is closed by who opened it."""

    def __init__(self, line: Transport) -> None:
        self._line = line
        self.sent: list[bytes] = []

    def read(self, timeout_seconds: float) -> bytes:
        return self._line.read(timeout_seconds)

    def write(self, data: bytes) -> None:
        self.sent.append(data)
        self._line.write(data)

    def close(self) -> None:
        """Nothing: the line goes on."""


def test_the_board_says_what_it_is(board: BenchBoard, echo: Session) -> None:
    assert (echo.hello.board, echo.hello.model) == (board.name, "echo")
    assert echo.hello.build_id == echo.firmware.build_id
    assert [tensor.size_bytes for tensor in echo.describe()] == [ECHO_BYTES, ECHO_BYTES]


def test_every_byte_value_comes_back(board: BenchBoard, echo: Session) -> None:
    rng = np.random.default_rng(1)
    for data in (
        np.arange(ECHO_BYTES) % 256,
        np.zeros(ECHO_BYTES),
        rng.integers(0, 256, ECHO_BYTES),
    ):
        sent = data.astype(np.uint8).view(np.int8).reshape(1, ECHO_BYTES)
        np.testing.assert_array_equal(echo.run([sent]).outputs["output"], sent.ravel())


def test_bad_requests_are_refused_and_harm_nothing(board: BenchBoard, link: Link) -> None:
    with pytest.raises(RefusedError, match="bad index"):
        link.request(Type.DESCRIBE, b"\0\7")
    with pytest.raises(RefusedError, match="bad range"):
        link.request(Type.READ, b"\0" + ECHO_BYTES.to_bytes(4, "little") + b"\1\0")
    with pytest.raises(RefusedError, match="bad length"):
        link.request(Type.RUN, b"x")
    assert len(link.request(Type.MEMORY)) == 8


def test_noise_before_a_request_costs_a_retry_at_most(board: BenchBoard, echo: Session) -> None:
    rng = np.random.default_rng(2)
    data = rng.integers(-128, 128, (1, ECHO_BYTES)).astype(np.int8)
    for _ in range(5):
        echo.link.transport.write(rng.bytes(20))
        np.testing.assert_array_equal(echo.run([data]).outputs["output"], data.ravel())


def test_a_late_copy_changes_nothing(board: BenchBoard, echo: Session) -> None:
    """A frame of the past, sent once more: the board refuses it, and goes on."""
    data = np.full((1, ECHO_BYTES), 7, np.int8)
    echo.run([data])
    old = Frame(echo.link.sequence - 2, Type.WRITE, bytes(5) + b"\x55" * 100)
    echo.link.transport.write(protocol.DELIMITER + protocol.encode(old))
    np.testing.assert_array_equal(
        np.frombuffer(echo.read_output(0, ECHO_BYTES), np.int8), data.ravel()
    )


def test_frames_of_an_earlier_connection_change_nothing(board: BenchBoard, echo: Session) -> None:
    """A whole inference of the past, sent once more between writing and running."""
    line = echo.link.transport
    recorder = Recorder(line)
    Session(echo.firmware, recorder, None).run([np.full((1, ECHO_BYTES), 7, np.int8)])
    data = np.full((1, ECHO_BYTES), 9, np.int8)
    for late in (recorder.sent[1:], recorder.sent):
        echo.greet()
        echo.write_input(0, data.tobytes())
        line.write(b"".join(late))
        np.testing.assert_array_equal(echo.run([data]).outputs["output"], data.ravel())


def test_a_reset_in_the_middle_is_noticed_and_made_good(board: BenchBoard, echo: Session) -> None:
    data = np.full((1, ECHO_BYTES), 9, np.int8)
    echo.write_input(0, data.tobytes())
    echo.link.request(Type.RESET)
    Link(echo.link.transport).handshake(10.0)  # somebody else's greeting
    with pytest.raises(BoardResetError):
        echo.link.request(Type.RUN)
    np.testing.assert_array_equal(echo.run([data]).outputs["output"], data.ravel())
