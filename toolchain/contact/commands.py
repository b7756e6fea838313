"""Commands of the contact firmware, `runtime_c/firmware/contact/contact.c`, over the protocol.

A command is the input of the firmware's only model, and its answer the output: WRITE, RUN, READ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from toolchain.device import protocol
from toolchain.device.link import BoardResetError
from toolchain.device.protocol import Type
from toolchain.device.session import Session
from toolchain.errors import LinkError

COMMAND_WORDS, ANSWER_WORDS = 8, 16
WORD_BYTES = 4
ANY_WORD = 1
"""The step of reads of pseudo-random words."""
LANDINGS = 128
"""Calls that one command times."""
MOST_PEEKED = COMMAND_WORDS - 2
"""Addresses that one command reads."""


class Command(IntEnum):
    """The first word. The C says beside each which words follow, and which are answered."""

    WAIT = 1
    MARCH = 2
    SUM = 3
    PEEK = 4
    READ = 5
    BRANCH = 6
    PAIR = 7
    SWITCH = 8


@dataclass(frozen=True)
class Answer:
    """The words of an answer. `seconds`: from RUN's sending to its reply, by this computer."""

    words: tuple[int, ...]
    seconds: float


@dataclass(frozen=True)
class BadWord:
    """A word of RAM that a march found: it was to hold `wanted` and held `seen`."""

    address: int
    wanted: int
    seen: int

    @property
    def bits(self) -> tuple[int, ...]:
        """Numbers of the bits that differ."""
        return tuple(bit for bit in range(32) if (self.wanted ^ self.seen) >> bit & 1)


def command(session: Session, which: Command, *words: int, limit_seconds: float) -> Answer:
    """One command. `limit_seconds`: of its run. Raises LinkError as `Session.run` does."""
    given = [which, *words]
    given += [0] * (COMMAND_WORDS - len(given))
    data = b"".join(word.to_bytes(WORD_BYTES, "little") for word in given)
    try:
        return _asked(session, data, limit_seconds)
    except BoardResetError:
        session.greet()
        return _asked(session, data, limit_seconds)


def _asked(session: Session, data: bytes, limit_seconds: float) -> Answer:
    session.write_input(0, data)
    reply = session.link.request(Type.RUN, timeout_seconds=limit_seconds)
    seconds = session.link.answer_seconds
    status = protocol.parse_outcome(reply).status
    if status:
        raise LinkError(f"the contact firmware refused a command with status {status}")
    words = protocol.parse_words(session.read_output(0, WORD_BYTES * ANSWER_WORDS), ANSWER_WORDS)
    return Answer(words, seconds)


def ticks_waited(session: Session, ticks: int, limit_seconds: float) -> tuple[int, float]:
    """Ticks that the board's counter made in one command, `ticks` or more, and its seconds here."""
    low, high = ticks & 0xFFFFFFFF, ticks >> 32
    answer = command(session, Command.WAIT, low, high, limit_seconds=limit_seconds)
    return answer.words[0] | answer.words[1] << 32, answer.seconds


def marched(session: Session, start: int, size_bytes: int, limit_seconds: float) -> BadWord | None:
    """The first bad word of a range of RAM, whose content is lost; None where all is well."""
    answer = command(session, Command.MARCH, start, size_bytes, limit_seconds=limit_seconds)
    bad, address, wanted, seen, *_ = answer.words
    return BadWord(address, wanted, seen) if bad else None


def summed(session: Session, start: int, size_bytes: int, limit_seconds: float) -> int:
    """The CRC-32 of a range of memory."""
    return command(session, Command.SUM, start, size_bytes, limit_seconds=limit_seconds).words[0]


def peeked(session: Session, addresses: Sequence[int], limit_seconds: float) -> tuple[int, ...]:
    """The words at some addresses. Raises BoardFaultError where there is nothing."""
    found: list[int] = []
    for first in range(0, len(addresses), MOST_PEEKED):
        part = addresses[first : first + MOST_PEEKED]
        answer = command(session, Command.PEEK, len(part), *part, limit_seconds=limit_seconds)
        found += answer.words[: len(part)]
    return tuple(found)


def read_ticks(
    session: Session, start: int, span_bytes: int, step: int, count: int, limit_seconds: float
) -> int:
    """Ticks of reading `count` words from empty caches, without those of the loop around them.

    They lie `step` bytes apart, within `span_bytes` (a power of two) from `start`; at random for
    `ANY_WORD`. Each read waits for the one before.
    """
    given = (start, (span_bytes - 1) & ~3, step, count)
    answer = command(session, Command.READ, *given, limit_seconds=limit_seconds)
    low, high, loop_low, loop_high, *_ = answer.words
    return (low | high << 32) - (loop_low | loop_high << 32)


def branch_ticks(session: Session, *, apart: bool, limit_seconds: float) -> int:
    """Ticks of `LANDINGS` calls from empty caches: all to one line, or each to another."""
    answer = command(session, Command.BRANCH, int(apart), limit_seconds=limit_seconds)
    return answer.words[0] | answer.words[1] << 32


def pair_ticks(session: Session, number: int, limit_seconds: float) -> int:
    """Ticks of a pair of instructions, `firmware.PAIR_REPEATS` times in a row."""
    answer = command(session, Command.PAIR, number, limit_seconds=limit_seconds)
    return answer.words[0] | answer.words[1] << 32


def switched(
    session: Session, register: int, bits: int, limit_seconds: float, *, on: bool
) -> tuple[int, int]:
    """A register before and after its bits were set or cleared."""
    answer = command(session, Command.SWITCH, register, bits, int(on), limit_seconds=limit_seconds)
    return answer.words[0], answer.words[1]
