"""A page from its values: `templates/page/` with the charts' script and the values in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from toolchain.files.printable import printable
from toolchain.files.templates import page_environment
from toolchain.packages import lazy
from toolchain.page import charts
from toolchain.page.document import Document
from toolchain.resources import TEMPLATES

if TYPE_CHECKING:
    import jinja2
else:
    jinja2 = lazy("jinja2")

_FOLDER = TEMPLATES / "page"


def page(document: Document, live: int | None = None) -> str:
    """The page of builds. `live`: its version on a server that follows work. As `rendered`."""
    return rendered(
        "build",
        asdict(document),
        charts_used=("bars", "roofline", "choices", "memory"),
        scripts=("arena", "network", "operators"),
        live=live,
    )


def waiting_page(title: str, command: str, live: int) -> str:
    """The page before anything is known."""
    return rendered("waiting", {"title": title, "command": command}, (), live=live)


def still_page(name: str, document: Mapping[str, Any]) -> str:
    """One HTML file from `name.html.j2` that has no script, and needs no package for charts. Texts
    are made `printable`."""
    return page_environment().get_template(f"{name}.html.j2").render(document=_seen(document))


def rendered(
    name: str,
    document: Mapping[str, Any],
    charts_used: Sequence[str],
    scripts: Sequence[str] = (),
    live: int | None = None,
) -> str:
    """One HTML file that loads nothing, from `name.html.j2`, `js/name.js` and other `scripts`.

    `document` has at least `title` and `command`. Names from a model are data in it, made
    `printable`: `tojson` escapes them inside the script element, the page's script sets them as
    text, and the page forbids itself every connection but to its own server. `charts_used`:
    Vega-Lite's specifications in `charts/`. A `live` page asks its server for the progress. Raises
    MissingToolError without the charts' package.
    """
    specs = {
        chart: json.loads((_FOLDER / "charts" / f"{chart}.json").read_text(encoding="utf-8"))
        for chart in charts_used
    }
    return (
        page_environment()
        .get_template(f"{name}.html.j2")
        .render(
            document=_seen(document),
            specs=specs,
            vega=charts.script(),
            live=live,
            scripts=(
                *("dom", *scripts, "charts", name, "start"),
                *(() if live is None else ("live",)),
            ),
        )
    )


def _seen(value: Any) -> Any:
    """`value` with printable texts."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {_seen(name): _seen(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_seen(inner) for inner in value]
    return value
