"""The interface of an exporter, and how its templates are filled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from toolchain.codegen.environment import environment
from toolchain.export.carried import Carried

URL = "https://thimble.invalid/"
"""Stands where a registry asks for an address, which only the publisher of a package knows: a name
that leads nowhere (RFC 2606)."""
Files = Mapping[str, str | bytes]
"""Contents by path below the folder, with slashes."""


@dataclass(frozen=True)
class Exporter:
    """`name`: the value of `--for`. `summary`: what it makes, in a line. `files`: the package;
    raises InputError for a board that the target cannot serve. `board`: the one to plan for where
    none is named.
    """

    name: str
    summary: str
    files: Callable[[Carried], Files]
    board: str = "netduinoplus2"


def rendered(template: str, carried: Carried, **more: object) -> str:
    """A template of `templates/export/`, which knows what is carried."""
    filled = environment().get_template(f"export/{template}")
    return filled.render(c=carried, models=carried.models, name=carried.name, **more)


def optimised(tree: Mapping[str, str], carried: Carried) -> dict[str, str]:
    """The files, with -O2 and the core's macros in each of C, where a project cannot say them."""
    return {
        path: rendered("optimised.c.j2", carried, text=text) if path.endswith(".c") else text
        for path, text in tree.items()
    }
