"""The registers of the boards' chips, from ST's and Arm's headers (scripts/check_registers.py).

Addresses and bits here are not the firmware's own: where it is wrong about one, tests that ask for
a register by ST's name see it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TABLES = Path(__file__).parent / "firmware" / "registers"


@dataclass(frozen=True)
class Registers:
    """`addresses` and `bits` of registers; `fields` by 'REGISTER_FIELD': address and mask."""

    addresses: Mapping[str, int]
    bits: Mapping[str, int]
    fields: Mapping[str, tuple[int, int]]

    def rule(self, cause: str, flag: str) -> str:
        """The hardware sets the field `flag` while the field `cause` is set; '' is always."""
        at, bits = self.fields[flag]
        when, while_set = self.fields[cause] if cause else (at, 0)
        return f"{when:x}:{while_set:x}>{at:x}:{bits:x}"

    def switch_rules(self, switch: str, status: str) -> tuple[str, ...]:
        """The status of a switch follows it, bit by bit."""
        at, wanted = self.fields[switch]
        _, told = self.fields[status]
        pairs = zip(_single(wanted), _single(told), strict=True)
        return tuple(f"{at:x}:{bit:x}>{at:x}:{mirror:x}" for bit, mirror in pairs)


def _single(mask: int) -> list[int]:
    return [1 << i for i in range(32) if mask >> i & 1]


def registers(board: str) -> Registers:
    """Those of the chip of a board."""
    text = (TABLES / f"{board}.csv").read_text(encoding="utf-8").splitlines()
    addresses, bits, fields = {}, {}, {}
    for row in csv.DictReader(line for line in text if not line.startswith("#")):
        address, mask = int(row["address"], 16), int(row["mask"], 16)
        if row["field"]:
            fields[f"{row['register']}_{row['field']}"] = address, mask
        else:
            addresses[row["register"]], bits[row["register"]] = address, mask
    return Registers(addresses, bits, fields)
