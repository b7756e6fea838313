"""`benchmarks.figures`: pages state what the kept data holds; figures are run, kept, resumed."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.figures import changes, documents, figure, running
from benchmarks.figures.__main__ import main
from benchmarks.figures.figure import Figure, Kept, Plot

ROOT = Path(__file__).resolve().parents[2]
FIGURES = figure.figures()
WITHOUT_FIGURES = {
    "_edgetpu_large",
    "code",
    "compare",
    "cost",
    "figures",
    "which_board",
}
"""Commands that compare files, fit coefficients, measure code, write models or a page of their own,
or run the others."""
STATED = {
    # How far programs whose C others published are from silicon; no command builds them.
    "README.md": {"4%", "13%"},
    # Limits of what is counted and asked for, and an instruction count of TinyEngine's.
    "docs/figures.md": {
        "0.5%",
        "2%",
        "5%",
        "10%",
        "20%",
        "256 KB",
        "262,144 B",
        "34.75 M instructions",
    },
}
"""The figures that stand in prose without a mark."""
MEASURED = re.compile(r"\d[\d,.]*(?:%| (?:B|KB|KiB|MB|ms|s|M cycles|M instructions|cycles)\b)")
SMALL = Figure(
    "small",
    {"one": "tiny --count 1", "two": "tiny --count 2"},
    ("room",),
    1,
    tables={"all": lambda data: f"| {data['one']} | {data['two']} |"},
    plots={"drawn": Plot("two numbers", lambda data: f"<svg>{data['one']}</svg>")},
    values=lambda data: {"sum": str(data["one"] + data["two"])},
)
TINY = """
import json, sys
count, file = int(sys.argv[2]), sys.argv[4]
open("runs", "a").write(f"{count}\\n")
open(file, "w").write(json.dumps(10 * count))
sys.exit(0 if open("room/exit").read().strip() != str(count) else 3)
"""


def test_each_page_states_what_the_data_holds() -> None:
    """After a change of the data or of a declaration: `python -m benchmarks.figures --render`."""
    assert [str(file.relative_to(ROOT)) for file, _ in documents.differing()] == []


def test_each_table_and_plot_stands_on_one_page() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in documents.documents())
    for part in text.split("```")[1::2]:
        text = text.replace(part, "")
    named = re.findall(r"^<!-- figure: (\S+) -->$", text, re.MULTILINE)
    declared = [
        f"{one.name}.{part}" for one in FIGURES.values() for part in (*one.tables, *one.plots)
    ]
    assert sorted(named) == sorted(declared)


def test_no_other_file_lies_beside_the_data() -> None:
    plots = {f"{name}.svg" for one in FIGURES.values() for name in one.plots}
    allowed = {f"{name}.json" for name in FIGURES} | plots
    kept = {file.name for file in figure.DATA.iterdir() if file.suffix != ".md"}
    assert kept <= allowed


@pytest.mark.parametrize("page", ["README.md", "docs/figures.md"])
def test_no_table_of_figures_is_written_by_hand(page: str) -> None:
    text = documents.BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
    rows = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    cells = [cell.strip() for row in rows for cell in row.split("|")]
    assert [cell for cell in cells if re.match(r"[-+*x ]*\d", cell)] == []


@pytest.mark.parametrize("page", STATED, ids=str)
def test_prose_states_no_figure_of_its_own(page: str) -> None:
    text = documents.BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
    text = re.sub(r"```.*?```|`[^`]*`", "", documents.INLINE.sub("", text), flags=re.DOTALL)
    assert set(MEASURED.findall(text)) == STATED[page]


@pytest.mark.parametrize("one", FIGURES.values(), ids=lambda one: one.name)
def test_each_declaration_names_what_is_there(one: Figure) -> None:
    for name in one.rooms:
        assert (ROOT / name).exists(), name
    for line in one.commands.values():
        module, *words = line.split()
        (file, *_) = (f for f in changes.modules(module) if f.stem == module)
        source = file.read_text(encoding="utf-8")
        assert "json_option(" in source
        for word in (word for word in words if word.startswith("--")):
            assert f'"{word}"' in source, f"{module} has no option {word}"


@pytest.mark.parametrize(
    "file",
    [
        file
        for file in sorted((ROOT / "benchmarks").glob("*.py"))
        if "__main__" in file.read_text(encoding="utf-8") and file.stem not in WITHOUT_FIGURES
    ],
    ids=lambda file: file.stem,
)
def test_each_benchmark_writes_its_figures(file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    assert "json_option(" in source and "write_results(" in source


def kept(**changed: Any) -> Kept:
    known = {
        "commit": "0123abcd",
        "date": "2026-01-02",
        "minutes": 0.5,
        "commands": dict(SMALL.commands),
        "tools": {},
        "rooms": {},
        "data": {"one": 10, "two": 20},
    }
    return Kept(**{**known, **changed})


@pytest.fixture
def one_figure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A checkout with one figure; its folder."""
    for module in (figure, documents, running, changes):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(documents, "DATA", tmp_path / "docs" / "figures")
    monkeypatch.setattr(figure, "DATA", tmp_path / "docs" / "figures")
    monkeypatch.setattr(running, "PARTS", tmp_path / "build" / "figures")
    monkeypatch.setattr(documents, "figures", lambda: {"small": SMALL})
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    return tmp_path


