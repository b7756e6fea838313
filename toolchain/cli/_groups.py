"""Options in groups: one parameter of a command, a dataclass, stands for an option of each field.

    @grouped
    def command(model: ModelArgument, *, options: Annotated[PlanOptions, without("choice")]): ...

The fields say their options as typer's parameters do, `port: Annotated[str, typer.Option(...)]`, or
tell them themselves (`planning.option`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter
from itertools import chain
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from toolchain.cli import _completion as completion
from toolchain.planning.option import Option, options_of


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
            group.parameters if group else [parameter.replace(kind=Parameter.KEYWORD_ONLY)]
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
        tuple(_parameter(one.name, hints[one.name], one.default) for one in members),
        lambda given: annotation(**given),
    )


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _parameters(told: Option, default: Any) -> Iterator[Parameter]:
    """An option and its parts, as typer has them."""
    usual = told.left_out(default)
    takes: Any = list[str] if told.takes is list else told.takes
    shown = typer.Option(
        usual,
        told.name,
        help=told.help,
        metavar=told.unit or None,
        min=told.least,
        autocompletion=completion.one_of(*told.values) if told.values else None,
    )
    yield _parameter(told.key, takes | None if usual is None else takes, shown)
    for part in told.parts:
        yield from _parameters(part, None)
