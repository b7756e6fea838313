"""Identity of values, of any kind that operators and tensors hold.

Python's own equality is no identity: it takes 0.0 for -0.0, 1 for True, and arrays for sequences.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np


def identity_of(value: Any) -> Hashable:
    """A key that is equal for two values with equal types and bits, down to the last field: an
    array by its element type, shape and SHA-256, a float by its bits, a mapping by its sorted
    items. A value of another kind, such as a function, stands for itself.
    """
    match value:
        case float():
            return "float", value.hex()
        case Enum():
            return type(value), value.name
        case None | bool() | int() | str() | bytes():
            return type(value), value
        case tuple() | list():
            return type(value), tuple(identity_of(one) for one in value)
        case Mapping():
            return "mapping", tuple((name, identity_of(value[name])) for name in sorted(value))
        case np.ndarray() | np.generic():
            digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).digest()
            return "array", value.dtype.str, value.shape, digest
    if is_dataclass(value):
        held = (identity_of(getattr(value, entry.name)) for entry in fields(value))
        return type(value), tuple(held)
    return type(value), value
