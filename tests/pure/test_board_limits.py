"""Every limit and fact of a board's and a chip's file, violated once: two boards of each family."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.support.toml_text import as_toml
from toolchain.boards import Board, board, boards, read_board
from toolchain.boards.reading import over_family
from toolchain.errors import InputError
from toolchain.files.records import read_toml
from toolchain.resources import BOARDS

Tables = dict[str, Any]


@dataclass
class Files:
    """The tables of a board's file, and of its chip's with what it has from its family."""

    board: Tables
    chip: Tables
    chip_name: str

    @property
    def uart(self) -> Tables:
        found: Tables = self.board["uart"]
        return found

    @property
    def chips_uart(self) -> Tables:
        found: Tables = self.chip["uarts"][self.uart["name"]]
        return found

    @property
    def banks(self) -> list[Tables]:
        found: list[Tables] = self.chip["memory"]
        return found

    @property
    def flash_timing(self) -> Tables:
        found: Tables = self.chip["timing"][self.banks[0]["timing"]]
        return found


Change = Callable[[Files], object]
"""Makes one field wrong; returns False where the chip has none of its kind."""


def _factor(name: str, value: int) -> Change:
    def change(files: Files) -> object:
        files.board.setdefault("clock", {})[name] = value
        return None

    return change


def _other_factor(files: Files) -> object:
    """One that the chip has, so that the core has another clock than the file says."""
    tree, clock = files.chip["clock"], files.board["clock"]
    for name in ("p", "n"):
        others = {n for ends in _ranges(tree.get(name, "1")) for n in ends} - {clock.get(name, 1)}
        if others:
            clock[name] = max(others)
            return None
    return False


def _ranges(text: str) -> list[list[int]]:
    """The ends of those of '1..8, 16'."""
    return [[int(end) for end in part.split("..")] for part in text.split(",")]


def _limit(name: str) -> Change:
    def change(files: Files) -> object:
        if not files.chip["clock"].get(name):
            return False
        files.chip["clock"][name] = [1, 2]
        return None

    return change


def _bus(change_one: Callable[[Files, str], None]) -> Change:
    def change(files: Files) -> object:
        buses = files.chip["clock"].get("bus", {})
        if not buses:
            return False
        change_one(files, next(iter(buses)))
        return None

    return change


def _bus_too_slow(files: Files, bus: str) -> None:
    files.chip["clock"]["bus"][bus]["most_hz"] = 1


def _bus_divider(files: Files, bus: str) -> None:
    files.board["clock"].setdefault("bus", {})[bus] = 7


def _bus_of(files: Files, bus: str) -> None:
    files.chip["clock"]["bus"][bus]["of"] = "apb77"


def _set(*path: str | int, value: object) -> Change:
    """A field of the chip's file, or of the board's after `board`."""

    def change(files: Files) -> object:
        start, *keys, last = path
        table: Any = files.board if start == "board" else files.chip
        for key in keys:
            if isinstance(table, dict) and key not in table:
                return False
            table = table[key]
        table[last] = value
        return None

    return change


def _uart(name: str, value: object) -> Change:
    def change(files: Files) -> object:
        files.uart[name] = value
        return None

    return change


def _chips_uart(name: str, value: object) -> Change:
    def change(files: Files) -> object:
        files.chips_uart[name] = value
        return None

    return change


def _define(name: str, value: int) -> Change:
    def change(files: Files) -> object:
        files.board.setdefault("firmware", {}).setdefault("defines", {})[name] = value
        return None

    return change


def _wait_states_define(files: Files) -> object:
    name = files.chip["firmware"].get("wait_states_define")
    return _define(name, 0)(files) if name else False


def _timing(name: str, value: object) -> Change:
    def change(files: Files) -> object:
        files.flash_timing[name] = value
        return None

    return change


def _bank(number: int, name: str, value: object) -> Change:
    def change(files: Files) -> object:
        files.banks[number][name] = value
        return None

    return change


def _cache(name: str, value: object) -> Change:
    def change(files: Files) -> object:
        if not files.chip.get("cache"):
            return False
        next(iter(files.chip["cache"].values()))[name] = value
        return None

    return change


def _swapped(files: Files) -> None:
    first, second = files.banks[:2]
    files.banks[:2] = [second, first]


def _too_large(files: Files) -> None:
    """The flash reaches up to the RAM, and one byte into it."""
    above = max(0x1000_0000, files.banks[0]["origin"] + 1)
    ram = next(bank for bank in files.banks if bank["origin"] >= above)
    files.banks[0]["size_bytes"] = ram["origin"] + 1 - files.banks[0]["origin"]


def _same_name(files: Files) -> None:
    files.banks[1]["name"] = files.banks[0]["name"]


def _data_unaligned(files: Files) -> None:
    bank = next(bank for bank in files.banks if "data" in bank["holds"])
    bank["origin"] += 16
    bank["size_bytes"] -= 16


def _other_chip(files: Files) -> None:
    files.board["chip"] = "stm32f999"


def _without_clock(files: Files) -> None:
    del files.board["clock"]


def _without_uart(files: Files) -> None:
    files.chip["without"] = [files.uart["name"]]


WRONG: dict[str, tuple[Change, str]] = {
    "clock_hz": (_set("board", "clock_hz", value=1_000_000), r"clock_hz is 1,000,000, but"),
    "another factor": (
        _other_factor,
        r"clock_hz is .*, but|clock\.n: the PLL|clock: core .* not whole Hz",
    ),
    "m": (_factor("m", 1000), r"clock\.m is 1000; the chip has"),
    "n": (_factor("n", 100_000), r"clock\.n is 100000; the chip has"),
    "p": (_factor("p", 1000), r"clock\.p is 1000; the chip has"),
    "the PLL's input": (_limit("input_hz"), r"clock\.m: .*into the PLL, runs at .* not at 1 to 2"),
    "the VCO": (_limit("vco_hz"), r"clock\.n: the PLL's VCO runs at .*, not at 1 to 2 Hz"),
    "a core too fast": (_set("chip", "most_clock_hz", value=1), r"the core runs|clock_hz is"),
    "an oscillator": (
        _set("chip", "clock", "source_hz", value=1_000_000),
        r"clock\.m|clock\.n|clock_hz is .*, but the factors",
    ),
    "an oscillator of 0": (_set("chip", "clock", "source_hz", value=0), r"clock"),
    "a bus too fast": (_bus(_bus_too_slow), r"clock\.bus\.\w+: \w+ runs at .*, not at 1 to 1 Hz"),
    "a bus's divider": (_bus(_bus_divider), r"clock\.bus\.\w+ is 7; the chip has"),
    "a bus of no bus": (_bus(_bus_of), r"clock\.bus\.\w+: of: no 'apb77'"),
    "another bus": (_set("board", "clock", "bus", value={"apb77": 2}), r"there is no 'apb77'"),
    "no clock": (_without_clock, r"no \[clock\]"),
    "a chip": (_other_chip, r"chip: there is no chip 'stm32f999'"),
    "a UART": (_uart("name", "USART77"), r"uart: name: \S+ has no 'USART77'"),
    "a UART that is not there": (_without_uart, r"uart: name: \S+ has no"),
    "a UART's clock": (_chips_uart("clock", "apb77"), r"uart: \w+ runs on 'apb77'"),
    "a UART's clock in Hz": (
        _define("THIMBLE_USART_CLOCK_HZ", 1),
        r"defines\.THIMBLE_USART_CLOCK_HZ follows from",
    ),
    "a UART's factor": (_chips_uart("brr_factor", 3), r"THIMBLE_USART_BRR_FACTOR one of 1, 256"),
    "a speed too low": (_uart("baud", 1), r"\[uart\] baud: \S+ .*has no divisor"),
    "a speed too high": (_uart("baud", 1_000_000_000), r"\[uart\] baud: .* has no divisor"),
    "no speed": (_uart("baud", 0), r"\[uart\] baud must be 1 or more"),
    "a port": (_uart("tx", "PZ1"), r"uart: tx is PZ1; \S+ has ports"),
    "a pin": (_uart("rx", "PA16"), r"uart: rx is 'PA16'"),
    "a function": (_uart("function", 16), r"function is 16, not 0 to 15"),
    "wait states too few": (_wait_states_define, r"defines\.THIMBLE_\w+ follows from"),
    "a table that ends": (_timing("wait_state_hz", [1]), r"wait_state_hz: at .* where the table"),
    "a table out of order": (_timing("wait_state_hz", [2, 1]), r"wait_state_hz must ascend"),
    "a width": (_timing("width_bytes", 3), r"timing\.\w+: width_bytes is 3, not a power of two"),
    "a bus's divider of 0": (_timing("divider", 0), r"timing\.\w+: divider is 0"),
    "clocks below 0": (_timing("first_clocks", -1), r"timing\.\w+: first_clocks is -1"),
    "banks in another order": (_swapped, r"memory\[0\] \(\w+\): the first bank is the one"),
    "a bank too large": (_too_large, r"memory \(\w+\): size_bytes 0x\w+ reaches into \w+"),
    "a bank among peripherals": (
        _bank(1, "origin", 0x4000_0000),
        r"memory \(\w+\): origin 0x40000000 .*no memory",
    ),
    "a bank at the end": (_bank(0, "size_bytes", 1 << 32), r"memory \(\w+\): origin .* 4 GB"),
    "two banks of one name": (_same_name, r"memory\[1\] \(\w+\): there is another bank"),
    "an empty bank": (_bank(1, "size_bytes", 0), r"memory\[1\] .*size_bytes are 1 or more"),
    "a bank's cycles": (_bank(1, "access_cycles", 0), r"memory\[1\] .*access_cycles"),
    "what a bank holds": (_bank(1, "holds", ["music"]), r"memory\[1\] .*holds"),
    "a bank's kind": (_bank(0, "kind", "tape"), r"memory\[0\] .*kind"),
    "a bank's timing": (_bank(0, "timing", "soon"), r"memory\[0\] .*timing: there is no 'soon'"),
    "a bank's caches": (_bank(0, "caches", ["l9"]), r"memory\[0\] .*caches: there is no 'l9'"),
    "the stack's guard": (_data_unaligned, r"memory\[\d\] .*multiple of 4096"),
    "a cache's lines": (_cache("line_bytes", 3), r"cache\.\w+: line_bytes is 3"),
    "a cache's sets": (_cache("sets", 3), r"cache\.\w+: sets is 3"),
    "a cache's ways": (_cache("ways", 0), r"cache\.\w+: ways is 0"),
    "an identity": (_set("chip", "identity", "device_id", value=0x1450), r"device_id is 0x1450"),
    "an identity's register": (
        _set("chip", "identity", "id_register", value=0xE004_2001),
        r"id_register is 0xE0042001",
    ),
    "the place of a unique number": (
        _set("chip", "identity", "unique_id", value=0x1FFF_7A11),
        r"unique_id is 0x1FFF7A11",
    ),
    "the place of a register": (
        _set("chip", "identity", "registers", value={"RCC_CSR": 3}),
        r"registers\.RCC_CSR is 0x3, not of a word",
    ),
    "a USB id": (_set("board", "usb", value={"ids": ["0483:374B"]}), r"usb: ids has '0483:374B'"),
    "a field": (_set("chip", "most_clock", value=1), r"most_clock"),
    "a field of the board": (_set("board", "uarts", value="USART1"), r"uarts"),
}


def _families() -> Iterator[str]:
    families = sorted({b.chip.family for b in boards().values() if b.chip.clock is not None})
    for family in families:
        yield from islice(
            (b.name for b in boards().values() if b.chip.family == family and b.flash_runners), 2
        )


NAMES = list(_families())


@cache
def _tables(name: str) -> Files:
    target = board(name)
    chip = read_toml(BOARDS / "chips" / f"{target.chip.name}.toml")
    family = read_toml(BOARDS / "chips" / "families" / f"{chip.pop('family')}.toml")
    tables = read_toml(BOARDS / name / "board.toml")
    return Files(tables, over_family(family, chip), target.chip.name)


def files_of(name: str) -> Files:
    return copy.deepcopy(_tables(name))


def read(files: Files, folder: Path) -> Board:
    """The board, as the loader reads it from files with these tables."""
    (folder / "chips").mkdir(parents=True)
    (folder / "chips" / f"{files.chip_name}.toml").write_text(as_toml(files.chip))
    file = folder / "other" / "board.toml"
    file.parent.mkdir()
    file.write_text(as_toml(files.board))
    return read_board(file)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_changed_is_the_same_board(name: str, tmp_path: Path) -> None:
    """Or the refusals below would be for another reason."""
    target = board(name)
    same = read(files_of(name), tmp_path)
    assert (same.memories, same.defines, same.clocks_hz) == (
        target.memories,
        target.defines,
        target.clocks_hz,
    )


CASES = [
    (what, name)
    for what, (change, _) in WRONG.items()
    for name in NAMES
    if change(files_of(name)) is not False
]
_FIRST = {board(name).chip.family: name for name in reversed(NAMES)}.values()
KEPT = {
    *(case for case in CASES if case[1] in _FIRST),
    *{what: (what, name) for what, name in reversed(CASES)}.values(),
}
"""Those of one board of each family, and each change once."""


def test_few_changes_have_no_field_to_change() -> None:
    """Chips without a PLL, over-drive's table of wait states, or buses."""
    assert {what for what, _ in CASES} == set(WRONG)
    assert len(CASES) > 0.95 * len(WRONG) * len(NAMES)


@pytest.mark.parametrize(
    ("what", "name"),
    [case if case in KEPT else pytest.param(*case, marks=pytest.mark.long) for case in CASES],
)
def test_each_wrong_field_is_refused_by_its_name(what: str, name: str, tmp_path: Path) -> None:
    change, message = WRONG[what]
    files = files_of(name)
    change(files)
    with pytest.raises(InputError) as caught:
        read(files, tmp_path)
    assert re.search(message, str(caught.value)), str(caught.value)
