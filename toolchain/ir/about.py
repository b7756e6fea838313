"""Facts about the file that a model came from, beside its graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Labels:
    """Names of classes, and the number of the model's output that they are of; None: whichever has
    as many classes.
    """

    names: tuple[str, ...]
    output: int | None = None


@dataclass(frozen=True)
class About:
    """`sha256`: the digest of the file's bytes, in hexadecimal; '' for a graph without a file.
    `asked`: words of a command line: the file, by its name alone, and the options of its plan.

    `labels`: names of the classes of those outputs of the graph that have them, by output.
    """

    sha256: str = ""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    asked: tuple[str, ...] = ()


NOTHING_KNOWN = About()