PAGE = """# Page

<!-- figure: small.all -->
old
<!-- /figure -->

It is <!--=small.sum-->1<!--/-->.
"""


def test_tables_and_values_are_put_in(one_figure: Path) -> None:
    figure.save(SMALL, kept())
    page = one_figure / "docs" / "page.md"
    text = documents.rendered(PAGE, page)
    assert "<!-- figure: small.all -->\n\n| 10 | 20 |\n\n*2026-01-02, commit 0123abcd: " in text
    assert "It is <!--=small.sum-->30<!--/-->." in text
    assert documents.rendered(text, page) == text
    for stated, wrong in (("| 20 |", "| 21 |"), ("-->30<", "-->31<"), ("0123abcd", "0123abce")):
        assert documents.rendered(text.replace(stated, wrong), page) == text
    assert documents.rendered(f"```\n{PAGE}```\n", page) == f"```\n{PAGE}```\n"


def test_a_plot_is_drawn_and_shown(one_figure: Path) -> None:
    figure.save(SMALL, kept())
    text = documents.rendered(PAGE.replace("small.all", "small.drawn"), one_figure / "README.md")
    assert "![two numbers](docs/figures/small.json)".replace("small.json", "drawn.svg") in text
    assert list(documents.plots()) == [(one_figure / "docs/figures/drawn.svg", "<svg>10</svg>")]


def test_a_figure_that_was_never_run_says_so(one_figure: Path) -> None:
    table = PAGE.partition("\n\nIt is")[0]
    text = documents.rendered(table, one_figure / "README.md")
    assert "*Not run yet: `python -m benchmarks.figures small`.*" in text
    with pytest.raises(documents.DocumentError, match="never run"):
        documents.rendered(PAGE, one_figure / "README.md")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("small.all", "other.all", "there is no figure other"),
        ("small.all", "small.most", "no table or plot most"),
        ("=small.sum", "=small.most", "no value most"),
        ("<!-- /figure -->", "", "has no end, <!-- /figure -->"),
        ("<!--/-->", "", "has no end, <!--/-->"),
        ("It is ", "", "a line begins"),
    ],
)
def test_a_wrong_mark_is_refused(one_figure: Path, old: str, new: str, said: str) -> None:
    figure.save(SMALL, kept())
    with pytest.raises(documents.DocumentError, match=re.escape(said)):
        documents.rendered(PAGE.replace(old, new), one_figure / "README.md")


