"""TFLM_DECODE of tflite-micro: compressed constants, unpacked while reading.

Beside each compressed tensor lies an ancillary one: 16 bytes of what is to be known, then a table.
Byte 0 says how it is compressed, bytes 1 and 4 are versions. Bits run from the highest of a byte.

- Look-up tables: an index of 1 to 7 bits for each element into the table of its channel.
- Pruning: a bit for each element says whether it is the next of the table, or its zero point.
- Huffman: a table of the first bits, whose entries are a symbol or name a further table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.ir import DType, Tensor
from toolchain.ops.spec import Array

CUSTOM = "TFLM_DECODE"
_KIND, _VERSION, _OWN_VERSION = 0, 1, 4
_BIT_WIDTH, _STRIDE, _TABLE_SIZE = 5, 6, 5
_HEADER_BYTES = 16
_MOST_INDEX_BITS = 7
_WIDE_ENTRIES = 1


def decoded(packed: Tensor, ancillary: Tensor, output: Tensor) -> Array:
    """The data of `output`. Raises InputError for damaged data, RefusedError for others."""
    if packed.constant is None or ancillary.constant is None:
        raise RefusedError("it unpacks what is computed at run time", "compress constants alone")
    header = np.frombuffer(ancillary.constant.tobytes(), np.uint8)
    if header.size < _HEADER_BYTES:
        raise InputError(f"the table {ancillary.name!r} has {header.size} bytes, fewer than 16")
    kind = int(header[_KIND])
    if kind not in _FORMS or header[_VERSION] != 1 or header[_OWN_VERSION] != 1:
        raise RefusedError(
            f"it is compressed in form {kind}, version {header[_OWN_VERSION]}, which is not known",
            "give the .tflite file from before the compression",
        )
    data = np.frombuffer(packed.constant.tobytes(), np.uint8)
    try:
        values_of_data = _FORMS[kind](data, header, output)
    except (IndexError, ValueError) as error:
        raise InputError(
            f"the compressed {packed.name!r} and its table {ancillary.name!r} do not fill "
            f"{output}: {error}"
        ) from error
    return values_of_data.astype(output.dtype.numpy).reshape(output.shape)


def _channels(output: Tensor) -> NDArray[np.int64]:
    """The channel of each element."""
    q = output.quantisation
    count = 1 if q is None else len(q.scales)
    if count == 1:
        return np.zeros(output.elements, np.int64)
    axis = q.axis if q is not None and q.axis is not None else 0
    if axis not in (0, len(output.shape) - 1):
        raise RefusedError(f"its scales lie along axis {axis}", "compress along the first or last")
    if axis == 0 and len(output.shape) > 1:
        return np.arange(count).repeat(output.elements // count)
    return np.arange(output.elements) % count


def _look_up(data: NDArray[np.uint8], header: NDArray[np.uint8], output: Tensor) -> Array:
    width, stride = int(header[_BIT_WIDTH]) & _MOST_INDEX_BITS, int(header[_STRIDE])
    if width == 0:
        raise ValueError("indices of 0 bits")
    bits = np.unpackbits(data, count=width * output.elements).reshape(-1, width)
    if bits.shape[0] != output.elements or 8 * data.size < width * output.elements:
        raise ValueError(f"{data.size} bytes of indices")
    indices = bits.astype(np.int64) @ (1 << np.arange(width - 1, -1, -1))
    size = output.dtype.size_bytes
    entries = header[_HEADER_BYTES:]
    table = entries[: entries.size // size * size].view(output.dtype.numpy)
    return np.asarray(table[_channels(output) * stride + indices])


def _pruned(data: NDArray[np.uint8], header: NDArray[np.uint8], output: Tensor) -> Array:
    if 8 * data.size < output.elements:
        raise ValueError(f"{data.size} bytes of bits")
    kept = np.unpackbits(data, count=output.elements).astype(np.bool_)
    size, count = output.dtype.size_bytes, int(kept.sum())
    table = header[_HEADER_BYTES : _HEADER_BYTES + count * size].view(output.dtype.numpy)
    q = output.quantisation
    zeros = np.zeros(1, np.int64) if q is None else np.asarray(q.zero_points)
    if zeros.size == 1 and q is not None:
        zeros = zeros.repeat(len(q.scales))
    if zeros.any() and output.dtype is not DType.INT8:
        raise ValueError("zero points of what is not int8")
    if table.size != count:
        raise ValueError(f"{table.size} values for {count}")
    result = zeros[_channels(output)].astype(output.dtype.numpy)
    result[kept] = table
    return result


def _huffman(data: NDArray[np.uint8], header: NDArray[np.uint8], output: Tensor) -> Array:
    """A table's entry has a flag, a count of 4 bits, and a symbol or the way to a further table."""
    wide = bool(header[_TABLE_SIZE] & _WIDE_ENTRIES)
    if output.dtype not in (DType.INT8, *((DType.INT16,) if wide else ())):
        raise RefusedError(f"it unpacks {output.dtype.value} by Huffman's codes")
    bits = 32 if wide else 16
    entries = header[_HEADER_BYTES:]
    table = entries[: entries.size // (bits // 8) * (bits // 8)].view(f"<u{bits // 8}").tolist()
    first = int(header[_TABLE_SIZE] >> 4) + 1
    stream = np.unpackbits(data).tolist()
    value_bits = bits - 5
    result = np.empty(output.elements, np.int64)
    at = 0
    for element in range(output.elements):
        offset, taken = 0, first
        while True:
            number = 0
            for bit in (*stream[at : at + taken], *[0] * (at + taken - len(stream))):
                number = number << 1 | bit
            at += taken
            entry = table[offset + number]
            count = entry >> value_bits & 15
            if entry >> (bits - 1):
                break
            if at > len(stream):
                raise ValueError("the codes end before their last symbol")
            offset, taken = offset + number + (entry & ((1 << value_bits) - 1)), count + 1
        at -= max(taken - count, 0)
        result[element] = entry
    return result.astype(np.uint32).astype(output.dtype.numpy)


_FORMS: Mapping[int, Callable[[NDArray[np.uint8], NDArray[np.uint8], Tensor], Array]] = (
    MappingProxyType({0: _look_up, 1: _huffman, 2: _pruned})
)
