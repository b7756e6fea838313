"""`thimble arena`: MiniMalloc's CSV in and out, exit codes, and errors that name the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolchain.cli import run
from toolchain.errors import InputError
from toolchain.frontends.minimalloc import offsets_csv, read_buffers
from toolchain.ir import ArenaProblem
from toolchain.ir.arena import Block

EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
PUBLISHED = Path(__file__).resolve().parents[2].parent / "shared" / "arena"
CAPACITY_BYTES = 1048576


@pytest.fixture
def example(tmp_path: Path) -> Path:
    path = tmp_path / "input.12.csv"
    path.write_text(EXAMPLE)
    return path


def test_offsets_go_to_standard_output(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["arena", str(example), "--capacity", "12"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "id,lower,upper,size,offset"
    assert [line.rsplit(",", 1)[0] for line in out[1:]] == EXAMPLE.split()[1:]


def test_what_is_written_passes_its_check(example: Path, tmp_path: Path) -> None:
    answer = tmp_path / "out.csv"
    assert run(["arena", str(example), "-o", str(answer)]) == 0
    assert run(["arena", str(answer), "--check", "--capacity", "12"]) == 0
    assert run(["arena", str(answer), "--check", "--capacity", "11"]) == 1
    answer.write_text(answer.read_text().replace("b2,3,9,4,0", "b2,3,9,4,5"))
    assert run(["arena", str(answer), "--check"]) == 1


def test_too_small_a_capacity_is_a_failure_and_writes_nothing(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = tmp_path / "out.csv"
    assert run(["arena", str(example), "--capacity", "11", "-o", str(answer)]) == 1
    assert "there is none" in capsys.readouterr().err
    assert not answer.exists()


def test_json(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["arena", str(example), "--json", "-", "--capacity", "12"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["size_bytes"], result["proved_optimal"], result["capacity_met"]) == (
        12,
        True,
        True,
    )
    assert set(result["offsets"]) == {"b1", "b2", "b3", "b4", "b5"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "empty"),
        ("id,lower,size\n", "no column upper"),
        ("id,lower,upper,size,colour\n", "unknown column 'colour'"),
        ("id,lower,begin,upper,size\n", "two columns"),
        ("id,lower,upper,size\na,0,1\n", "line 2: 3 fields"),
        ("id,lower,upper,size\na,0,one,1\n", "line 2: upper is 'one'"),
        ("id,lower,upper,size\na,0,1,-4\n", "line 2: size is -4"),
        ("id,lower,upper,size\na,5,5,4\n", "line 2: 'a' lives in"),
        ("id,lower,upper,size\n\na,0,1,4\na,0,1,4\n", "line 4: buffer 'a' is on line 3 too"),
        ("id,lower,upper,size,alignment\na,0,1,4,0\n", "alignment is 0"),
        ("id,lower,upper,size,gaps\na,0,9,4,2-3\n", "gaps"),
    ],
)
def test_bad_files_are_named_by_line(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint):
        read_buffers(path)


def test_an_end_column_counts_the_last_step(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text("buffer,start,end,size\na,0,2,8\n")
    assert read_buffers(path).problem.blocks == (Block("a", 0, 3, 8),)


blocks = st.builds(
    lambda start, steps, size, unit: (start, start + steps, size, unit),
    st.integers(-5, 20),
    st.integers(1, 9),
    st.integers(0, 99),
    st.sampled_from((1, 4, 16)),
)


@settings(deadline=None)
@given(st.lists(blocks, max_size=12))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int, int]]
) -> None:
    made = tuple(Block(f"b{i}", *row) for i, row in enumerate(rows))
    path = tmp_path_factory.mktemp("csv") / "b.csv"
    path.write_text(offsets_csv(ArenaProblem(made), range(len(made))))
    found = read_buffers(path)
    assert found.problem.blocks == made
    assert found.offsets == tuple(range(len(made)))


@pytest.mark.slow
@pytest.mark.skipif(not PUBLISHED.is_dir(), reason=f"no instances at {PUBLISHED}")
@pytest.mark.parametrize("name", ["A", "B", "G"])
def test_published_instances_fit_their_capacity(name: str, tmp_path: Path) -> None:
    answer = tmp_path / "out.csv"
    given_file = PUBLISHED / f"{name}.{CAPACITY_BYTES}.csv"
    wanted = ["--capacity", str(CAPACITY_BYTES)]
    assert run(["arena", str(given_file), *wanted, "--time-limit", "60", "-o", str(answer)]) == 0
    assert run(["arena", str(answer), "--check", *wanted]) == 0
