"""A step of a visit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolchain.contact.visit import Told, Visit


@dataclass(frozen=True)
class Step:
    """`name`: for `--only`; `title`: what it does, for people. `run`: does it; a ThimbleError that
    it raises is its finding. `asks_contact`: it asks the contact firmware. `own_firmware`: it gives
    the board firmware of its own.
    """

    name: str
    title: str
    run: Callable[[Visit], Told]
    asks_contact: bool = False
    own_firmware: bool = False
