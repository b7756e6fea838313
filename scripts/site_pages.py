"""Hooks of mkdocs (`mkdocs.yml`): pages that are made, and links that leave `docs/`.

Overview and changes are the README and CHANGELOG. The command line comes from the
commands themselves, the Python interface from the public names of `thimble`, the tutorials from
their scripts: docstring and comments are text, the rest is code. The page of models on boards is
made of its figures, `docs/which-board.json`. Nothing is written but the site.
"""

from __future__ import annotations

import ast
import io
import json
import posixpath
import re
import tokenize
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import toolchain
from benchmarks import which_board
from toolchain.cli._commands import COMMANDS, load
from toolchain.page.sweep import sweep_html
from toolchain.planning.option import options_of
from toolchain.planning.options import PlanOptions

ROOT = Path(__file__).resolve().parents[1]
MOVED = {
    "README.md": "index.md",
    which_board.KEPT.relative_to(ROOT).as_posix(): "which-board-rows.html",
}
"""Where the site has what lies outside `docs/`, and the page of what is data there."""
_LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+://)([^)#\s]*)(#[^)\s]*)?\)")
TUTORIALS = ROOT / "docs" / "tutorials"
_LANGUAGES = {".c": "c", ".ld": "text"}
"""Of the files that a tutorial has beside its script, by their endings."""
_LOADED = re.compile(
    r"<(?:script|img|iframe|link rel=.?stylesheet.?)[^>]* (?:src|href)=.?(https?://[^\s\"'>]+)"
)
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    pages = {
        "index.md": relinked((ROOT / "README.md").read_text(encoding="utf-8"), folder=""),
        "changes.md": relinked((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), folder=""),
        "commands.md": commands(),
        "python.md": names(),
    } | {f"tutorials/{script.stem}.md": tutorial(script) for script in TUTORIALS.glob("*.py")}
    data = json.loads(which_board.KEPT.read_text(encoding="utf-8"))
    pages["which-board-rows.html"] = sweep_html(which_board.page(data))
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A link out of `docs/` leads to the page that is made of its file, or becomes text."""
    if page.file.generated_by is not None:
        return markdown
    return relinked(markdown, folder=posixpath.dirname(f"docs/{page.file.src_uri}"))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Raises PluginError where a page would load something from a network."""
    loaded = _LOADED.search(output)
    if loaded:
        raise PluginError(f"{page.file.src_uri} loads {loaded[1]}")
    return output


