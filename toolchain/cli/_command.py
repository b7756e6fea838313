"""The class of every command: `--quiet`, and checks that no file is written over one that is read
and that numbers are not NaN.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from toolchain.cli._quiet import hushed, quiet_option
from toolchain.errors import InputError

_LEFT_OUT = {"--annotate": "5"}
"""Options whose number may be left out, and what it is then."""
_OUTPUTS = ("html", "json", "junit", "out", "output", "picture", "plot")
"""The parameters that name what is written, in every command."""


class Command(TyperCommand):
    """A command that is refused if its paths would destroy what it reads, or if a number is NaN."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.params.append(quiet_option())

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        names = {name for parameter in self.params for name in parameter.opts}
        return super().parse_args(ctx, list(filled(args, names & _LEFT_OUT.keys())))

    def invoke(self, ctx: Any) -> Any:
        check_numbers(ctx.params)
        check_outputs(ctx.params)
        with hushed(ctx.params.pop("quiet")):
            return super().invoke(ctx)


def filled(arguments: Sequence[str], options: Collection[str]) -> Iterator[str]:
    """The arguments, with the number after each of `options` that leaves it out."""
    for place, word in enumerate(arguments):
        yield word
        if word in options and not "".join(arguments[place + 1 : place + 2]).isdecimal():
            yield _LEFT_OUT[word]


def check_numbers(given: Mapping[str, Any]) -> None:
    """Raise InputError for NaN, which passes every check of a range."""
    for name, value in given.items():
        if isinstance(value, float) and math.isnan(value):
            raise InputError(f"--{name.replace('_', '-')} is NaN; it must be a number")


def check_outputs(given: Mapping[str, Any]) -> None:
    """Raise InputError if an output is an input, a listed file of one, or another output.

    `given`: the parameters of a command line by name, paths as Path or str. An output that is a
    folder is checked where it is replaced.
    """
    from toolchain.files import is_listed  # help needs no files

    outputs = [path for name in _OUTPUTS for path in _paths(given.get(name))]
    inputs = [p for name, value in given.items() if name not in _OUTPUTS for p in _paths(value)]
    for index, output in enumerate(outputs):
        for other in outputs[:index]:
            if os.path.realpath(other) == os.path.realpath(output) and not output.is_dir():
                raise InputError(f"{output} is named for two results: name a file for each")
        for read in inputs:
            if _is_same_file(output, read):
                raise InputError(f"{output} is read by this command: name another file to write")
            if read.is_dir() and is_listed(output, read):
                raise InputError(
                    f"{output} belongs to the result in {read}: name another file to write"
                )


def _paths(value: Any) -> Iterator[Path]:
    """The files that a parameter may name; the standard output and devices are none."""
    for item in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(item, str | Path) or str(item) in ("", "-"):
            continue
        path = Path(item)
        with contextlib.suppress(OSError, ValueError):  # no path at all
            if path.is_file() or path.is_dir() or not path.exists():
                yield path


def _is_same_file(output: Path, read: Path) -> bool:
    return output.is_file() and read.is_file() and output.samefile(read)
