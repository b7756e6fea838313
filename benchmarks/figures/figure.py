"""A figure: the commands that make it, and how its data becomes tables, plots and single values."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks._results import write_results

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "docs" / "figures"
"""A file for each figure, `<name>.json`, and its plots."""


@dataclass(frozen=True)
class Plot:
    """A drawing of the kept data as SVG. `alt`: what it shows, for who does not see it."""

    alt: str
    draw: Callable[[Any], str]


@dataclass(frozen=True)
class Figure:
    """`commands`: by a key of their own, the module below `benchmarks` and its arguments;
    `{shared}` stands for the folder of models, `{tflm}` for a checkout of TFLM. `rooms`: paths of
    the checkout that can change the result, beside the benchmark's own modules. `minutes`: of
    processor time, a guess until the first run. `keep`: what is kept of a command's JSON. `exits`:
    codes that still give a figure.

    `tables`, `plots` and `values` render the kept data, a mapping from the commands' keys: Markdown
    by the name of the table, plots by the name of their file, texts by the name that the documents
    insert.
    """

    name: str
    commands: Mapping[str, str]
    rooms: Sequence[str]
    minutes: float
    tables: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    plots: Mapping[str, Plot] = field(default_factory=dict)
    values: Callable[[Any], Mapping[str, str]] = lambda data: {}
    keep: Callable[[Any], Any] = lambda result: result
    exits: Sequence[int] = (0,)

    @property
    def file(self) -> Path:
        return DATA / f"{self.name}.json"


@dataclass(frozen=True)
class Kept:
    """The data of a figure: what was run, when, at which commit, and what came out.

    `rooms`: git's digest of each path that it depends on. `minutes`: of processor time.
    """

    commit: str
    date: str
    minutes: float
    commands: Mapping[str, str]
    tools: Mapping[str, str]
    rooms: Mapping[str, str]
    data: Mapping[str, Any]


def load(figure: Figure) -> Kept | None:
    """What is kept of a figure; None if it was never run."""
    if not figure.file.exists():
        return None
    return Kept(**json.loads(figure.file.read_text(encoding="utf-8")))


def save(figure: Figure, kept: Kept) -> None:
    DATA.mkdir(exist_ok=True)
    write_results(figure.file, kept)


@cache
def figures() -> Mapping[str, Figure]:
    """All figures by name: the constant FIGURES of each module in `declared/`."""
    from benchmarks.figures import declared

    found: dict[str, Figure] = {}
    for module in pkgutil.iter_modules(declared.__path__):
        for figure in importlib.import_module(f"{declared.__name__}.{module.name}").FIGURES:
            if figure.name in found:
                raise ValueError(f"two figures are named {figure.name}")
            found[figure.name] = figure
    return found
