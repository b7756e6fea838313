"""Why operators of a model format are not read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

DRAWS = (
    "it draws random numbers, so that no output could be compared",
    "give the random numbers as an input",
)
ON_THE_HOST = "leave it out of the model and compute it on the host"


@dataclass(frozen=True)
class Unread:
    """Why an operator is not read, and what to do instead."""

    why: str
    remedy: str = "replace it in the model (`thimble ops` lists what there is)"


def listed(names: str, *reason: str) -> dict[str, Unread]:
    """An `Unread` of these words for each of the names."""
    return dict.fromkeys(names.split(), Unread(*reason))


def lines(unread: Mapping[str, Unread], read: Collection[str]) -> list[str]:
    """The list of a format for `docs/operators.md`, without what is `read` by now."""
    groups: dict[Unread, list[str]] = {}
    for name, reason in unread.items():
        if name not in read:
            groups.setdefault(reason, []).append(name)
    return [f"- {', '.join(names)}: {reason.why}." for reason, names in groups.items()]
