"""A case by its number: which seed, and what is changed in it."""

from __future__ import annotations

import random
from dataclasses import dataclass

from benchmarks.fuzz.aimed import aimed_model
from benchmarks.fuzz.invented import invented
from benchmarks.fuzz.seeds import seed, seed_name
from tests.support.mutations import damaged_bytes, damaged_model, thawed
from tests.support.onnx_mutations import damaged_onnx

_BYTES_SHARE = 0.12
"""Of the cases that are damaged byte by byte; most do not get past the file's outline."""
_SOUND_SHARE = 0.01
_INVENTED_SHARE = 0.05
_AIMED_SHARE = 0.15


@dataclass(frozen=True)
class Case:
    """A file as the front ends get it. `start`: the seed's name. `names`: it has names that the
    toolchain invents, which the plan is to invent, too."""

    number: int
    start: str
    suffix: str
    data: bytes
    names: bool = False


def case(seed_number: int, number: int) -> Case:
    """Case `number` of a run with the seed `seed_number`."""
    rng = random.Random(f"case {seed_number} {number}")
    name = seed_name(rng)
    start = seed(name)
    drawn = rng.random()
    data: bytes | None = None
    names = False
    if drawn < _SOUND_SHARE:
        data = start.data
    elif drawn < _SOUND_SHARE + _INVENTED_SHARE:
        data = invented(name, rng)
        names = data is not None
    elif drawn < _SOUND_SHARE + _INVENTED_SHARE + _BYTES_SHARE:
        data = damaged_bytes(start.data, rng, seed(seed_name(rng)).data)
    elif start.model is None:
        data = damaged_onnx(start.data, rng)
    elif drawn > 1.0 - _AIMED_SHARE:
        data = aimed_model(thawed(start.model), rng)
    else:
        data = damaged_model(thawed(start.model), rng)
    return Case(number, start.name, start.suffix, start.data if data is None else data, names)
