"""Who imports whom in `toolchain/`, by `ast`; imports inside functions count too.

`lint-imports` keeps the order of the rooms. Here: no circle between modules, no underscore name
taken from another room, few modules outside rooms.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "toolchain"
MOST_LOOSE = 6


@dataclass(frozen=True)
class Import:
    """`module` imports `target`, or the names `names` of it, in line `line` of `file`."""

    module: str
    target: str
    names: tuple[str, ...]
    file: Path
    line: int

    @property
    def text(self) -> str:
        names = f" ({', '.join(self.names)})" if self.names else ""
        return f"{self.file}:{self.line}: {self.module} imports {self.target}{names}"


def modules(root: Path) -> dict[str, Path]:
    """Every module of the package by its dotted name; a package is the name of its folder."""
    found = {}
    for file in sorted((root / PACKAGE).rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(root: Path) -> list[Import]:
    """All imports of one module of the package by another."""
    known = modules(root)

    def of(module: str, file: Path) -> Iterator[Import]:
        at = file.relative_to(root)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(module, alias.name, (), at, node.lineno)
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{at}:{node.lineno}: a relative import"
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    if whole in known:
                        yield Import(module, whole, (), at, node.lineno)
                    else:
                        yield Import(module, node.module or "", (alias.name,), at, node.lineno)

    each = (found for module, file in known.items() for found in of(module, file))
    return [i for i in each if i.target in known and i.target != i.module]


def room(module: str) -> str:
    """`a` of toolchain.a.b; a loose module is a room of its own."""
    return module.split(".")[1] if "." in module else ""


def circle(found: list[Import]) -> list[str]:
    """The imports of one circle; none where there is no circle."""
    edges: dict[str, set[str]] = {i.module: set() for i in found}
    for each in found:
        edges[each.module].add(each.target)
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        around = list(pairwise(reversed(error.args[1])))
        return [i.text for i in found if (i.module, i.target) in around]
    return []


def private(found: list[Import]) -> list[str]:
    """Imports of an underscore name, or of an underscore module, of another room."""

    def is_private(each: Import) -> bool:
        names = (*each.target.split("."), *each.names)
        return any(n.startswith("_") and not n.startswith("__") for n in names)

    return [i.text for i in found if room(i.module) != room(i.target) and is_private(i)]


def loose(root: Path) -> list[str]:
    """Modules that lie in no room."""
    files = sorted((root / PACKAGE).glob("*.py"))
    return [f"{f.relative_to(root)}:1: in no room" for f in files if f.name != "__init__.py"]


@pytest.mark.slow
def test_no_circle() -> None:
    assert not circle(imports(ROOT))


@pytest.mark.slow
def test_nobody_takes_an_underscore_name_of_another_room() -> None:
    assert not private(imports(ROOT))


def test_few_modules_are_outside_rooms() -> None:
    found = loose(ROOT)
    assert len(found) <= MOST_LOOSE, "\n".join(found)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Two rooms in order."""
    write(tmp_path, "low/leaf.py", "VALUE = 1\n_OWN = 2\n")
    write(tmp_path, "low/_inner.py", "VALUE = 1\n")
    write(tmp_path, "high/user.py", "from toolchain.low.leaf import VALUE\n")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    file = root / PACKAGE / name
    file.parent.mkdir(parents=True, exist_ok=True)
    for folder in (file.parent, file.parent.parent):
        if folder != root:
            (folder / "__init__.py").touch()
    file.write_text(text, encoding="utf-8")


def test_a_house_in_order_passes(house: Path) -> None:
    found = imports(house)
    assert [(i.module, i.target) for i in found] == [("toolchain.high.user", "toolchain.low.leaf")]
    assert not circle(found) and not private(found) and not loose(house)


def test_a_circle_through_a_function_is_found(house: Path) -> None:
    write(house, "low/leaf.py", "VALUE = 1\ndef f():\n    import toolchain.high.user\n")
    assert circle(imports(house)) == [
        "toolchain/high/user.py:1: toolchain.high.user imports toolchain.low.leaf (VALUE)",
        "toolchain/low/leaf.py:3: toolchain.low.leaf imports toolchain.high.user",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "from toolchain.low.leaf import _OWN",
        "from toolchain.low._inner import VALUE",
        "from toolchain.low import _inner",
        "import toolchain.low._inner",
    ],
)
def test_an_underscore_name_is_found(house: Path, line: str) -> None:
    write(house, "high/user.py", f"\n{line}\n")
    (found,) = private(imports(house))
    assert found.startswith("toolchain/high/user.py:2: ")
    write(house, "low/other.py", f"{line}\n")
    assert len(private(imports(house))) == 1


def test_loose_modules_are_named(house: Path) -> None:
    write(house, "extra.py", "")
    assert loose(house) == ["toolchain/extra.py:1: in no room"]
