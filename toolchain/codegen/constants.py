"""The constants of one model: each distinct array once, under one symbol or at one offset."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.codegen.arrays import c_type, rows
from toolchain.codegen.names import Names
from toolchain.ir import BLOB_ALIGNMENT_BYTES, DType, Tensor


@dataclass(frozen=True)
class Use:
    """The use of an array, as a comment in the C says it.

    The first part describes the array, '' for a constant of the model. The second is the name of
    the operator or tensor in the model, not escaped.
    """

    what: str
    name: str


@dataclass(frozen=True)
class ConstantArray:
    """A `static const` array, or a part of a blob. `uses` says what it is for, once per operator
    that reads it.

    `bank`: of RAM, to which the start-up copies it; '': it stays in flash. `offset`: in bytes from
    the start of the constants in the blob; `size_bytes` are reserved there.
    """

    symbol: str
    uses: tuple[Use, ...]
    data: NDArray[np.generic]
    bank: str = ""
    offset: int = 0

    @property
    def use(self) -> Use:
        """The use by the first operator that reads it."""
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
    """Collects constants in the order of first use. Equal arrays share one symbol.

    With `external` they are parts of a blob, as are numbers that depend on scales (`number`). Two
    of them share a place only if they come from the same constants of the model in the same way,
    even if others are equal: every model of this architecture then has the same places.
    """

    def __init__(self, prefix: str, names: Names, *, external: bool = False) -> None:
        self._prefix = prefix
        self._names = names
        self._external = external
        self._known: dict[Hashable, ConstantArray] = {}
        self._numbers: dict[Hashable, tuple[int, int]] = {}
        self._end_bytes = 0

    @property
    def end_bytes(self) -> int:
        """The offset at which the next constant of the blob begins."""
        return self._end_bytes

    @property
    def external(self) -> bool:
        return self._external

    @property
    def arrays(self) -> tuple[ConstantArray, ...]:
        return tuple(self._known.values())

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers in the blob, behind the arrays."""
        return tuple(value for _, value in self._numbers.values())

    @property
    def numbers_offset(self) -> int:
        """The offset at which the numbers begin."""
        return self._end_bytes

    @property
    def size_bytes(self) -> int:
        return sum(array.size_bytes for array in self.arrays) + 4 * len(self._numbers)

    @property
    def bank_bytes(self) -> Mapping[str, int]:
        """Bytes that are copied to each bank, between aligned ends of the arrays."""
        sizes: dict[str, int] = {}
        for array in self.arrays:
            if array.bank:
                sizes[array.bank] = sizes.get(array.bank, 0) + _whole(array.size_bytes)
        return MappingProxyType(sizes)

    def __getitem__(self, symbol: str) -> ConstantArray:
        return next(array for array in self.arrays if array.symbol == symbol)

    def find(self, tensor: Tensor) -> str:
        """The symbol of the array that holds a constant tensor as it is; '' where none does."""
        data = _data(tensor)
        known = self._known.get(self._key(data, (tensor.name, ())))
        return "" if known is None else known.symbol

    def symbol(
        self,
        data: NDArray[np.generic],
        name: str,
        use: Use,
        bank: str = "",
        source: Hashable = (),
    ) -> str:
        """The symbol of an array with this content. `name` is used if it is free; `use` goes into a
        comment. It is copied to the `bank` of the first that asks for one. `source`: the constants
        of the model that it is made of, and how.
        """
        content = np.ascontiguousarray(data)
        key = self._key(content, source)
        known = self._known.get(key)
        if known is None:
            symbol = f"{self._prefix}_{self._names.unique(name)}"
            known = ConstantArray(symbol, (use,), content, offset=self._end_bytes)
            self._end_bytes += _whole(known.size_bytes)
        elif use not in known.uses:
            known = replace(known, uses=(*known.uses, use))
        known = replace(known, bank=known.bank or bank)
        self._known[key] = known
        return known.symbol

    def number(self, value: int, source: Hashable) -> int:
        """The index of a number of the blob. `source`: its meaning and its operator."""
        turn = 0
        while (known := self._numbers.setdefault((source, turn), (len(self._numbers), value)))[
            1
        ] != value:
            turn += 1
        return known[0]

    def _key(self, data: NDArray[np.generic], source: Hashable) -> Hashable:
        if not self._external:
            return data.dtype.name, data.tobytes()
        turn = 0
        while True:
            key = (source, data.dtype.name, data.shape, turn)
            if key not in self._known or self._known[key].data.tobytes() == data.tobytes():
                return key
            turn += 1

    def symbol_of(self, tensor: Tensor, owner: str, bank: str = "", source: Hashable = ()) -> str:
        """The symbol of a constant tensor that operator `owner` (such as `op3`) reads:
        `op3_weights`. `source`: tells apart equal constants of several operators, where they must
        not share a place.
        """
        name = f"{owner}_{role_of(tensor)}"
        return self.symbol(_data(tensor), name, Use("", tensor.name), bank, (tensor.name, source))


def _data(tensor: Tensor) -> NDArray[np.generic]:
    assert tensor.constant is not None
    return tensor.constant.astype(tensor.dtype.numpy, copy=False).reshape(tensor.shape)


def _whole(size_bytes: int) -> int:
    """Bytes up to the next place where an array may begin."""
    return -(-size_bytes // BLOB_ALIGNMENT_BYTES) * BLOB_ALIGNMENT_BYTES


def role_of(tensor: Tensor) -> str:
    """The usual role of a constant with this shape and type, such as weights or a bias."""
    if tensor.dtype is DType.INT32 and len(tensor.shape) <= 1:
        return "bias"
    return "weights" if len(tensor.shape) > 1 else "constant"
