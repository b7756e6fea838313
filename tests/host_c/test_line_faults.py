"""Ten thousand random faults between the link and the firmware's C: no wrong number, no hang."""

from __future__ import annotations

import ctypes
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.line import (
    TENSOR_BYTES,
    FaultyLine,
    compile_line,
    line_counts,
    line_output,
)
from toolchain.boards import board
from toolchain.device.firmware import (
    Firmware,
    FirmwareModel,
    FirmwarePart,
    OperatorName,
    Port,
    Sizes,
)
from toolchain.device.link import BoardResetError, Link, RefusedError
from toolchain.device.protocol import Type
from toolchain.device.session import Session, StateLostError
from toolchain.errors import LinkError
from toolchain.ir import DType

FAULTS = 10_000
LONGEST_SECONDS = 1500.0
"""Of virtual time: a run has 9 requests, each of at most 4 s of silence, or 120 s for RUN."""

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

MODEL = FirmwareModel(
    name="line",
    parts=(FirmwarePart(900),),
    inputs=(Port("in", "in", 0, (TENSOR_BYTES,), DType.INT8),),
    outputs=(Port("out", "out", 300, (TENSOR_BYTES,), DType.INT8),),
    operators=(OperatorName("first", "mul"), OperatorName("second", "add")),
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_line(tmp_path_factory.mktemp("line"))


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    sizes = Sizes(0, 0, 0, 0, 0, 0)
    return Firmware(
        tmp_path_factory.mktemp("none"), board("netduinoplus2"), (MODEL,), sizes, "00" * 16
    )


def opened(firmware: Firmware, line: FaultyLine) -> Session:
    line.replug()
    return Session(firmware, line, None, Link(line, clock=line.clock))


def random_input(rng: np.random.Generator) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    return rng.integers(-128, 128, TENSOR_BYTES).astype(np.int8)


def test_no_fault_gives_a_wrong_number_or_a_hang(library: ctypes.CDLL, firmware: Firmware) -> None:
    rng = np.random.default_rng(2026)
    happened: Counter[str] = Counter()
    right, told = 0, Counter[str]()
    while sum(happened.values()) < FAULTS:
        line = FaultyLine(library, rng, float(rng.choice([0.004, 0.02, 0.06])))
        line.power_on()
        for _ in range(20):
            data, start = random_input(rng), line.seconds
            try:
                with opened(firmware, line) as session:
                    for _ in range(4):
                        run = session.run([data])
                        np.testing.assert_array_equal(run.outputs["out"], line_output(data))
                        assert run.count == sum(line_counts(data))
                        counts = tuple(op.count for op in session.operator_counts())
                        assert counts == line_counts(data)
                        right += 1
                        data = random_input(rng)
            except LinkError as error:
                told[str(error)[:40]] += 1
                if "another firmware" in str(error):
                    line.power_on()
            assert line.seconds - start < LONGEST_SECONDS
        happened += line.happened
    assert right > 2000, told
    assert len(happened) == 10 and min(happened.values()) >= 5, happened
    assert any("another firmware" in text for text in told)


def test_a_reset_in_the_middle_is_made_good(library: ctypes.CDLL, firmware: Firmware) -> None:
    """Between writing and running: without a greeting the board answers nothing."""
    rng = np.random.default_rng(1)
    line = FaultyLine(library, rng, 0.0)
    line.power_on()
    session = opened(firmware, line)
    data = random_input(rng)
    session.write_input(0, data.tobytes())
    line.power_on()
    for kind, payload in ((Type.RUN, b""), (Type.COUNTS, b"\0\0"), (Type.MEMORY, b"")):
        with pytest.raises(BoardResetError, match="reset in the middle"):
            session.link.request(kind, payload)
    run = session.run([data])
    np.testing.assert_array_equal(run.outputs["out"], line_output(data))
    line.power_on()
    session.reset()
    assert session.run([data]).count == run.count


def test_a_state_that_a_reset_took_is_told(library: ctypes.CDLL, firmware: Firmware) -> None:
    """Another run would give values, but not those of the sequence."""
    line = FaultyLine(library, np.random.default_rng(1), 0.0)
    line.power_on()
    model = replace(MODEL, stateful=True)
    session = opened(replace(firmware, models=(model,)), line)
    data = random_input(np.random.default_rng(2))
    session.clear_state()
    session.run([data])
    line.power_on()
    with pytest.raises(StateLostError, match="begin the sequence again"):
        session.run([data])
    line.power_on()
    session.clear_state()
    np.testing.assert_array_equal(session.run([data]).outputs["out"], line_output(data))


def test_another_firmware_after_a_reset_is_noticed(
    library: ctypes.CDLL, firmware: Firmware
) -> None:
    rng = np.random.default_rng(1)
    line = FaultyLine(library, rng, 0.0)
    line.power_on()
    session = opened(firmware, line)
    line.power_on(1)
    with pytest.raises(LinkError, match="another firmware"):
        session.run([random_input(rng)])


def test_what_an_earlier_connection_sent_changes_nothing(
    library: ctypes.CDLL, firmware: Firmware
) -> None:
    """All its frames, the greeting too, come once more before each request of the next one."""
    rng = np.random.default_rng(4)
    line = FaultyLine(library, rng, 0.0)
    line.power_on()
    sent: list[bytes] = []
    write = line.write
    line.write = lambda data: (sent.append(data), write(data))[1]  # type: ignore[method-assign]
    earlier = opened(firmware, line)
    earlier.run([random_input(rng)])
    greeting, *late = sent
    data = random_input(rng)
    for copies in (late, [late[0]], [greeting]):
        line.write = lambda own, copies=copies: write(b"".join(copies) + own)  # type: ignore[method-assign]
        session = opened(firmware, line)
        if copies == [greeting]:
            with pytest.raises(BoardResetError):
                session.run([data])
        else:
            np.testing.assert_array_equal(session.run([data]).outputs["out"], line_output(data))


def test_refusals_of_good_frames_are_not_tried_again(
    library: ctypes.CDLL, firmware: Firmware
) -> None:
    line = FaultyLine(library, np.random.default_rng(1), 0.0)
    line.power_on()
    session = opened(firmware, line)
    start = line.seconds
    with pytest.raises(RefusedError, match="bad index"):
        session.link.request(Type.DESCRIBE, b"\0\7")
    assert line.seconds - start < 0.1
    assert session.describe()[0].size_bytes == TENSOR_BYTES


def test_a_silent_board_is_told_in_time(
    library: ctypes.CDLL, firmware: Firmware, tmp_path: Path
) -> None:
    line = FaultyLine(library, np.random.default_rng(1), 0.0)
    line.power_on()
    session = opened(firmware, line)
    line.write = lambda data: None  # type: ignore[method-assign]
    start = line.seconds
    with pytest.raises(LinkError, match="no answer to MEMORY within 4 s"):
        session.link.request(Type.MEMORY)
    assert line.seconds - start < 6
