"""What operators read and write, as arrays: for sums over many cuts at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Use:
    """Tensors or constants by their users, operators. Those of one user are arrays.

    A writer of -1 stands for none. `shared`: users, writer, bytes.
    """

    alone: NDArray[np.int64]
    alone_writer: NDArray[np.int64]
    alone_bytes: NDArray[np.float64]
    shared: tuple[tuple[NDArray[np.int64], int, int], ...]


@dataclass(frozen=True)
class Uses:
    """Of a model. `given`: its inputs. `written`: what operators write and others read.

    `passed` is `written` without outputs of the model. In `ends`, the outputs, the user is the
    writer.
    """

    constants: Use
    given: Use
    written: Use
    passed: Use
    ends: Use


def use(found: Iterable[tuple[Sequence[int], int, int]]) -> Use:
    """From users, writer and bytes of each."""
    items = [item for item in found if item[2]]
    alone = [(users[0], writer, size) for users, writer, size in items if len(users) == 1]
    columns = np.array(alone, np.int64).reshape(-1, 3).T
    return Use(
        columns[0],
        columns[1],
        columns[2].astype(np.float64),
        tuple((np.array(u, np.int64), w, size) for u, w, size in items if len(u) > 1),
    )
