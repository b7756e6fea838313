"""docs/architecture.md: its examples run, its C is what is generated, files and names exist.

Its recipes are followed in tests/host_c/test_recipes.py.
"""

from __future__ import annotations

import doctest
import pkgutil
import re
import tomllib
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from tests.support.recipes import RECIPES
from toolchain.boards import board
from toolchain.codegen import generate
from toolchain.kernels import cmsis_nn
from toolchain.planner import plan_model

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
WALKS = TEXT.partition("\n## Adding a thing\n")[0]
NAMED = re.compile(r"`([\w./]+)(?:\(.*?\))?`")
SEARCHED = (
    "toolchain",
    "templates",
    "runtime_c",
    "boards",
    "tests",
    "docs",
    "examples",
    "benchmarks",
)


def test_the_examples_print_what_they_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", TEXT, re.DOTALL))
    parsed = doctest.DocTestParser().get_doctest(examples, {}, "architecture.md", None, 0)
    assert len(parsed.examples) > 30
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(parsed, out=told.append).failed == 0, "".join(told)


def test_the_c_is_what_is_generated() -> None:
    (shown,) = re.findall(r"```c\n(.*?)```", WALKS, re.DOTALL)
    plan = plan_model(ROOT / "examples" / "digits" / "digits_int8.tflite", board="netduinoplus2")
    made = generate(plan, board("netduinoplus2").core, cmsis_nn.find())
    assert shown in made.files["digits_int8.c"]


def test_the_rows_are_the_contract() -> None:
    rows = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| \d+ \| (.*?) \|", TEXT, re.M)]
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = contract["tool"]["importlinter"]["contracts"]
    (layers,) = (c["layers"] for c in contracts if c["containers"] == ["toolchain"])
    assert rows == [re.split(r" [|:] ", layer) for layer in layers]


def test_nothing_but_its_file_knows_the_operator_that_was_added() -> None:
    folders = [ROOT / name for name in ("toolchain", "templates", "runtime_c")]
    files = [f for folder in folders for f in folder.rglob("*") if f.suffix in (".py", ".j2", ".c")]
    known = {
        str(f.relative_to(ROOT))
        for f in files
        if "gather_nd" in f.read_text(encoding="utf-8").lower()
    }
    assert known == {
        "runtime_c/source/movement/thimble_gather_nd.c",
        "toolchain/ops/movement/gather.py",
        "toolchain/ops/movement/gather_nd.py",
        "toolchain/ops/movement/scatter_nd.py",
        "toolchain/frontends/tflite/shapes.py",
        "toolchain/frontends/tflite/versions.py",
    }


def prose(page: str) -> str:
    """A page without its blocks of code."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


@cache
def files() -> frozenset[str]:
    """Paths of the checkout's files, and of the folders that they lie in, which end in a slash."""
    found = [path for name in SEARCHED for path in (ROOT / name).rglob("*") if path.is_file()]
    found += [path for path in ROOT.iterdir() if path.is_file()]
    paths = [PurePosixPath(path.relative_to(ROOT).as_posix()) for path in found]
    folders = {f"{parent}/" for path in paths for parent in path.parents}
    return frozenset(map(str, paths)) | folders


@cache
def words() -> frozenset[str]:
    """Names in Python, templates, C, boards and recipes; names of files in quotes."""
    endings = (".py", ".j2", ".c", ".h", ".toml")
    sources = (ROOT / path for path in files() if path.endswith(endings) and "tests" not in path)
    texts = [source.read_text(encoding="utf-8") for source in sources]
    texts += [change.text for recipe in RECIPES for change in recipe.changes]
    quoted = r"(?<=\")\w+\.\w+(?=\")"
    return frozenset(word for text in texts for word in re.findall(rf"{quoted}|\w+", text))


def is_there(name: str) -> bool:
    """Whether the checkout has a file or folder with this path below some folder, a room this
    attribute, or its sources a name that is the last part of this dotted one.
    """
    if "/" in name or re.search(r"\.(py|md|toml|c|h|j2|json)$", name):
        ends = (name, f"{name.removesuffix('/')}/")
        below = tuple(f"/{end}" for end in ends)
        return name in words() or any(f in ends or f.endswith(below) for f in files())
    if "." in name and f"toolchain/{name.partition('.')[0]}/" in files():
        try:
            return pkgutil.resolve_name(f"toolchain.{name}") is not None
        except (ImportError, AttributeError):
            return False
    return name.rpartition(".")[2] in words()


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_the_files_and_names_that_it_mentions_exist(page: str) -> None:
    written = frozenset().union(*(recipe.files for recipe in RECIPES))
    mentioned = set(NAMED.findall(prose(page))) - written
    assert len(mentioned) > 20
    assert sorted(name for name in mentioned if not is_there(name)) == []


def test_a_name_that_does_not_exist_is_told() -> None:
    for name in ("model/reading.py", "planning.front.Candidates", "arena/", "boards/chips"):
        assert is_there(name)
    for name in (
        "model/unread.py",
        "planning.starts.Begins",
        "arenas/",
        "chips.py",
        "boards/arena",
    ):
        assert not is_there(name)


def test_the_table_of_contributing_has_the_files_of_each_recipe() -> None:
    """Each file of a recipe is one of its row's, and each of the row's is one of a recipe's."""
    files_of = {recipe.title.lower().replace(" ", "-"): recipe.files for recipe in RECIPES}
    rows = re.findall(r"^\| .*\[recipe\].* \|$", prose("CONTRIBUTING.md"), re.MULTILINE)
    shown: dict[str, set[str]] = {}
    for row in rows:
        patterns = re.findall(r"`([\w/.<>]+/[\w/.<>]+)`", row.partition("[recipe]")[0])
        linked = re.findall(r"\[recipe\]\(docs/architecture\.md#([\w-]+)\)", row)
        for pattern in patterns:
            form = re.compile(re.sub(r"<\w+>", r"[\\w-]+", pattern).replace(".", r"\."))
            matched = {(one, f) for one in linked for f in files_of[one] if form.fullmatch(f)}
            assert matched, f"no recipe writes {pattern}"
            for one, file in matched:
                shown.setdefault(one, {"docs/operators.md"}).add(file)
    assert {title: files_of[title] - shown.get(title, set()) for title in files_of} == {
        title: set() for title in files_of
    }
