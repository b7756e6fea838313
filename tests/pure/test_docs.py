"""docs/, README, CONTRIBUTING: every page is in the navigation, every link leads somewhere, and a
table's cells are short."""

from __future__ import annotations

import ast
import importlib
import json
import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import which_board

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))
SECTIONS = ("Tutorials", "How to", "Reference", "How it works")
LONGEST_CELL = 100
GAP = "\0"
"""In place of a name or a number in a message."""
LINK = re.compile(r"\[[^\]]*\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)")


def without_code(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Names of the headings, as code forges and the site make them."""
    headings = re.findall(r"^#+ (.*)$", without_code(page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-") for text in headings}


def test_every_page_is_in_one_section_of_the_navigation() -> None:
    """A tutorial, a how-to, reference or an explanation; the overview alone is none of these."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    overview, *parts = re.split(r"^  - (.+):$", text, flags=re.MULTILINE)
    assert tuple(parts[::2]) == SECTIONS
    assert re.findall(r"([\w/-]+\.md)$", overview, re.MULTILINE) == ["index.md"]
    listed = [
        page
        for part in parts[1::2]
        for page in re.findall(r"^      - .+: ([\w./-]+\.md)$", part, re.MULTILINE)
    ]
    assert len(listed) == text.count(".md\n") - 1
    written = {page.relative_to(DOCS).as_posix() for page in PAGES}
    made = {"changes.md", "commands.md", "python.md"}
    made |= {f"tutorials/{script.stem}.md" for script in TUTORIALS}
    assert sorted(listed) == sorted(written | made)


@pytest.mark.parametrize("script", TUTORIALS, ids=lambda script: script.stem)
def test_the_page_of_a_tutorial_is_its_script(script: Path) -> None:
    """Its blocks of code, with the comments between them as text, are the script's statements."""
    pytest.importorskip("mkdocs")
    page = importlib.import_module("scripts.site_pages").tutorial(script)
    first, _, files_beside = page.partition("\n## ")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", first, re.MULTILINE | re.DOTALL))
    tree = ast.parse(script.read_text(encoding="utf-8"))
    assert ast.dump(ast.parse(code)) == ast.dump(ast.Module(tree.body[1:], []))
    assert not re.search("^# ", code, re.MULTILINE)
    assert page.startswith("# ") and f"]({script.name})" in first
    assert all(name.name in files_beside for name in script.parent.glob(f"{script.stem}.[!p]*"))


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *PAGES], ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, anchor in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        file = page.parent / target if target else page
        assert file.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors(file), f"{target} has no heading {anchor}"


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_no_cell_of_a_table_is_long(page: Path) -> None:
    """Without the targets of its links: what is long is a list, or a section."""
    text = without_code(page.read_text(encoding="utf-8"))
    rows = re.findall(r"^\|(.*)\|$", re.sub(r"\]\([^)]*\)", "]", text), re.MULTILINE)
    cells = [cell.strip() for row in rows for cell in re.split(r"(?<!\\)\|", row)]
    assert [cell for cell in cells if len(cell) > LONGEST_CELL] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_a_sentence_says_its_noun_first(page: Path) -> None:
    text = without_code(page.read_text(encoding="utf-8"))
    prose = "\n\n".join(line for line in text.split("\n") if not line.startswith("#"))
    begins = r"(?:(?<=[.!?:] )|(?<=[.!?:]\n\n)|(?<=[-*] )|(?<=\) ))"
    wrong = rf"{begins}(?:\*\*)?(?:Of|Those|What|The same) [^\n]*"
    assert re.findall(wrong, prose) == []


def messages() -> list[str]:
    """The messages that docs/errors.md lists, with a mark for each name and number."""
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    return [re.sub(r"<\w+>", GAP, told) for told in re.findall(r"^- `(.+)`$", text, re.MULTILINE)]


@cache
def sentences() -> str:
    """Every text of the toolchain, with a mark for each value that is put into it."""
    found = []
    for file in sorted((ROOT / "toolchain").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [
                    part.value if isinstance(part, ast.Constant) else GAP for part in node.values
                ]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def test_the_messages_of_the_page_on_errors_are_in_the_code() -> None:
    """Each part between its `...` is in one text of the code."""
    assert len(messages()) > 20
    parts = [part for message in messages() for part in message.split("...")]
    assert [part for part in parts if part not in sentences()] == []
    assert f"{GAP} does not fit a {GAP}" not in sentences()


def test_the_table_of_models_on_boards_is_that_of_its_figures() -> None:
    data = json.loads(which_board.KEPT.read_text(encoding="utf-8"))
    text = (DOCS / "which-board.md").read_text(encoding="utf-8")
    assert text == which_board.with_table(text, data)
    assert len(data["models"]) > 10
    assert text.count(" MHz | ") == len(which_board.page(data).boards) == 12
    assert data["missing"] == 0


def test_a_page_that_loads_from_a_network_is_refused() -> None:
    exceptions = pytest.importorskip("mkdocs.exceptions")
    site = importlib.import_module("scripts.site_pages")
    page = SimpleNamespace(file=SimpleNamespace(src_uri="a.md"))
    kept = '<script src="assets/iframe-worker.js"></script><a href="https://example.org">'
    assert site.on_post_page(kept, page, None) == kept
    with pytest.raises(exceptions.PluginError, match=r"a\.md loads https://example\.org/x\.js"):
        site.on_post_page('<script src="https://example.org/x.js"></script>', page, None)
