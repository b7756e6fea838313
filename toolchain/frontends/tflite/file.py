"""A TFLite file as plain records: indices checked, tensors typed, nothing yet interpreted.

Source: `tensorflow/compiler/mlir/lite/schema/schema.fbs`, version 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.frontends.tflite.flatbuffer import FlatBuffer, Table
from toolchain.frontends.tflite.flexbuffer import read_flexbuffer
from toolchain.frontends.tflite.options import decoded, members, read_options
from toolchain.frontends.tflite.versions import check_version
from toolchain.ir import DType, Quantisation, Tensor
from toolchain.ir.names import Names
from toolchain.ir.tensor import SMALLEST_SCALE, is_scale

IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3
LARGEST_RANK = 8
LARGEST_CONSTANT_BYTES = 2**31 - 1
LARGEST_ACTIVATION_BYTES = 1 << 26
"""64 MiB: more than the external memory of any microcontroller board."""
_LARGEST_STRUCT_BYTES = 64
"""Above the structs of custom options."""


@dataclass(frozen=True)
class FileTensor:
    """A tensor of the file.

    `tensor` is None if it cannot be used: its type has no counterpart in DType, or `refusal` gives
    reason and remedy. `type_name` is the schema's name for its type. Constants of INT4 are
    unpacked to int8, those of FLOAT16 to float32. `dynamic`: the file leaves its shape, or the
    dimensions `open_axes`, undefined. `variable`: it keeps its value between runs. `buffer` is the
    file's number of its data.
    """

    name: str
    tensor: Tensor | None
    type_name: str
    dynamic: bool = False
    open_axes: tuple[int, ...] = ()
    refusal: tuple[str, str] | None = None
    variable: bool = False
    buffer: int = 0


@dataclass(frozen=True)
class FileOp:
    """An operator of the file. `code` is its builtin name, or `custom` of a custom operator.

    `options` are as `options.read_options` returns them. `misplaced_options`: the type of the
    options that the file gives it, if they are another operator's. `legacy`: its tensors were uint8
    and have been lowered to int8 (`legacy`). `caller`: the operator of the main subgraph that calls
    the one it stands in, where it is another. `struct`: a custom operator's options, read as int32
    fields instead of as a FlexBuffer.
    """

    index: int
    code: str
    custom: str
    version: int
    options: Any
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...] = ()
    misplaced_options: str = ""
    legacy: bool = False
    caller: int | None = None
    struct: tuple[int, ...] = ()

    def __str__(self) -> str:
        inside = "" if self.caller is None else "in what "
        return f"{self.name} ({inside}operator {self.place}{' calls' if inside else ''})"

    @property
    def place(self) -> int:
        """The place of the operator in the main subgraph, or of the call of its subgraph."""
        return self.index if self.caller is None else self.caller

    @property
    def name(self) -> str:
        """The operator's name: its builtin name, or the one of a custom operator."""
        return self.custom or self.code

    def miscounted(self) -> InputError:
        """The error for an operator with other numbers of inputs or outputs than it can have."""
        return InputError(f"{self} has {len(self.inputs)} inputs and {len(self.outputs)} outputs")

    @property
    def needed_options(self) -> Any:
        """The options. Raises InputError if there are none."""
        if self.misplaced_options:
            raise InputError(f"{self} has {self.misplaced_options}, which another operator takes")
        if self.options is None:
            raise InputError(f"{self} has no options, which it cannot do without")
        return self.options


