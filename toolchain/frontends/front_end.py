"""The interface of a front end, and the common report of a model that cannot be compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Labels


def no_labels(data: bytes) -> tuple[Labels, ...]:
    """For a format, or a model, that names no classes."""
    return ()


@dataclass(frozen=True)
class FrontEnd:
    """A model format.

    recognises  whether the content begins like the format; False for a file too damaged to tell.
    read        from file content and path (for messages and the graph's name) to a Graph; raises
                InputError or UnsupportedError.
    labels      names of the classes of outputs, of a file that `read` takes.
    """

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[bytes], bool]
    read: Callable[[bytes, Path], Graph]
    labels: Callable[[bytes], tuple[Labels, ...]] = no_labels


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
    first = problems[0]
    return UnsupportedError("\n".join(lines), operator=f"{first.operator} ({first.index})")
