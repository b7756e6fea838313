"""The firmware in QEMU: the protocol under abuse, faults, counts, and what is left behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from toolchain.bench.probe_model import (
    BUS_FAULT,
    BYTES,
    FAILS,
    OVERFLOW,
    UNDEFINED,
    probe_firmware,
    probe_input,
    probe_output,
)
from toolchain.boards import board, boards
from toolchain.device import protocol
from toolchain.device.build import BuildOptions
from toolchain.device.firmware import Firmware, load_firmware
from toolchain.device.link import BoardFaultError, Link, RefusedError, Transport
from toolchain.device.protocol import ErrorCode, Frame, Type
from toolchain.device.qemu import find_qemu
from toolchain.device.session import Session, open_board, pattern_inputs
from toolchain.errors import InputError, LinkError

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
AT = 0x0A0B0C0D
"""Where the sequence of a session starts."""
EMULATED = [name for name, b in boards().items() if b.emulator]


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    return probe_firmware(board("netduinoplus2"), tmp_path_factory.mktemp("probe"))


@pytest.fixture
def session(firmware: Firmware) -> Iterator[Session]:
    with open_board(firmware) as opened:
        yield opened


def replies(session: Session, sent: bytes, seconds: float = 5.0) -> list[Frame]:
    """Everything that the board answers to raw bytes."""
    machine = session.machine
    assert machine is not None
    machine.transport.write(sent)
    decoder, found = protocol.Decoder(), []
    while data := machine.transport.read(seconds if not found else 0.1):
        found += [protocol.decode(raw) for raw in decoder.feed(data)]
    return found


def write_request(payload_bytes: int = 8) -> bytes:
    payload = bytes((0,)) + bytes(4) + bytes([0x55]) * payload_bytes
    return protocol.encode(Frame(AT + 1, Type.WRITE, payload))


def flipped(frame: bytes) -> bytes:
    return frame[:-8] + bytes([frame[-8] ^ 0x20]) + frame[-7:]


def request(kind: int, payload: bytes = b"", version: int = protocol.VERSION) -> bytes:
    return protocol.encode(Frame(AT + 1, kind, payload, version))


def place(index: int, offset: int) -> bytes:
    return bytes((index,)) + offset.to_bytes(4, "little")


def raw(body: bytes) -> bytes:
    return protocol.cobs_encode(body + zlib.crc32(body).to_bytes(4, "little")) + protocol.DELIMITER


SHORT = raw(bytes((protocol.VERSION, Type.RUN, 1)))
VERSION_1 = raw(bytes((1, 9, Type.HELLO)))
BAD = [
    pytest.param(flipped(write_request()), ErrorCode.CHECKSUM, id="flipped bit"),
    pytest.param(write_request()[:-6] + b"\0", ErrorCode.MALFORMED, id="truncated"),
    pytest.param(b"\x01\0", ErrorCode.CHECKSUM, id="nothing in it"),
    pytest.param(write_request(3000), ErrorCode.TOO_LONG, id="oversized"),
    pytest.param(request(Type.WRITE, place(0, 0) + b"x", 3), ErrorCode.VERSION, id="version"),
    pytest.param(SHORT, ErrorCode.CHECKSUM, id="no whole header"),
    pytest.param(VERSION_1, ErrorCode.VERSION, id="hello of version 1"),
    pytest.param(request(0x55), ErrorCode.TYPE, id="unknown type"),
    pytest.param(
        protocol.encode(Frame(AT - 4, Type.READ, place(0, 0) + b"\1\0")), ErrorCode.ORDER, id="late"
    ),
    pytest.param(request(Type.TIME, bytes(6)), ErrorCode.TYPE, id="no kernels to time"),
    pytest.param(request(Type.RUN, b"x"), ErrorCode.LENGTH, id="payload where none belongs"),
    pytest.param(request(Type.WRITE, b"xy"), ErrorCode.LENGTH, id="write without offset"),
    pytest.param(request(Type.WRITE, place(1, 0) + b"x"), ErrorCode.INDEX, id="no such input"),
    pytest.param(request(Type.WRITE, place(0, BYTES) + b"x"), ErrorCode.RANGE, id="beyond"),
    pytest.param(
        request(Type.WRITE, place(0, 0xFFFFFFFF) + b"xy"), ErrorCode.RANGE, id="offset wraps"
    ),
    pytest.param(request(Type.READ, place(0, BYTES) + b"\1\0"), ErrorCode.RANGE, id="read beyond"),
    pytest.param(request(Type.READ, place(0, 0) + b"\1\2"), ErrorCode.RANGE, id="read too much"),
    pytest.param(request(Type.PATTERN, bytes(5)), ErrorCode.RANGE, id="pattern of seed 0"),
    pytest.param(request(Type.DESCRIBE, b"\2\0"), ErrorCode.INDEX, id="third direction"),
    pytest.param(request(Type.COUNTS, b"\3\0"), ErrorCode.INDEX, id="beyond the operators"),
]


def test_bad_frames_get_an_error_and_change_nothing(session: Session) -> None:
    """All in one session: an error must not spoil what follows it either."""
    data = probe_input(np.random.default_rng(1))
    count = session.run([data]).count
    memory = session.memory_use()
    for parameter in BAD:
        sent, code = parameter.values
        session.link.sequence = AT
        greeting = protocol.encode(Frame(AT, Type.HELLO))
        assert [f.sequence for f in replies(session, greeting)] == [AT]
        frames = replies(session, sent)
        assert [(f.type, f.payload) for f in frames] == [(protocol.ERROR, bytes([code]))]
        late, unread = code is ErrorCode.ORDER, code <= ErrorCode.VERSION
        assert frames[0].sequence == (0 if unread else AT - 4 if late else AT + 1)
        session.link.sequence = AT if late or unread else AT + 1
        reply = session.link.request(Type.RUN)
        assert protocol.parse_words(reply[:8]) == (0, count)
        output = session.read_output(0, BYTES)
        assert output == probe_output(data).tobytes(), parameter.id
    assert session.memory_use().arena_bytes == memory.arena_bytes


class NoisyTransport:
    """A real line on which some writes and reads are damaged, cut, or lost."""

    def __init__(self, line: Transport, rng: np.random.Generator) -> None:
        self._line = line
        self._rng = rng

    def _damaged(self, data: bytes) -> bytes:
        if len(data) < 4 or self._rng.random() > 0.15:
            return data
        at = int(self._rng.integers(1, len(data) - 1))
        harm: list[Callable[[], bytes]] = [
            lambda: data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :],
            lambda: data[:at] + data[at + 1 :],
            lambda: data[:at] + bytes([7, 0, 9]) + data[at:],
        ]
        return harm[int(self._rng.integers(len(harm)))]()

    def read(self, timeout_seconds: float) -> bytes:
        return self._damaged(self._line.read(timeout_seconds))

    def write(self, data: bytes) -> None:
        self._line.write(self._damaged(data))

    def close(self) -> None:
        self._line.close()


def test_a_noisy_line_costs_time_but_no_byte(session: Session) -> None:
    rng = np.random.default_rng(7)
    data = probe_input(rng)
    count = session.run([data]).count
    assert session.machine is not None
    session.link = Link(NoisyTransport(session.machine.transport, rng))
    right = 0
    while right < 3:
        try:
            run = session.run([data])
        except LinkError:
            continue
        np.testing.assert_array_equal(run.outputs["probe/out:0"], probe_output(data))
        assert run.count == count
        right += 1


@pytest.mark.parametrize("name", EMULATED)
def test_runs_counts_and_faults_on_every_machine(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    firmware = load_firmware(probe_firmware(board(name), tmp_path).folder)
    with open_board(firmware) as session:
        assert (session.hello.board, session.hello.model) == (name, "probe")
        assert [(t.name, t.size_bytes) for t in session.describe()] == [
            ("in", BYTES),
            ("out", BYTES),
        ]
        seen = set()
        for _ in range(4):
            data = probe_input(rng)
            run = session.run({"probe/in:0": data})
            np.testing.assert_array_equal(run.outputs["probe/out:0"], probe_output(data))
            operators = session.operator_counts()
            seen.add((run.count, tuple(op.count for op in operators)))
        assert len(seen) == 1
        count, (scale, misbehave) = seen.pop()
        assert run.unit == "instructions"
        assert 6 * BYTES < scale < 12 * BYTES and 0 < misbehave < 30
        # Each is rounded from ticks. What hooks take is seen on empty operators, whose addresses
        # a core with few registers keeps in them: an operator's own hooks take up to 4 more there.
        assert 0.99 * count <= scale + misbehave <= count + 8
        use = session.memory_use()
        assert use.arena_bytes == 2 * BYTES and 32 < use.stack_bytes < 512

        fault = faulted(session, UNDEFINED)
        # Armv6-M has no fault status registers.
        untold = firmware.board.core.name in ("cortex-m0", "cortex-m0plus")
        said = "cause the core does not tell" if untold else "undefined instruction"
        assert said in str(fault)
        code = firmware.board.memories[0]
        assert code.origin <= fault.register("pc") < code.end
        assert fault.register("psr") >> 24 & 1 == 1
        assert "stack overflowed" in str(faulted(session, OVERFLOW))
        run = session.run({"probe/in:0": data})
        np.testing.assert_array_equal(run.outputs["probe/out:0"], probe_output(data))
        assert run.count == count


def faulted(session: Session, how: int) -> protocol.Fault:
    """The fault of an input, and that the board recovers and remembers it."""
    data = probe_input(np.random.default_rng(3), how)
    with pytest.raises(BoardFaultError, match=r"operator 1 \('misbehave'\)") as caught:
        session.run([data])
    session.link.handshake(5.0)
    assert session.last_fault() == caught.value.fault
    return caught.value.fault


def test_bus_fault_tells_the_address(session: Session) -> None:
    fault = faulted(session, BUS_FAULT)
    assert fault.register("bfar") == 0x9FFFFFF0
    assert fault.register("cfsr") == 0x8200 and fault.register("hfsr") == 0x40000000
    session.reset()
    assert session.last_fault() is None


def test_a_status_other_than_zero_is_an_error(session: Session) -> None:
    with pytest.raises(LinkError, match="status -3"):
        session.run([probe_input(np.random.default_rng(3), FAILS)])


def test_pattern_inputs_are_made_on_the_board(session: Session) -> None:
    data = pattern_inputs(session.firmware, 5)["probe/in:0"].astype(np.int8)
    run = session.run_pattern(5)
    np.testing.assert_array_equal(run.outputs["probe/out:0"], probe_output(data))


def test_wrong_inputs_are_told(session: Session) -> None:
    with pytest.raises(InputError, match="probe/in:0"):
        session.run({"x": probe_input(np.random.default_rng(1))})
    with pytest.raises(InputError, match="int8 of shape"):
        session.run([np.zeros(BYTES, np.float32)])
    with pytest.raises(RefusedError, match="DESCRIBE"):
        session.link.request(Type.DESCRIBE, b"\0\7")


def test_without_counters_nothing_is_counted_twice(firmware: Firmware, tmp_path: Path) -> None:
    plain = probe_firmware(firmware.board, tmp_path, BuildOptions(profile=False))
    assert plain.sizes.bss_bytes < firmware.sizes.bss_bytes
    assert plain.sizes.code_bytes < firmware.sizes.code_bytes
    data = probe_input(np.random.default_rng(1))
    with open_board(firmware) as counted, open_board(plain) as uncounted:
        assert uncounted.operator_counts() == ()
        difference = abs(counted.run([data]).count - uncounted.run([data]).count)
        assert difference <= 2 * len(counted.operator_counts()) + 2


def test_the_machine_ends_with_its_session(firmware: Firmware) -> None:
    with open_board(firmware) as session:
        assert session.machine is not None
        pid = session.machine.pid
        session.link.request(Type.EXIT)
        assert session.machine.exit_code() == 0
    with open_board(firmware) as session:
        assert session.machine is not None
        pid = session.machine.pid
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_machine_dies_with_its_parent(firmware: Firmware) -> None:
    script = (
        "import sys, time\nfrom toolchain.device.session import open_board\n"
        "session = open_board(sys.argv[1])\nprint(session.machine.pid, flush=True)\ntime.sleep(600)"
    )
    command = [sys.executable, "-c", script, str(firmware.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 300
    while Path(f"/proc/{pid}/cmdline").exists() and time.monotonic() < deadline:
        if not Path(f"/proc/{pid}/cmdline").read_bytes():
            break  # a zombie that init has yet to reap
        time.sleep(0.02)
    else:
        assert not Path(f"/proc/{pid}").exists()


def test_another_firmware_is_noticed(firmware: Firmware, tmp_path: Path) -> None:
    other = probe_firmware(firmware.board, tmp_path, BuildOptions(stack_bytes=1024))
    assert other.build_id != firmware.build_id
    (tmp_path / "firmware.elf").write_bytes(firmware.elf.read_bytes())
    with pytest.raises(LinkError, match="another firmware"):
        open_board(other)


def test_what_the_emulator_says_is_told(firmware: Firmware, tmp_path: Path) -> None:
    (tmp_path / "firmware.elf").write_bytes(b"not an ELF")
    with pytest.raises(LinkError, match=r"the emulator ended.*Lockup"):
        open_board(replace(firmware, folder=tmp_path))


def test_a_serial_device(firmware: Firmware) -> None:
    """A pseudo-terminal: what a program sees of a USB serial adapter."""
    assert firmware.board.emulator is not None
    command = [find_qemu(), "-machine", firmware.board.emulator.machine, "-icount", "shift=0"]
    command += ["-kernel", str(firmware.elf), "-nodefaults", "-display", "none", "-serial", "pty"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as machine:
        try:
            assert machine.stdout is not None
            found = re.search(r"/dev/pts/\d+", machine.stdout.readline())
            assert found is not None
            data = probe_input(np.random.default_rng(4))
            with open_board(firmware, port=found[0]) as session:
                run = session.run([data])
                assert session.run([data]).count == run.count
            np.testing.assert_array_equal(run.outputs["probe/out:0"], probe_output(data))
        finally:
            machine.kill()


def test_a_port_that_is_not_there_is_told(tmp_path: Path, firmware: Firmware) -> None:
    with pytest.raises(LinkError, match="cannot open"):
        open_board(firmware, port=str(tmp_path / "no-such-tty"))
