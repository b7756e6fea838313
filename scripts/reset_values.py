#!/usr/bin/env python3
"""Lists every register that the STM32 start-up writes whole, with the value that a reset leaves.

    scripts/reset_values.py SVDS [--write]

A register that is written whole loses what it held: a bit that a reset sets, or an option. SVDS is
a folder with checkouts or bare clones of stm32-rs/stm32-rs and modm-io/cmsis-svd-stm32, which have
ST's descriptions of the chips. The list is tests/support/firmware/written_whole.csv: source,
register, reset value, the boards, the bits of the reset value that the start-up may clear, and why.
`--write` renews it and keeps the last two columns; tests/host_c/test_reset_values.py holds them
against the simulated start-up. The exit code is 1 where the list is another. Boards whose chip no
clone describes are named.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from tests.support import written_whole
from tests.support.registers import registers
from tests.support.written_whole import Row, assigned, silicon
from toolchain.boards import Board

SVD_OF = {
    "STM32F207": "STM32F217",
    "STM32H755": "STM32H755_CM7",
    "STM32H7S3": "STM32H7S",
    "STM32L073": "STM32L0x3",
    "STM32WB55": "STM32WB55_CM4",
    "STM32WL55": "STM32WL5x_CM4",
}
"""Descriptions that have another name than the chip's."""

EMPTY_ARCHIVE = b"PK\5\6" + bytes(18)


class Descriptions:
    """ST's descriptions by the chip's name."""

    def __init__(self, clones: Path) -> None:
        self.plain = clones / "cmsis-svd-stm32"
        self.packed = clones / "stm32-rs"
        self.files: dict[str, bytes] = {}
        for archive in self._files(self.packed, ".zip"):
            with zipfile.ZipFile(io.BytesIO(self._text(self.packed, archive))) as held:
                named = [n for n in held.namelist() if n.endswith(".svd")]
                self.files |= {Path(name).stem: held.read(name) for name in named}
        for file in self._files(self.plain, ".svd"):
            if Path(file).stem not in self.files:
                self.files[Path(file).stem] = self._text(self.plain, file)

    def revisions(self) -> str:
        commits = (_git(c, "rev-parse", "HEAD").decode().strip() for c in (self.packed, self.plain))
        return "stm32-rs/stm32-rs at {}, modm-io/cmsis-svd-stm32 at {}".format(*commits)

    def of(self, target: Board) -> Mapping[int, int]:
        """Reset values by address; {} where no clone has the chip's description."""
        part = target.chip.name[:9].upper()
        xml = self.files.get(SVD_OF.get(part, part), EMPTY_ARCHIVE)
        return {} if xml == EMPTY_ARCHIVE else reset_values(xml)

    @staticmethod
    def _files(clone: Path, ending: str) -> list[str]:
        names = _git(clone, "ls-tree", "-r", "--name-only", "HEAD").decode().splitlines()
        return [name for name in names if name.endswith(ending)]

    @staticmethod
    def _text(clone: Path, file: str) -> bytes:
        """Empty where the clone lacks the file's content."""
        done = subprocess.run(
            ["git", "-C", str(clone), "show", f"HEAD:{file}"], capture_output=True, check=False
        )
        return done.stdout or EMPTY_ARCHIVE


def _git(clone: Path, *command: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(clone), *command], capture_output=True, check=True
    ).stdout


def reset_values(xml: bytes) -> Mapping[int, int]:
    """By the register's address; those of arrays (`dim`) are left out."""
    root = ElementTree.fromstring(xml)
    common = root.findtext("resetValue", "0")  # some are written without 0x
    peripherals = {p.findtext("name", ""): p for p in root.iter("peripheral")}
    found: dict[int, int] = {}
    for peripheral in peripherals.values():
        base = int(peripheral.findtext("baseAddress", "0"), 0)
        described = peripherals.get(peripheral.get("derivedFrom", ""), peripheral)
        own = peripheral if peripheral.find("registers") is not None else described
        for register in own.iter("register"):
            at = base + int(register.findtext("addressOffset", "0"), 0)
            if register.find("dim") is None:
                found[at] = int(
                    register.findtext("resetValue", common).lower().removeprefix("0x"), 16
                )
    return found


def found_rows(descriptions: Descriptions) -> tuple[list[Row], list[str]]:
    """What the sources assign, grouped by reset value, and the boards without a description. The
    columns that a person fills are kept."""
    kept = {(r.source, r.register, r.reset): r for r in written_whole.rows()}
    groups: dict[tuple[str, str, int], list[str]] = {}
    unknown = []
    for target in silicon():
        chip, described = registers(target.name), descriptions.of(target)
        if not described:
            unknown.append(target.name)
        for source, name in assigned(target):
            at = chip.addresses[name]
            if at in described:  # not those of the core, nor AXI's, which ST describes nowhere
                groups.setdefault((source, name, described[at]), []).append(target.name)
    found = [
        Row(*key, tuple(names), *((k.cleared, k.reason) if (k := kept.get(key)) else (0, "")))
        for key, names in sorted(groups.items())
    ]
    return found, unknown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("svds", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    descriptions = Descriptions(arguments.svds)
    rows, unknown = found_rows(descriptions)
    sys.stdout.write(f"no description: {' '.join(unknown)}\n")
    if arguments.write:
        written_whole.write(rows, descriptions.revisions())
        return 0
    differ = sorted(set(rows) ^ set(written_whole.rows()), key=lambda row: row.register)
    sys.stdout.writelines(f"{row}\n" for row in differ)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
