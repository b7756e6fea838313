"""The Jinja2 environments: of texts that are generated (C, linker scripts, boards), and of pages.

A missing value is an error, and lines are printed as they stand. Pages have an environment of their
own, which escapes HTML.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from toolchain.files import texts
from toolchain.packages import lazy
from toolchain.resources import TEMPLATES

if TYPE_CHECKING:
    import jinja2
else:
    jinja2 = lazy("jinja2")


def environment() -> jinja2.Environment:
    """A new environment. Templates are named by their path below `templates/`."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters.update(texts.FILTERS)
    return env


@cache
def _shared() -> jinja2.Environment:
    """In which each template is read once in a process."""
    return environment()


def rendered(template: str, **context: object) -> str:
    """The text of a template, which is named by its path below `templates/`."""
    return _shared().get_template(template).render(**context)


@cache
def page_environment() -> jinja2.Environment:
    """The environment of pages and cards: `templates/page`, with texts escaped for HTML."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES / "page"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
