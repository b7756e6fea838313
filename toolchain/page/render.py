"""A page from its values: `templates/page/` with the charts' script and the values in it."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from toolchain.page import charts
from toolchain.page.document import Document
from toolchain.resources import TEMPLATES

_FOLDER = TEMPLATES / "page"
_CHARTS = ("bars", "roofline", "choices", "memory")
"""Vega-Lite's specifications in `templates/page/charts/`."""


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(document: Document) -> str:
    """The page as one HTML file that loads nothing. Raises MissingToolError without the charts.

    Names from the model are data: `tojson` escapes them inside the script element, the page's
    script sets them as text, and the page forbids itself every connection.
    """
    specs = {
        name: json.loads((_FOLDER / "charts" / f"{name}.json").read_text(encoding="utf-8"))
        for name in _CHARTS
    }
    return (
        _environment()
        .get_template("page.html.j2")
        .render(document=asdict(document), specs=specs, vega=charts.script())
    )