def commit(folder: Path) -> None:
    def git(*words: str) -> None:
        given = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *given, *words], cwd=folder, check=True, capture_output=True)

    if not (folder / ".git").exists():
        git("init", "-q")
    git("add", "room", "benchmarks")
    git("commit", "-q", "--allow-empty", "-m", "a change")


@pytest.fixture
def checkout(one_figure: Path) -> Path:
    """Its benchmark fails for the count in `room/exit`."""
    for name in ("room", "benchmarks"):
        (one_figure / name).mkdir()
    (one_figure / "room" / "exit").write_text("0")
    (one_figure / "benchmarks" / "__init__.py").write_text("")
    (one_figure / "benchmarks" / "tiny.py").write_text(TINY)
    commit(one_figure)
    return one_figure


def runs(folder: Path) -> list[str]:
    return (folder / "runs").read_text().split()


def test_a_figure_goes_on_where_it_stopped(checkout: Path) -> None:
    (checkout / "room" / "exit").write_text("2")
    commit(checkout)
    ends: list[str] = []
    runner = running.Runner({"shared": checkout}, 1, lambda: ends.append("kept"))
    assert runner.run([SMALL]) == ["small"]
    assert figure.load(SMALL) is None and changes.stale(SMALL, None) == "never run"
    assert runner.run([SMALL]) == ["small"]
    assert runs(checkout) == ["1", "2", "2"]
    (checkout / "room" / "exit").write_text("0")
    assert runner.run([SMALL]) == ["small"]  # not committed
    commit(checkout)
    assert runner.run([SMALL]) == []
    assert runs(checkout) == ["1", "2", "2", "1", "2"]  # the room has changed
    assert ends == ["kept"]
    found = figure.load(SMALL)
    assert found is not None and found.data == {"one": 10, "two": 20}
    assert set(found.rooms) == {"room", "benchmarks/tiny.py"}
    assert changes.stale(SMALL, found) == ""
    assert not any(task.part.exists() for task in running.tasks(SMALL, {"shared": checkout}))


def test_a_figure_is_not_kept_if_what_it_depends_on_changes_while_it_runs(checkout: Path) -> None:
    (checkout / "benchmarks" / "tiny.py").write_text(TINY.replace('"runs", "a"', '"room/a", "w"'))
    commit(checkout)
    assert running.Runner({"shared": checkout}, 2, list).run([SMALL]) == ["small"]
    assert figure.load(SMALL) is None


def test_a_figure_is_stale_if_what_it_depends_on_has_changed(checkout: Path) -> None:
    rooms = changes.digests(changes.paths(SMALL))
    head = changes.git("rev-parse", "--short=8", "HEAD")
    known = kept(commit=head, rooms=rooms)
    assert changes.stale(SMALL, known) == ""
    assert changes.stale(SMALL, kept(rooms=rooms)) == "commit 0123abcd is not in this history"
    assert changes.stale(SMALL, kept(commands={})) == "its commands have changed"
    (checkout / "elsewhere").write_text("")
    (checkout / "benchmarks" / "tiny.py").write_text(TINY + "\n")
    assert changes.uncommitted(SMALL) == ["benchmarks/tiny.py"]
    commit(checkout)
    assert changes.stale(SMALL, known) == "changed: benchmarks/tiny.py"


def test_an_unknown_name_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["figures", "nothing"])
    with pytest.raises(SystemExit):
        main()
    assert "no figure nothing; there are: " in capsys.readouterr().err


def test_kept_data_is_whole() -> None:
    for one in FIGURES.values():
        found = figure.load(one)
        if found is not None:
            assert set(found.data) == set(found.commands), one.name
            assert json.loads(one.file.read_text(encoding="utf-8"))["minutes"] >= 0


def test_a_figure_without_its_folder_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    peers = FIGURES["peers"]
    runner = running.Runner({"shared": ROOT}, 1, list)
    assert runner.run([peers]) == []
    assert runner.run([peers], asked=["peers"]) == ["peers"]
    assert capsys.readouterr().err.count("peers: left out: it needs a folder: --tflm DIR") == 2
