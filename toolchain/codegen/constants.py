"""The constants of one model: each distinct array once, under one symbol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.codegen.arrays import c_type, rows
from toolchain.codegen.names import Names
from toolchain.ir import DType, Tensor

COPY_ALIGNMENT_BYTES = 8
"""At most what a compiler aligns an array to: a doubleword."""


@dataclass(frozen=True)
class Use:
    """What an array is for, as a comment in the C says it.

    The first part describes the array, '' for a constant of the model. The second is the name of
    the operator or tensor in the model, not escaped.
    """

    what: str
    name: str


@dataclass(frozen=True)
class ConstantArray:
    """A `static const` array. `uses` says what it is for, once per operator that reads it.

    `bank`: of RAM, to which the start-up copies it; '': it stays in flash.
    """

    symbol: str
    uses: tuple[Use, ...]
    data: NDArray[np.generic]
    bank: str = ""

    @property
    def use(self) -> Use:
        """What it is to the first operator that reads it."""
        return self.uses[0]

    @property
    def size_bytes(self) -> int:
        return int(self.data.nbytes)

    @property
    def c_type(self) -> str:
        return c_type(DType(self.data.dtype.name))

    @property
    def shape(self) -> str:
        return "x".join(str(d) for d in self.data.shape) or "1"

    @property
    def elements(self) -> int:
        """The number of elements, at least 1: C has no empty arrays."""
        return max(int(self.data.size), 1)

    @property
    def rows(self) -> str:
        return rows(self.data)


class ConstantTable:
    """Collects constants in the order of first use. Equal arrays share one symbol."""

    def __init__(self, prefix: str, names: Names) -> None:
        self._prefix = prefix
        self._names = names
        self._by_content: dict[tuple[str, bytes], ConstantArray] = {}

    @property
    def arrays(self) -> tuple[ConstantArray, ...]:
        return tuple(self._by_content.values())

    @property
    def size_bytes(self) -> int:
        return sum(array.size_bytes for array in self.arrays)

    @property
    def bank_bytes(self) -> Mapping[str, int]:
        """Bytes that are copied to each bank, between aligned ends of the arrays."""
        found: dict[str, int] = {}
        for array in self.arrays:
            if array.bank:
                whole = -(-array.size_bytes // COPY_ALIGNMENT_BYTES) * COPY_ALIGNMENT_BYTES
                found[array.bank] = found.get(array.bank, 0) + whole
        return MappingProxyType(found)

    def __getitem__(self, symbol: str) -> ConstantArray:
        return next(array for array in self.arrays if array.symbol == symbol)

    def find(self, tensor: Tensor) -> str:
        """The symbol of the array that holds a constant tensor as it is; '' where none does."""
        known = self._by_content.get(_key(_data(tensor)))
        return "" if known is None else known.symbol

    def symbol(self, data: NDArray[np.generic], name: str, use: Use, bank: str = "") -> str:
        """The symbol of an array with this content. `name` is used if it is free; `use` goes into a
        comment. It is copied to the `bank` of the first that asks for one.
        """
        content = np.ascontiguousarray(data)
        key = _key(content)
        known = self._by_content.get(key)
        if known is None:
            symbol = f"{self._prefix}_{self._names.unique(name)}"
            known = ConstantArray(symbol, (use,), content)
        elif use not in known.uses:
            known = replace(known, uses=(*known.uses, use))
        known = replace(known, bank=known.bank or bank)
        self._by_content[key] = known
        return known.symbol

    def symbol_of(self, tensor: Tensor, owner: str, bank: str = "") -> str:
        """The symbol of a constant tensor that operator `owner` (such as `op3`) reads:
        `op3_weights`.
        """
        name = f"{owner}_{role_of(tensor)}"
        return self.symbol(_data(tensor), name, Use("", tensor.name), bank)


def _data(tensor: Tensor) -> NDArray[np.generic]:
    assert tensor.constant is not None
    return tensor.constant.astype(tensor.dtype.numpy, copy=False).reshape(tensor.shape)


def _key(data: NDArray[np.generic]) -> tuple[str, bytes]:
    return data.dtype.name, data.tobytes()


def role_of(tensor: Tensor) -> str:
    """What a constant with this shape and type usually is, such as weights or a bias."""
    if tensor.dtype is DType.INT32 and len(tensor.shape) <= 1:
        return "bias"
    return "weights" if len(tensor.shape) > 1 else "constant"
