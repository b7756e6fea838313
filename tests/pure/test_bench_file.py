"""bench.toml: what it says, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.bench.bench_file import read_bench
from toolchain.errors import InputError


def bench(folder: Path, text: str) -> Path:
    file = folder / "bench.toml"
    file.write_text(text)
    return file


def test_all_fields(tmp_path: Path) -> None:
    read = read_bench(
        bench(
            tmp_path,
            """coordinator = "lab:20408"
[[board]]
board = "mps2-an386"
[[board]]
board = "mps2-an386"
port = "socket://lab:4000"
[[board]]
board = "nucleo-f446re"
place = "f446"
runner = "pyocd"
probe = "remote:lab:5555"
[[board]]
board = "nucleo-f446re"
place = "f446-2"
""",
        )
    )
    first, second, third, fourth = read.boards
    assert [b.label for b in read.boards] == [
        "mps2-an386",
        "mps2-an386-2",
        "nucleo-f446re",
        "nucleo-f446re-2",
    ]
    assert [b.started_here for b in read.boards] == [True, False, False, False]
    assert [b.flashed_here for b in (second, third, fourth)] == [False, True, False]
    assert (third.place, third.coordinator, third.runner) == ("f446", "lab:20408", "pyocd")
    assert second.located() == "socket://lab:4000" and first.port == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[board]]\nboard = 'no-such'\n", "no-such"),
        ("[[board]]\nboard = 'netduinoplus2'\nprot = 'x'\n", "board 0: unknown field 'prot'"),
        ("[[board]]\nport = 'x'\n", "the field 'board' is missing"),
        ("[[board]]\nboard = 3\n", "every field is a text"),
        ("[sticks]\ncount = 'two'\n", "count is a number from 0 to 16, not 'two'"),
        ("[sticks]\nnumber = 2\n", "sticks: it takes count"),
        ("[[board]]\nboard = 'mps2-an386'\npower_cycle = 'sh x'\n", "a command is a list of texts"),
        ("[[board]]\nboard = 'netduinoplus2'\nport = 'spy://x?file=y'\n", "board 0: port is"),
        ("[[board]]\nboard = 'netduinoplus2'\nport = '--help'\n", "board 0: port is"),
        ("[[board]]\nboard = 'nucleo-f446re'\nprobe = '-c exec'\n", "board 0: probe is"),
        ("coordinator = '-x'\n[[board]]\nboard = 'netduinoplus2'\n", "coordinator is"),
        ("[[board]]\nboard = 'host'\n", "the host is no board of a bench"),
        ("[[board]]\nboard = 'netduinoplus2'\nport = 'x'\nplace = 'y'\n", "port and place"),
        ("coordinator = 1\n[[board]]\nboard = 'netduinoplus2'\n", "labgrid's host:port"),
        ("soak = 3\n[[board]]\nboard = 'netduinoplus2'\n", "unknown field 'soak'"),
        ("", r"no \[\[board\]\]"),
        ("[[board", "bench.toml"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_bench(bench(tmp_path, text))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no-bench"):
        read_bench(tmp_path / "no-bench.toml")
