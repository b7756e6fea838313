"""An operator's builtin options: checked to be the operator's own, with every enum as a name.

No number in a file is used as an index, or given a meaning, before this module has checked it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

from toolchain.errors import InputError
from toolchain.frontends.tflite.flatbuffer import Table

_SCHEMA = Path(__file__).parent / "schema.json"
"""TFLite's schema; `scripts/renew_tflite_schema.py` explains and writes it."""
LONGEST_OPTION = 64
"""Items in a vector inside an operator's options: shapes and axes, nothing longer."""

_ENUMERATIONS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("idxOutType", "inDataType", "keyDtype", "outDataType", "outType"), "TensorType"
        ),
        **dict.fromkeys(("outputType", "quantizedBiasType", "valueDtype"), "TensorType"),
        "combiner": "CombinerType",
        "fusedActivationFunction": "ActivationFunctionType",
        "kernelType": "LSTMKernelType",
        "mode": "MirrorPadMode",
        "padding": "Padding",
        "type": "LSHProjectionType",
        "weightsFormat": "FullyConnectedOptionsWeightsFormat",
    }
)
"""Fields of the BuiltinOptions tables that hold an enum, and which."""

_OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"), "Pool2DOptions"),
        **dict.fromkeys(("MAXIMUM", "MINIMUM"), "MaximumMinimumOptions"),
        **dict.fromkeys(("MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX"), "ReducerOptions"),
        **dict.fromkeys(("REDUCE_MIN", "REDUCE_PROD", "SUM"), "ReducerOptions"),
        "L2_NORMALIZATION": "L2NormOptions",
        "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    }
)
"""Operators whose options are not named after them."""


@cache
def _schema() -> Any:
    return json.loads(_SCHEMA.read_text(encoding="utf-8"))


@cache
def members(enumeration: str) -> Mapping[int, str]:
    """Number to name of an enum of the schema."""
    return MappingProxyType({v: k for k, v in _schema()["enumerations"][enumeration].items()})


def decoded(enumeration: str, number: int, what: str) -> str:
    """The name of a number of an enum. Raises InputError, naming `what`, for an unknown number."""
    decoded_name = members(enumeration).get(number)
    if decoded_name is None:
        raise InputError(
            f"{what} is {number}, which {enumeration} of TFLite's schema does not have; "
            "the file is damaged or newer than this version of Thimble"
        )
    return decoded_name


@cache
def options_of(builtin: str) -> str:
    """The type of the options that an operator takes; '' if it takes none."""
    plain = {name.lower(): name for name in members("BuiltinOptions").values()}
    default = plain.get(f"{builtin.replace('_', '')}Options".lower(), "")
    return _OPTIONS.get(builtin, default)


def read_options(table: Table, builtin: str, operator: str) -> tuple[Any, str]:
    """The options of an Operator table by the schema's names; None if there are none.

    Its enums are names. If the options are another operator's, they are None, and the second value
    is their type. Raises InputError if they are broken.
    """
    if builtin == "STABLEHLO_COMPOSITE":
        return _composite(table), ""
    name = decoded("BuiltinOptions", table.integer(3, "B"), f"the type of {operator}'s options")
    options = table.table(4)
    wanted = options_of(builtin)
    if name == "NONE" or options is None or not wanted:
        return None, ""
    if name != wanted:
        return None, name
    broken = InputError(f"the file is corrupt: {operator} has broken options")
    try:
        values = _fields(options, name)
    except InputError as error:
        raise broken from error
    for field, value in vars(values).items():
        if hasattr(value, "__len__") and len(value) > LONGEST_OPTION:
            raise broken
        if field in _ENUMERATIONS:
            setattr(values, field, decoded(_ENUMERATIONS[field], value, f"{field} of {operator}"))
    return values, ""


def _composite(table: Table) -> Any:
    """Read `StableHLOCompositeOptions`, which the schema has in a second union: its subgraph."""
    options = table.table(12)
    if options is None:
        return None
    return SimpleNamespace(decompositionSubgraphIndex=options.integer(1, "i"))


def _fields(options: Table, name: str) -> SimpleNamespace:
    """Read a table of options: values by the schema's names. Raises InputError."""
    values = SimpleNamespace()
    for slot, (field, letter, default) in enumerate(_schema()["options"][name]):
        if letter == "s":
            setattr(values, field, options.string(slot) if options.has(slot) else default)
        elif letter.startswith("["):
            setattr(values, field, options.numbers(slot, letter[1:]))
        elif letter:
            setattr(values, field, options.scalar(slot, letter, default))
    return values
