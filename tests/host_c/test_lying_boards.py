"""A board that lies in any field of any answer: right numbers or one message, and always an end."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.host_c.test_line_faults import MODEL
from tests.support import liar
from tests.support.liar import ANSWERS, FIELDS, TEXTS, Liar, Lie
from tests.support.line import TENSOR_BYTES, FaultyLine, compile_line, line_output
from toolchain.boards import board
from toolchain.cost.basis import Basis
from toolchain.deployment.run import counted_time
from toolchain.device import protocol
from toolchain.device.answers import check_counts, check_ticks
from toolchain.device.firmware import Firmware, Sizes
from toolchain.device.link import Link
from toolchain.device.protocol import CRASHED, DELIMITER, Frame, Type
from toolchain.device.session import Session
from toolchain.errors import LinkError
from toolchain.files.printable import printable

LONGEST_SECONDS = 900.0
"""Of virtual time, for all requests below together: RUN may be silent for 120 s, thrice."""
MOST_EXCHANGES = 600
LONGEST_MESSAGE = 400

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_line(tmp_path_factory.mktemp("line"))


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    sizes = Sizes(0, 0, 0, 0, 0, 0)
    return Firmware(
        tmp_path_factory.mktemp("none"), board("netduinoplus2"), (MODEL,), sizes, "00" * 16
    )


def use(library: ctypes.CDLL, firmware: Firmware, lying: Liar) -> str:
    """Everything that is asked of a board. The message with which it ended; '' if with none."""
    lying.line.power_on()
    data = np.arange(TENSOR_BYTES).astype(np.int8)
    message = ""
    try:
        session = Session(firmware, lying, None, Link(lying, clock=lying.line.clock))
        run = session.run({"in": data})
        assert np.array_equal(run.outputs["out"], line_output(data))
        counts = session.operator_counts()
        assert sum(count.count for count in counts) < 1 << 63 and 0 <= run.count < 1 << 63
        assert session.memory_use().arena_bytes <= MODEL.arena_bytes
        session.describe()
        session.last_fault()
        session.clear_state()
        session.run_pattern(7)
        session.reset()
    except LinkError as error:
        message = str(error)
        assert message and len(message) <= LONGEST_MESSAGE
        shown = printable(message)
        assert shown.replace("\n", "").isprintable()
    assert lying.line.seconds < LONGEST_SECONDS
    assert lying.exchanges < MOST_EXCHANGES
    return message


def honest(library: ctypes.CDLL) -> FaultyLine:
    return FaultyLine(library, np.random.default_rng(1), 0.0)


def lies() -> Iterator[tuple[str, Lie]]:
    for kind, name, place, letter in FIELDS:
        for value in liar.values(letter):
            lie = liar.other_value(kind, place, letter, value)
            yield f"{kind.name} {name} {value}", lie
    for kind in (Type.HELLO, Type.DESCRIBE):
        for number, text in enumerate(TEXTS):
            for end in (b"\0", b""):
                yield f"{kind.name} name {number} {end!r}", liar.other_names(kind, text, end)
    for kind in ANSWERS:
        for change in (0, -1, -7, 1, 8, 5000):
            yield f"{kind.name} length {change}", liar.other_length(kind, change)
        for other in (0, 0x7F, CRASHED, *(each | 0x80 for each in ANSWERS if each != kind)):
            yield f"{kind.name} type {other}", liar.other_frame(kind, type=other)
        for sequence in (0, 1, 0xFFFFFFFF):
            yield f"{kind.name} sequence {sequence}", liar.other_frame(kind, sequence=sequence)
        for code in (0, *range(1, 11), 255):
            yield f"{kind.name} error {code}", liar.error(kind, bytes((code,)))
        yield f"{kind.name} error without a code", liar.error(kind, b"")
        yield f"{kind.name} error of 0", liar.error(kind, b"\1", 0)
        for times in (0, 2, 300):
            yield f"{kind.name} {times} times", liar.often(kind, times)


def test_every_lie_ends_in_right_numbers_or_in_one_message(
    library: ctypes.CDLL, firmware: Firmware
) -> None:
    said = {}
    for name, lie in lies():
        try:
            said[name] = use(library, firmware, Liar(honest(library), lie))
        except Exception as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
    assert len(said) > 500
    for name, text in (
        ("HELLO data 0", "a frame carries 0 bytes of data"),
        ("HELLO inputs 3", "has 3 inputs, and its firmware has 1"),
        ("HELLO outputs 0", "has 0 outputs"),
        ("HELLO operators 3", "has 3 counted operators, and its firmware has 0 or 2"),
        ("HELLO flags 1", "counts cycles, and netduinoplus2 counts instructions"),
        ("HELLO arena 0", "has 0 bytes of arena"),
        ("HELLO models 255", "has 255 models"),
        ("HELLO beside -1", "the memory beside the chip failed (status -1)"),
        ("HELLO name 4 b'\\x00'", "a name of 5000 bytes"),
        ("RUN ticks 18446744073709551615", "which its counter cannot reach"),
        ("RUN status 1", "(operator 'first')"),
        ("RUN status -1", "failed on the board with status -1"),
        ("COUNTS second 18446744073709551615", "its counter does not go forward"),
        ("COUNTS length 0", "sent 0 counts where 2 of 2"),
        ("COUNTS length 8", "sent 3 counts where 2 of 2"),
        ("MEMORY arena 4294967295", "4,294,967,295 bytes of its arena of 900"),
        ("MEMORY length 5000", "instead of 2 words"),
    ):
        assert text in said[name], (name, said[name])
    assert said["HELLO name 1 b'\\x00'"] == ""  # names are not what tells a firmware


@pytest.mark.parametrize(
    "noise",
    [
        b"\x01" * (1 << 12),
        b"\xff" * (1 << 16),
        b"\0" * (1 << 16),
        protocol.encode(Frame(0, Type.RUN | 0x80)) * 200,
        protocol.encode(Frame(0, CRASHED)) * 200,
        b"\x1b[2J\r\n" * 512,
    ],
    ids=["01", "ff", "zeros", "frames", "crashes", "text"],
)
def test_a_line_that_never_rests_ends(
    library: ctypes.CDLL, firmware: Firmware, noise: bytes
) -> None:
    lying = Liar(honest(library), noise=noise)
    use(library, firmware, lying)
    decoder = protocol.Decoder()
    for _ in range(100):
        list(decoder.feed(noise))
    assert len(decoder._pending) < 1 << 18
    silent = Liar(honest(library), liar.often(Type.HELLO, 0), noise)
    assert "does not answer" in use(library, firmware, silent)


def test_names_of_another_firmware_are_told_as_they_can_be_seen(
    library: ctypes.CDLL, firmware: Firmware
) -> None:
    named = liar.other_names(Type.HELLO, TEXTS[1] + TEXTS[2])
    other = liar.other_value(Type.HELLO, 17, "Q", 1)
    lying = Liar(honest(library), lambda frame: other(named(frame)[0]))
    said = use(library, firmware, lying)
    assert "the board runs another firmware (" in said
    assert "\u241b]0;owned\u2407" in printable(said) and "\\u202egpj" in printable(said)


def test_counts_that_silicon_cannot_reach_are_told() -> None:
    silicon = board("nucleo-f446re")
    second = silicon.clock_hz
    check_ticks(second, 1.01, silicon)
    check_ticks(100, 0.0, silicon)
    for ticks in (10 * second, 1 << 40, (1 << 64) - 5):
        with pytest.raises(LinkError, match="cannot reach"):
            check_ticks(ticks, 1.01, silicon)
    check_counts((60, 41), 100)
    check_counts((1 << 50,), None)
    with pytest.raises(LinkError, match="does not go forward"):
        check_counts((60, (1 << 32) - 3), 100)


def test_a_delimiter_ends_noise() -> None:
    frame = Frame(1, Type.RUN | 0x80, b"x")
    decoder = protocol.Decoder()
    list(decoder.feed(b"\x07" * (1 << 19)))
    (_, found) = decoder.feed(DELIMITER.join((b"\x07", protocol.encode(frame))))
    assert protocol.decode(found) == frame


def on_silicon(clock_hz: int, identity: int) -> Lie:
    """The HELLO of a board that counts cycles."""

    def lie(frame: Frame) -> list[Frame]:
        chip = clock_hz.to_bytes(4, "little") + identity.to_bytes(4, "little")
        flags = bytes((frame.payload[0] | protocol.Flags.CYCLES,))
        payload = flags + frame.payload[1:-16] + chip + frame.payload[-8:]
        return [replace(frame, payload=payload)]

    return lambda frame: lie(frame) if frame.type == Type.HELLO | protocol.REPLY else [frame]


@pytest.mark.parametrize(
    ("name", "clock_hz", "identity"),
    [("nucleo-h743zi", 400_000_000, 0x1003_0450), ("nucleo-h723zg", 520_000_000, 0x1001_0483)],
)
def test_milliseconds_are_at_the_clock_that_the_board_has_set(
    library: ctypes.CDLL, firmware: Firmware, name: str, clock_hz: int, identity: int
) -> None:
    """Start-up limits an H743 before revision V and an H723 without CPUFREQ_BOOST
    (`pll_multiplier` of stm32/h7.c; stm32h7xx_hal_pwr_ex.c:431 at 6f5e35e), and the host divided by
    the 480 and 550 MHz of the board's file."""
    target = board(name)
    lying = Liar(honest(library), on_silicon(clock_hz, identity))
    lying.line.power_on()
    of_silicon = replace(firmware, board=target)
    session = Session(of_silicon, lying, None, Link(lying, clock=lying.line.clock))
    assert session.hello.device_id == identity & 0xFFF == target.chip.identity.device_id  # type: ignore[union-attr]
    assert session.hello.revision_id == identity >> 16
    done = session.run({"in": np.arange(TENSOR_BYTES).astype(np.int8)})
    assert done.unit == "cycles" and done.clock_hz == clock_hz
    time = counted_time(done.clock_hz, clock_hz, done.unit)
    assert time.milliseconds == 1000 and time.basis is Basis.MEASURED


@pytest.mark.parametrize(
    ("clock_hz", "identity", "message"),
    [
        (480_000_000, 0x1000_0451, "this is no nucleo-h743zi: its chip says device 0x451"),
        (500_000_000, 0x2003_0450, "says that its core runs at 500,000,000 Hz"),
    ],
)
def test_another_chip_or_clock_is_refused(
    library: ctypes.CDLL, firmware: Firmware, clock_hz: int, identity: int, message: str
) -> None:
    of_silicon = replace(firmware, board=board("nucleo-h743zi"))
    lying = Liar(honest(library), on_silicon(clock_hz, identity))
    assert message in use(library, of_silicon, lying)


def test_a_hello_of_an_older_firmware_tells_no_clock(
    library: ctypes.CDLL, firmware: Firmware
) -> None:
    lying = Liar(honest(library), liar.other_length(Type.HELLO, -16))
    lying.line.power_on()
    session = Session(firmware, lying, None, Link(lying, clock=lying.line.clock))
    assert session.hello.clock_hz == 0 and session.hello.models == 1
