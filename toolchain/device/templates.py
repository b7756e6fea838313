"""The templates of firmware and of the host's programs. Each is read once in a process."""

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


@cache
def _environment() -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters.update(texts.FILTERS)
    return env


def rendered(template: str, **context: object) -> str:
    """The text of a template, which is named by its path below `templates/`."""
    return _environment().get_template(template).render(**context)