def relinked(text: str, folder: str) -> str:
    """`text` of a file in `folder` of the checkout, with the links of the site.

    A page of `docs/tutorials` lies a folder below the site's root, the README's page at it.

    Raises FileNotFoundError for a link to a file that is not in the checkout.
    """

    place_in_site = posixpath.relpath(folder, "docs") if folder.startswith("docs/") else "."

    def to(page: str) -> str:
        return posixpath.relpath(page, place_in_site)

    def moved(found: re.Match[str]) -> str:
        label, target, anchor = found[1], found[2], found[3] or ""
        if not target:
            return found[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        if path in MOVED:
            return f"[{label}]({to(MOVED[path])}{anchor})"
        if re.fullmatch(r"docs/tutorials/\w+\.py", path):
            path = path.removesuffix(".py") + ".md"
        if path.startswith("docs/"):
            return f"[{label}]({to(path.removeprefix('docs/'))}{anchor})"
        if not (ROOT / path).exists():
            raise FileNotFoundError(f"a link leads to {path}, which is not in the checkout")
        return label if label.strip("`") == path else f"{label} (`{path}`)"

    parts = _FENCED.split(text)
    return "".join(
        part if part.lstrip().startswith("```") else _LINK.sub(moved, part) for part in parts
    )


def commands() -> str:
    """The page of the command line: every command with its help and its parameters."""
    return "# The command line\n\n" + "\n".join(
        section for name in sorted(COMMANDS) for section in _command(load(name), f"thimble {name}")
    )


def _command(command: Any, name: str, level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} `{name}`\n"
    context = command.make_context(name, [], resilient_parsing=True)
    subcommands = getattr(command, "commands", {})
    if not subcommands:
        usage = " ".join(command.collect_usage_pieces(context))
        yield f"```\n{name} {usage}\n```\n"
    yield f"{_shown(command.help)}\n"
    items = [item for parameter in command.params for item in _parameter(parameter, context)]
    if items and not subcommands:
        yield "\n".join(items) + "\n"
    for each in subcommands.values():
        yield from _command(each, f"{name} {each.name}", level + 1)


def _parameter(parameter: Any, context: Any) -> Iterator[str]:
    if getattr(parameter, "hidden", False) or "--help" in parameter.opts:
        return
    is_option = parameter.param_type_name == "option"
    written = [*parameter.opts, *parameter.secondary_opts] if is_option else [parameter.name]
    named = ", ".join(f"`{each}`" for each in written)
    is_flag = getattr(parameter, "is_flag", False)
    shown = parameter.display_type(context)
    value = "" if is_flag or not shown else f" `{shown}`"
    text = _shown(parameter.help or "").replace("\n", " ")
    default = parameter.default
    if not is_flag and isinstance(default, str | int | float):
        text += f" Default: `{getattr(default, 'value', default)}`."
    yield f"- {named}{value}: {text}"


def _shown(text: str) -> str:
    """Help as Markdown: what stands in angle brackets is no HTML; a home folder has no name."""
    text = text.split("\f")[0].strip().replace(str(Path.home()), "~")
    return re.sub(r"<(?=\w)", "&lt;", text)


def names() -> str:
    """The page of the Python interface."""
    public = [name for name in toolchain.__all__ if not name.startswith("_")]
    functions = [name for name in public if name.islower()]
    classes = [name for name in public if not name.islower()]
    return (
        "# The Python interface\n\n"
        "Everything here is imported from `thimble`; [From Python](from-python.md) has "
        "an example. All of it has types.\n\n"
        + "\n".join(f"::: toolchain.{name}\n" for name in functions + classes)
        + "\n## Fields of PlanOptions\n\n"
        + "\n".join(_fields_of_options())
    )


def _fields_of_options() -> Iterator[str]:
    for told in options_of(PlanOptions):
        written = f"{told.option.name} {told.option.unit}".rstrip()
        yield f"- `{told.field}` (`{written}`): {told.option.help.replace('<', '&lt;')}"


def tutorial(script: Path) -> str:
    """The page of a script: its docstring and the comments between its statements are text, the
    rest is code. Files of the script's name with another ending follow.
    """
    source = script.read_text(encoding="utf-8")
    docstring = ast.parse(source).body[0]
    head = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")
    title, _, about = head[0].replace("\n", " ").partition(": ")
    parts = [f"# {title}", about[:1].upper() + about[1:]]
    parts += [
        f"```\n{re.sub('(?m)^ +', '', part)}\n```" if part.startswith("    ") else _linked(part)
        for part in head[1:]
    ]
    parts.append(f"All of this page is [{script.name}]({script.name}), which the tests run.")
    parts += _alternating(source, docstring.end_lineno or 0)
    for beside in sorted(TUTORIALS.glob(f"{script.stem}.*")):
        if beside.suffix in _LANGUAGES:
            text = beside.read_text(encoding="utf-8").strip("\n")
            parts += [f"## {beside.name}", f"```{_LANGUAGES[beside.suffix]}\n{text}\n```"]
    return "\n\n".join(parts) + "\n"


def _alternating(source: str, start: int) -> Iterator[str]:
    """The lines of a script behind line `start`: comments as text, the others as code."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {
        token.start[0] for token in tokens if token.type == tokenize.COMMENT and token.start[1] == 0
    }
    lines = enumerate(source.splitlines(), 1)
    numbered = [(number in comments, line) for number, line in lines if number > start]
    for is_comment, group in groupby(numbered, key=lambda pair: pair[0]):
        text = "\n".join(line for _, line in group)
        if is_comment:
            yield _linked(re.sub("(?m)^# ?", "", text))
        elif text.strip():
            yield "```python\n" + text.strip("\n") + "\n```"


def _linked(text: str) -> str:
    """Names of pages become links from a folder below theirs."""
    return re.sub(r"docs/([\w-]+)\.md", r"[\1](../\1.md)", text)
