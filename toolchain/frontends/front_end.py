"""The interface of a front end, and the common report of a model that cannot be compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Labels


@dataclass(frozen=True)
class Reading:
    """How the caller wants a model file read.

    input_shapes  by input, the shape for what the file leaves open; the rest must be as the file
                  has it.
    allow_float   the caller wants a float model as it is, so advice to quantise it is of no use.
    """

    input_shapes: Mapping[str, tuple[int, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    allow_float: bool = False


AS_WRITTEN = Reading()


class ReadFile(Protocol):
    """See `FrontEnd.read`."""

    def __call__(self, data: bytes, path: Path, wanted: Reading = AS_WRITTEN) -> Graph: ...


@dataclass(frozen=True)
class FrontEnd:
    """A model format.

    recognises  whether the content begins like the format; False for a file too damaged to tell.
    read        from file content, path (for messages and the graph's name) and what the caller
                wants to a Graph; raises InputError or UnsupportedError.
    labels      names of the classes of outputs, of a file that `read` takes.
    whole       from file content, path and what the caller wants to content that stands alone: with
                what lies in files beside it, and with open sizes set where `read` needs that;
                raises InputError where files are missing or sizes do not fit.
    """

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[bytes], bool]
    read: ReadFile
    labels: Callable[[bytes], tuple[Labels, ...]]
    whole: Callable[[bytes, Path, Reading], bytes]


class RefusedError(UnsupportedError):
    """The refusal of one operator, before all of them are reported together."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


class LeftInFloatError(RefusedError):
    """An operator between quantised ones that has no int8 form, or that the file left in float."""


@dataclass(frozen=True)
class Problem:
    """An operator that cannot be compiled. `index` is its place in the file, from 0."""

    operator: str
    index: int
    why: str
    remedy: str = ""


def unsupported(path: Path, problems: Sequence[Problem], operators: int) -> UnsupportedError:
    """One error for all `problems` of a model with `operators` operators, similar ones together."""
    first = problems[0]
    return UnsupportedError(
        _listed(path, problems, operators),
        operator=f"{first.operator} ({first.index})",
        in_float=_listed(path, [_without_quantising(one) for one in problems], operators),
    )


def _without_quantising(problem: Problem) -> Problem:
    """The problems without advice to quantise, for a caller who wants the model in float."""
    asks = "quantise the model" in problem.remedy
    return replace(problem, remedy="") if asks else problem


def _listed(path: Path, problems: Sequence[Problem], operators: int) -> str:
    groups: dict[tuple[str, str, str], list[int]] = {}
    for problem in problems:
        key = (problem.operator, problem.why, problem.remedy)
        groups.setdefault(key, []).append(problem.index)
    count = len({problem.index for problem in problems})
    verb = "is" if count == 1 else "are"
    lines = [f"{path.name}: {count} of {operators} operators {verb} not supported"]
    for (operator, why, remedy), indices in groups.items():
        once = tuple(dict.fromkeys(indices))
        noun = "operator" if len(once) == 1 else "operators"
        places = ", ".join(str(index) for index in once)
        advice = f"; {remedy}" if remedy else ""
        lines.append(f"  {operator} ({noun} {places}): {why}{advice}")
    return "\n".join(lines)