@dataclass(frozen=True)
class FileModel:
    """A subgraph of a file; the main one has all the `others`, in the file's order."""

    tensors: tuple[FileTensor, ...]
    ops: tuple[FileOp, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    others: tuple[FileModel, ...] = ()


def read_file(data: bytes) -> FileModel:
    """Parse and check a file. Raises InputError naming what is wrong."""
    if len(data) < 8 or data[4:8] != IDENTIFIER:
        raise InputError("the file is not a TFLite model: bytes 4 to 7 are not 'TFL3'")
    model = FlatBuffer(data).root()
    version = model.integer(0, "I")
    if version != SCHEMA_VERSION:
        raise InputError(f"the file has schema version {version}; only 3 is known")
    codes = tuple(_operator_code(table) for table in model.tables(1))
    subgraphs = model.tables(2)
    if not subgraphs:
        raise InputError("the file is corrupt: it holds no subgraph")
    buffers = tuple(_buffer(table, data) for table in model.tables(4))
    main, *others = (_subgraph(table, codes, buffers) for table in subgraphs)
    return replace(main, others=tuple(others))


def _subgraph(
    main: Table, codes: tuple[tuple[str, str, int], ...], buffers: tuple[NDArray[np.generic], ...]
) -> FileModel:
    inputs, outputs = _indices(main, 1), _indices(main, 2)
    tables = main.tables(0)
    names = _unique_names(tables)
    ops = tuple(
        _operator(table, index, codes, len(tables)) for index, table in enumerate(main.tables(3))
    )
    for index in (*inputs, *outputs):
        if not 0 <= index < len(tables):
            raise InputError(f"the file is corrupt: the model's ends name tensor {index}")
    written = {i for op in ops for i in op.outputs} | set(inputs)
    tensors = tuple(
        _tensor(table, names[index], buffers, index not in written)
        for index, table in enumerate(tables)
    )
    return FileModel(tensors, ops, inputs, outputs)


def _indices(table: Table, slot: int) -> tuple[int, ...]:
    values = table.numbers(slot, "int32")
    return () if values is None else tuple(int(v) for v in values)


def _operator_code(table: Table) -> tuple[str, str, int]:
    """Name, custom name, version. Codes above 127 stand in a field of their own.

    A code that the schema lacks is refused by its number, with all other unsupported operators.
    """
    number = max(table.integer(0, "b"), table.integer(3, "i"))
    name = members("BuiltinOperator").get(number, f"builtin operator {number}")
    custom = table.string(1) if name == "CUSTOM" else ""
    return name, custom, table.integer(2, "i", 1)


def _buffer(table: Table, data: bytes) -> NDArray[np.generic]:
    """The bytes of a buffer, which in files above 2 GB lie outside the flatbuffer.

    Where a buffer has both, its own bytes count, as in LiteRT's `interpreter_builder.cc`.
    """
    content = table.numbers(0, "uint8")
    if content is not None:
        return content
    offset, size = table.integer(1, "Q"), table.integer(2, "Q")
    if offset <= 1:
        return np.zeros(0, np.uint8)
    if size > len(data) or offset > len(data) - size:
        raise InputError(f"the file is corrupt: a buffer at byte {offset} lies past its end")
    return np.frombuffer(data, np.uint8, size, offset)


def _unique_names(tables: tuple[Table, ...]) -> tuple[str, ...]:
    """A name for each tensor: the file's own, numbered where it is empty or taken."""
    names, unique = Names(), []
    for index, table in enumerate(tables):
        given = table.string(3) or f"tensor_{index}"
        unique.append(names.fresh(given if given not in names else f"{given}_{index}"))
    return tuple(unique)


def _tensor(
    table: Table, name: str, buffers: tuple[NDArray[np.generic], ...], constant: bool
) -> FileTensor:
    """Read a tensor. `constant`: neither an operator nor the caller writes it, so that its buffer
    is its value."""
    type_name = decoded("TensorType", table.integer(1, "b"), f"the type of tensor {name!r}")
    shape = _indices(table, 0)
    signature = _indices(table, 7)
    index = table.integer(2, "I")
    if buffers and index >= len(buffers):
        raise InputError(f"the file is corrupt: tensor {name!r} names buffer {index}")
    variable, written = bool(table.integer(5, "?")), not constant
    constant = constant and not variable
    data = buffers[index] if buffers else np.zeros(0, np.uint8)
    refusal = _refusal(table, name, constant)
    if written and data.size:
        raise InputError(
            f"tensor {name!r} is computed or given, yet the file has {data.size} bytes of it"
        )
    if variable and data.size:
        raise InputError(
            f"tensor {name!r} is a variable, which begins at zero, yet the file has {data.size} "
            "bytes of it; remove them"
        )
    packed = type_name == "INT4" and constant and data.size > 0
    half = type_name == "FLOAT16" and constant and data.size > 0
    if (type_name not in DType.__members__ and not packed and not half) or refusal:
        return FileTensor(name, None, type_name, refusal=refusal, variable=variable, buffer=index)
    dtype = DType.INT8 if packed else DType.FLOAT32 if half else DType[type_name]
    if len(shape) > LARGEST_RANK:
        raise InputError(f"tensor {name!r} has {len(shape)} dimensions; at most 8 make sense")
    elements = math.prod(shape)
    largest = LARGEST_CONSTANT_BYTES if constant else LARGEST_ACTIVATION_BYTES
    if min(shape, default=1) < 0 or elements * dtype.size_bytes > largest:
        raise InputError(f"tensor {name!r} has the impossible shape {list(shape)}")
    open_axes = tuple(axis for axis, size in enumerate(signature) if size < 0)
    value = None
    if constant and (data.size or elements == 0):
        wanted = (elements + 1) // 2 if packed else elements * (2 if half else dtype.size_bytes)
        if data.size != wanted:
            raise InputError(
                f"the file is corrupt: tensor {name!r} of shape {list(shape)} has {data.size} "
                f"bytes of data, not {wanted}"
            )
        data = _unpacked(data, elements) if packed else data
        stored = np.dtype(np.float16) if half else dtype.numpy
        if dtype is DType.BOOL and np.any(data.view(np.uint8) > 1):
            raise InputError(
                f"the file is corrupt: tensor {name!r} of BOOL holds bytes other than 0 and 1"
            )
        value = data.view(stored.newbyteorder("<")).reshape(shape)
        value = value.astype(dtype.numpy) if half else value
    return FileTensor(
        name,
        Tensor(
            name,
            shape,
            dtype,
            _quantisation(table.table(4), name, shape, dtype, known=value is not None),
            value,
        ),
        type_name,
        dynamic=bool(open_axes) or not shape,
        open_axes=open_axes,
        buffer=index,
        variable=variable,
    )


def _unpacked(data: NDArray[np.generic], elements: int) -> NDArray[np.generic]:
    """int4 elements, two a byte and the first one low, as int8; a spare half byte falls away."""
    pairs = np.stack([data.view(np.int8) << 4, data.view(np.int8)], axis=-1) >> 4
    return pairs.reshape(-1)[:elements]


def _refusal(table: Table, name: str, constant: bool) -> tuple[str, str] | None:
    """Why a tensor that is well formed cannot be used, and what to do; None where it can."""
    if table.has(6):
        return f"tensor {name!r} is stored sparse", "convert with dense weights"
    if table.integer(10, "I") and constant:
        return f"tensor {name!r} lies in another file", "write the model with its weights inside"
    return None


def _quantisation(
    table: Table | None, name: str, shape: tuple[int, ...], dtype: DType, *, known: bool
) -> Quantisation | None:
    """Scales and zero points. Raises InputError where they make no sense.

    Converters give the scale 0 to constants that are zero throughout, such as the first state of a
    recurrent layer. A factor with it is 0 in LiteRT (`QuantizeMultiplier`), as one with the
    smallest scale is, which takes its place where the data are `known`.
    """
    if table is None or dtype in (DType.FLOAT32, DType.BOOL):
        return None
    described = f"the quantisation of tensor {name!r}"
    if decoded("QuantizationDetails", table.integer(4, "B"), described) != "NONE":
        raise InputError(f"{described} is of another scheme than scales and zero points")
    scales, zeros = table.numbers(2, "float32"), table.numbers(3, "int64")
    if scales is None or not scales.size:
        return None
    axis = table.integer(6, "i") if len(shape) != 1 else 0
    if scales.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scales.size):
        raise InputError(
            f"tensor {name!r} of shape {list(shape)} has {scales.size} scales along axis {axis}"
        )
    if zeros is None or zeros.size != scales.size:
        count = 0 if zeros is None else zeros.size
        raise InputError(f"tensor {name!r} has {scales.size} scales and {count} zero points")
    if known:
        scales = np.where(scales == 0, np.float32(SMALLEST_SCALE), scales)
    if not all(map(is_scale, scales.tolist())):
        raise InputError(f"tensor {name!r} has a scale that is not a positive number")
    range_of = np.iinfo(dtype.value)
    if (zeros < range_of.min).any() or (zeros > range_of.max).any():
        raise InputError(f"tensor {name!r} has a zero point outside {dtype.value}")
    return Quantisation(
        tuple(float(s) for s in scales),
        tuple(int(z) for z in zeros),
        axis if scales.size > 1 else None,
    )


