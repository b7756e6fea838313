"""Which of ST's headers a chip's numbers were compared with, and when: `boards/checked.toml`, which
scripts/check_registers.py writes where nothing differs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache

from toolchain.boards.chip_model import Chip
from toolchain.boards.reading import chips
from toolchain.files.records import read_toml, record
from toolchain.resources import BOARDS

FILE = BOARDS / "checked.toml"
_LENGTH = 12


@dataclass(frozen=True)
class CheckedChip:
    """`header`, such as `stm32f446xx.h`; `numbers`: a digest of what was compared with it."""

    header: str
    numbers: str


@dataclass(frozen=True)
class Checked:
    """The last comparison without a difference: its `date` (ISO 8601), and the commits of the
    `repositories` by name, as `zephyrproject-rtos/hal_stm32`. `chips` by name.
    """

    date: str = ""
    repositories: Mapping[str, str] = field(default_factory=dict)
    chips: Mapping[str, CheckedChip] = field(default_factory=dict)


@cache
def checked() -> Checked:
    """Read `boards/checked.toml`. Raises InputError if it is damaged."""
    comparison: Checked = record(Checked, read_toml(FILE), str(FILE))
    return comparison


def header_of(chip: Chip) -> str:
    """The header that the chip's numbers were found equal to; empty for a chip that was not
    compared, and for one whose numbers have changed since.
    """
    entry, known = checked().chips.get(chip.name), chips().get(chip.name)
    if entry is None or known is None:
        return ""
    flash, whole = chip.banks[0].memory, known.banks[0].memory
    if flash.size_bytes > whole.size_bytes:
        return ""
    part = replace(flash, size_bytes=whole.size_bytes)  # a part may have less
    banks = (replace(chip.banks[0], memory=part), *chip.banks[1:])
    return entry.header if numbers_of(replace(chip, banks=banks)) == entry.numbers else ""


def numbers_of(chip: Chip) -> str:
    """A digest of what is compared: ports, UARTs, identity, switches, where the memories lie."""
    compared = {
        "gpio": chip.gpio and asdict(chip.gpio),
        "uarts": {name: asdict(uart) for name, uart in chip.uarts.items()},
        "identity": chip.identity and asdict(chip.identity),
        "switches": {name: (one.register, one.bits) for name, one in chip.switches.items()},
        "memories": [
            (bank.memory.origin, bank.memory.size_bytes, bank.memory.kind.value)
            for bank in chip.banks
        ],
    }
    text = json.dumps(compared, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]
