"""The level `frames`: valid, mutated and random frames to a firmware in QEMU, one at a time.

After each chunk of frames a greeting and an inference must give the right bytes. A frame is sent
when the last one is answered, or was given time to be; EXIT ends the emulator, which starts again.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.fuzz.outcome import (
    ANSWERED,
    DEATH,
    HANG,
    WRONG,
    Outcome,
)
from benchmarks.fuzz.pool import Serve
from tests.support.mutations import INTEGERS
from toolchain.bench.probe_model import BYTES, probe_firmware, probe_input, probe_output
from toolchain.boards import board
from toolchain.device import protocol
from toolchain.device.protocol import CRASHED, ERROR, REPLY, ErrorCode, Frame, Type
from toolchain.device.qemu import Machine
from toolchain.device.session import Session
from toolchain.errors import LinkError

_ANSWER_SECONDS = 5.0
"""For a whole frame; an emulated board takes milliseconds."""
_POLL_SECONDS = 0.05
_LAST_SEQUENCE = 0xFFFFFFFF
_NONCE_STEP = 7919
_SHAPES = (
    *("valid",) * 6,
    *("payload",) * 4,
    "header",
    "order",
    *("mutated",) * 3,
    "random",
    "raw",
)
_ENDING = {Type.RESET: 0.15, Type.EXIT: 0.15}
"""How often those are let through that end what the board was at."""


class _Board:
    """A machine, and the sequence that it takes next."""

    def __init__(self, name: str, folder: Path) -> None:
        self.firmware = probe_firmware(board(name), folder)
        self.start()

    def start(self) -> None:
        self.machine = Machine(self.firmware.board, self.firmware.elf)
        self.decoder, self.sequence, self.nonce = protocol.Decoder(), 0, 1
        self.checked(np.random.default_rng(0))

    def restart(self) -> None:
        self.machine.stop()
        self.start()

    def checked(self, rng: np.random.Generator) -> None:
        """A greeting and an inference. Raises LinkError or AssertionError where they fail."""
        session = Session(self.firmware, self.machine.transport, None)
        data = probe_input(rng)
        got = session.run([data]).outputs["probe/out:0"]
        np.testing.assert_array_equal(got, probe_output(data))
        self.answers(b"", whole=False)
        self.sequence = self.nonce

    def answers(self, data: bytes, whole: bool) -> list[Frame]:
        """What comes back for a whole frame; for anything else, until a greeting after it is
        answered, whose sequence is the board's from then on.

        Raises LinkError where the machine ended, FrameError for a damaged answer.
        """
        self.nonce = (self.nonce + _NONCE_STEP) % _LAST_SEQUENCE + 1
        if not whole:
            data += _encoded(Frame(self.nonce, Type.HELLO))
        self.machine.transport.write(data)
        until = time.monotonic() + _ANSWER_SECONDS
        frames: list[Frame] = []
        while time.monotonic() < until:
            for raw in self.decoder.feed(self.machine.transport.read(_POLL_SECONDS)):
                frames.append(protocol.decode(raw))
                if whole or frames[-1].sequence == self.nonce:
                    return frames
        return frames


def framer(seed: int, place: str = "netduinoplus2") -> Serve:
    """The level `frames` on one emulated board."""
    folder = tempfile.TemporaryDirectory(prefix="thimble-fuzz-")
    line = _Board(place, Path(folder.name))

    def serve(numbers: Sequence[int], begun: Callable[[int], None]) -> Iterator[Outcome]:
        assert folder.name
        for number in numbers:
            begun(number)
            yield _sent(seed, number, line)
        try:
            line.checked(np.random.default_rng(numbers[-1]))
        except (LinkError, AssertionError) as error:
            yield Outcome(numbers[-1], WRONG, "the inference after a chunk", str(error)[:300])
            line.restart()

    return serve


def _sent(seed: int, number: int, line: _Board) -> Outcome:
    rng = random.Random(f"frame {seed} {number}")
    what, kind, data = _frame(rng, line.sequence)
    try:
        answers = line.answers(data, whole=what != "damaged")
    except protocol.FrameError as error:
        line.restart()
        return Outcome(number, WRONG, "a damaged answer", str(error))
    except LinkError as error:
        line.restart()
        return Outcome(number, DEATH, f"the emulator ended at {what} {kind:#x}", str(error))
    outcome = _judged(number, what, kind, answers, line)
    if outcome.kind in (WRONG, HANG):
        line.restart()
    elif what == "valid" and kind == Type.EXIT:
        ended = line.machine.exit_code()
        line.restart()
        return Outcome(number, WRONG, f"EXIT with code {ended}") if ended else outcome
    elif what == "valid" and kind == Type.RESET:
        line.checked(np.random.default_rng(number))
    return outcome


def _judged(number: int, what: str, kind: int, answers: list[Frame], line: _Board) -> Outcome:
    """Of what came back; and which sequence the board has now."""
    if any(answer.type == CRASHED for answer in answers):
        return Outcome(number, WRONG, f"a fault at {what} {kind:#x}")
    if not answers or (what == "damaged" and answers[-1].sequence != line.nonce):
        return Outcome(number, HANG, f"no answer to {what} {kind:#x}")
    answer = answers[-1]
    if what == "damaged":
        line.sequence = line.nonce
        return Outcome(number, ANSWERED, f"damaged: {min(len(answers) - 1, 3)} answers")
    if answer.type == ERROR:
        code = ErrorCode(answer.payload[0])
        if what == "valid" and (kind, code) != (Type.TIME, ErrorCode.TYPE):
            return Outcome(number, WRONG, f"{code.name} for a valid {Type(kind).name}")
        if answer.sequence and code is not ErrorCode.ORDER:
            line.sequence = answer.sequence
        return Outcome(number, ANSWERED, f"error {code.name}")
    if answer.type != kind | REPLY:
        return Outcome(number, WRONG, f"{answer.type:#x} answers {kind:#x}")
    line.sequence = answer.sequence
    return Outcome(number, ANSWERED, Type(kind).name)


def _frame(rng: random.Random, sequence: int) -> tuple[str, int, bytes]:
    """What it is (`valid`: must be served; `whole`: answered; `damaged`), its type, its bytes."""
    shape = rng.choice(_SHAPES)
    kind: int = rng.choice([kind for kind in Type if rng.random() < _ENDING.get(kind, 1.0)])
    if sequence == 0 and rng.random() < 0.7:
        kind = Type.HELLO
    following = rng.randrange(1, 1 << 32) if kind is Type.HELLO else sequence % 0xFFFFFFFF + 1
    payload = _payload(kind, rng)
    if shape == "valid" and (sequence or kind is Type.HELLO):
        return "valid", kind, _encoded(Frame(following, kind, payload))
    if kind in (Type.EXIT, Type.RESET):
        kind = Type.RUN
    if shape == "payload":
        payload = rng.randbytes(rng.choice((0, 1, 2, 5, 6, 7, 8, rng.randrange(262))))
        return "whole", kind, _encoded(Frame(following, kind, payload))
    if shape == "header":
        kind = rng.choice([t for t in range(256) if t not in (Type.EXIT, Type.RESET)])
        version = rng.choice((protocol.VERSION, rng.randrange(256)))
        return "whole", kind, _encoded(Frame(following, kind, payload, version))
    if shape == "order":
        return "whole", kind, _encoded(Frame(rng.choice((0, rng.getrandbits(32))), kind, payload))
    if shape == "random":
        return "damaged", kind, b"\0" + rng.randbytes(rng.randrange(600)) + b"\0"
    if shape == "raw":
        body = rng.randbytes(rng.randrange(1, 280))
        return "whole", kind, b"\0" + protocol.cobs_encode(body) + b"\0"
    return "damaged", kind, _damaged(_encoded(Frame(following, kind, payload)), rng)


def _encoded(frame: Frame) -> bytes:
    return protocol.DELIMITER + protocol.encode(frame)


def _payload(kind: int, rng: random.Random) -> bytes:
    """One that the probe's firmware must serve."""
    if kind == Type.DESCRIBE:
        return bytes((rng.randrange(2), 0))
    if kind == Type.WRITE:
        size = rng.randrange(257)
        offset = rng.randrange(BYTES - size + 1)
        data = bytes((0,)) + rng.randbytes(size - 1) if size else b""
        return bytes((0,)) + offset.to_bytes(4, "little") + data
    if kind == Type.READ:
        size = rng.randrange(257)
        place = rng.randrange(BYTES - size + 1).to_bytes(4, "little")
        return bytes((0,)) + place + size.to_bytes(2, "little")
    if kind == Type.COUNTS:
        return rng.randrange(2).to_bytes(2, "little")
    if kind == Type.PATTERN:
        return bytes((0,)) + _seed(rng).to_bytes(4, "little")
    if kind == Type.TIME:
        return bytes(2) + rng.randrange(1, 1 << 32).to_bytes(4, "little")
    return b""


def _seed(rng: random.Random) -> int:
    """Whose first byte asks the probe for no fault."""
    while True:
        seed = rng.randrange(1, 1 << 32)
        if protocol.pattern(seed, 1)[0] < 0x80:
            return seed


def _damaged(data: bytes, rng: random.Random) -> bytes:
    result = bytearray(data)
    how = rng.randrange(5)
    at = rng.randrange(len(result))
    if how == 0:
        del result[at : at + rng.randrange(1, 20)]
    elif how == 1:
        result[at] ^= 1 << rng.randrange(8)
    elif how == 2:
        result[at:at] = rng.randbytes(rng.randrange(1, 300))
    elif how == 3:
        result = result * 2
    else:
        result[at:] = (rng.choice(INTEGERS) & 0xFFFFFFFF).to_bytes(4, "little")
    return bytes(result) + b"\0"