def _operator(
    table: Table, index: int, codes: tuple[tuple[str, str, int], ...], tensors: int
) -> FileOp:
    number = table.integer(0, "I")
    if number >= len(codes):
        raise InputError(f"the file is corrupt: operator {index} has code {number}")
    code, custom, version = codes[number]
    check_version(code, version, f"{code} (operator {index})")
    inputs, outputs = _indices(table, 1), _indices(table, 2)
    between = _indices(table, 8)
    for tensor in (*(i for i in inputs if i != -1), *outputs, *between):
        if not 0 <= tensor < tensors:
            raise InputError(f"the file is corrupt: {code} (operator {index}) names no tensor")
    options, misplaced = read_options(table, code, f"{code} (operator {index})")
    fields: tuple[int, ...] = ()
    if custom:
        content = table.numbers(5, "uint8")
        options, fields = read_flexbuffer(content), _fields(content)
    return FileOp(
        *(index, code, custom, version, options, inputs, outputs, between, misplaced), struct=fields
    )


def _fields(content: NDArray[np.generic] | None) -> tuple[int, ...]:
    """Custom options as the int32 fields of a struct of TFLite's C interface; () for other sizes
    than a few of them have."""
    data = b"" if content is None else content.tobytes()
    if len(data) % 4 or len(data) > _LARGEST_STRUCT_BYTES:
        return ()
    return tuple(int(field) for field in np.frombuffer(data, "<i4"))
