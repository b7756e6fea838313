"""An operator's builtin options: checked to be the operator's own, with every enum as a name.

No number in a file is used as an index, or given a meaning, before this module has checked it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import ai_edge_litert.schema_py_generated as schema

from toolchain.errors import InputError
from toolchain.frontends.tflite.flatbuffer import Table

LONGEST_OPTION = 64
"""Items in a vector inside an operator's options: shapes and axes, nothing longer."""

_ENUMERATIONS: Mapping[str, str] = MappingProxyType(
    {
        "combiner": "CombinerType",
        "fusedActivationFunction": "ActivationFunctionType",
        "idxOutType": "TensorType",
        "inDataType": "TensorType",
        "kernelType": "LSTMKernelType",
        "keyDtype": "TensorType",
        "mode": "MirrorPadMode",
        "outDataType": "TensorType",
        "outType": "TensorType",
        "outputType": "TensorType",
        "padding": "Padding",
        "quantizedBiasType": "TensorType",
        "type": "LSHProjectionType",
        "valueDtype": "TensorType",
        "weightsFormat": "FullyConnectedOptionsWeightsFormat",
    }
)
"""Fields of the BuiltinOptions tables that hold an enum, and which."""

_OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "AVERAGE_POOL_2D": "Pool2DOptions",
        "L2_NORMALIZATION": "L2NormOptions",
        "L2_POOL_2D": "Pool2DOptions",
        "MAX_POOL_2D": "Pool2DOptions",
        "MAXIMUM": "MaximumMinimumOptions",
        "MEAN": "ReducerOptions",
        "MINIMUM": "MaximumMinimumOptions",
        "REDUCE_ALL": "ReducerOptions",
        "REDUCE_ANY": "ReducerOptions",
        "REDUCE_MAX": "ReducerOptions",
        "REDUCE_MIN": "ReducerOptions",
        "REDUCE_PROD": "ReducerOptions",
        "SUM": "ReducerOptions",
    }
)
"""Operators whose options are not named after them."""


@cache
def members(enumeration: str) -> Mapping[int, str]:
    """Number to name of an enum of the schema."""
    listed = vars(getattr(schema, enumeration)).items()
    return MappingProxyType({v: k for k, v in listed if not k.startswith("_")})


def decoded(enumeration: str, number: int, what: str) -> str:
    """The name of a number of an enum. Raises InputError, naming `what`, for an unknown number."""
    found = members(enumeration).get(number)
    if found is None:
        raise InputError(
            f"{what} is {number}, which {enumeration} of TFLite's schema does not have; "
            "the file is damaged or newer than this version of Thimble"
        )
    return found


@cache
def options_of(builtin: str) -> str:
    """The type of the options that an operator takes; '' if it takes none."""
    plain = {name.lower(): name for name in members("BuiltinOptions").values()}
    default = plain.get(f"{builtin.replace('_', '')}Options".lower(), "")
    return _OPTIONS.get(builtin, default)


def read_options(table: Table, builtin: str, operator: str) -> tuple[Any, str]:
    """The options of an Operator table by the schema's object API; None if there are none.

    Its enums are names. If the options are another operator's, they are None, and the second value
    is their type. Raises InputError if they are broken.
    """
    name = decoded("BuiltinOptions", table.integer(3, "B"), f"the type of {operator}'s options")
    options = table.table(4)
    wanted = options_of(builtin)
    if name == "NONE" or options is None or not wanted:
        return None, ""
    if name != wanted:
        return None, name
    broken = InputError(f"the file is corrupt: {operator} has broken options")
    try:
        found = getattr(schema, name + "T").InitFromBuf(options.file.data, options.position)
    except (struct.error, IndexError, TypeError, ValueError, OverflowError) as error:
        raise broken from error
    for field, value in vars(found).items():
        if hasattr(value, "__len__") and len(value) > LONGEST_OPTION:
            raise broken
        if field in _ENUMERATIONS:
            setattr(found, field, decoded(_ENUMERATIONS[field], value, f"{field} of {operator}"))
    return found, ""
