"""Options and arguments of commands, and groups of options.

    @grouped
    def command(
        model: ModelArgument,
        *,
        seed: int = option(0, "Seed of the random inputs.", "-s"),
        options: Annotated[PlanOptions, without("choice")],
    ): ...

An option is a parameter of a command, or a field of a dataclass; a parameter of that type stands
for an option of each field. The fields of `PlanOptions` tell theirs themselves (`planning.option`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from inspect import Parameter
from itertools import chain
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from toolchain.cli import _completion as completion
from toolchain.planning.option import Option, options_of

T = TypeVar("T")
REQUIRED: Any = Parameter.empty
"""The default of what must be given."""
_METADATA = "parameter"


def option(
    default: T,
    text: str,
    *names: str,
    unit: str | None = None,
    least: float | None = None,
    most: float | None = None,
    complete: Callable[[str], list[str]] | None = None,
    panel: str = "",
) -> T:
    """An option with the help `text`. It has the name of its parameter, `--dry-run` for `dry_run`,
    and `names`; only these where one of them is long.

    `unit` is what is written behind the name, as `BYTES`; `least` and `most` are the range of a
    number; `complete` gives the words that begin as a text does; `panel` is the heading under
    which help lists it.
    """

    def made(name: str) -> Any:
        long = any(one.startswith("--") for one in names)
        listed = names if long else (f"--{name.replace('_', '-')}", *names)
        return typer.Option(
            *listed,
            help=text,
            metavar=unit,
            min=least,
            max=most,
            autocompletion=complete,
            rich_help_panel=panel or None,
        )

    return field(default=default, metadata={_METADATA: made})


def argument(
    unit: str,
    text: str,
    default: Any = REQUIRED,
    complete: Callable[[str], list[str]] | None = None,
) -> Any:
    """An argument, which is shown as `unit`, with the help `text`."""

    def made(name: str) -> Any:
        return typer.Argument(metavar=unit, help=text, autocompletion=complete)

    return field(default=default, metadata={_METADATA: made})


@dataclass(frozen=True)
class _Chosen:
    """Fields of a group that have options; the others keep their defaults."""

    names: tuple[str, ...]
    without: bool

    def has(self, name: str) -> bool:
        return (name in self.names) != self.without


def without(*fields: str) -> _Chosen:
    """All fields but these have an option here; beside a group's type, in Annotated."""
    return _Chosen(fields, without=True)


def only(*fields: str) -> _Chosen:
    """Only these fields have an option here; beside a group's type, in Annotated."""
    return _Chosen(fields, without=False)


@dataclass(frozen=True)
class _Group:
    """Options of a command line, and the function that makes one value of theirs."""

    parameters: tuple[Parameter, ...]
    value: Callable[[Mapping[str, Any]], Any]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: with the options of each group in place of the group."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, _Group] = {}
    parameters: list[Parameter] = []
    for name, parameter in signature.parameters.items():
        if (group := _group(parameter.annotation)) is not None:
            groups[name] = group
        parameters += (
            group.parameters
            if group
            else [_parameter(name, parameter.annotation, parameter.default)]
        )

    @functools.wraps(command)
    def flat(**given: Any) -> None:
        for name, group in groups.items():
            values = {parameter.name: given.pop(parameter.name) for parameter in group.parameters}
            given[name] = group.value(values)
        command(**given)

    flat.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return flat


def _group(annotation: Any) -> _Group | None:
    """The group that a parameter stands for; None for a parameter that is an option itself."""
    chosen = without()
    if get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        chosen = next((one for one in more if isinstance(one, _Chosen)), chosen)
    if not (isinstance(annotation, type) and is_dataclass(annotation)):
        return None
    if told := [one for one in options_of(annotation) if chosen.has(one.field)]:
        flat = chain(*(_parameters(one.option, one.default) for one in told))
        return _Group(tuple(flat), annotation.of)  # type: ignore[attr-defined]
    hints = get_type_hints(annotation, include_extras=True)
    members = [one for one in fields(annotation) if chosen.has(one.name)]
    return _Group(
        tuple(_parameter(one.name, hints[one.name], one) for one in members),
        lambda given: annotation(**given),
    )


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    """A parameter as typer reads it. `default`: a field, or its default."""
    if isinstance(default, Field):
        made = default.metadata.get(_METADATA)
        annotation = Annotated[annotation, made(name)] if made else annotation
        default = default.default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _parameters(told: Option, default: Any) -> Iterator[Parameter]:
    """An option and its parts, as typer has them."""
    usual = told.left_out(default)
    takes: Any = list[str] if told.takes is list else told.takes
    complete = completion.one_of(*told.values) if told.values else None
    unit, least = told.unit or None, told.least
    more: dict[str, Any] = {"unit": unit, "least": least, "complete": complete}
    shown = option(usual, told.help, told.name, panel=told.panel, **more)
    yield _parameter(told.key, takes | None if usual is None else takes, shown)
    for part in told.parts:
        yield from _parameters(part, None)
