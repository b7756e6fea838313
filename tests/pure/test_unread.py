"""Every operator of TFLite, tflite-micro and ONNX is read, or the document says why not."""

from __future__ import annotations

import onnx
import pytest

from toolchain.frontends import tflite, unread
from toolchain.frontends.onnx.reader import READ_AWAY
from toolchain.frontends.tflite.options import members
from toolchain.ops import forms, specs

SIGNAL = (
    *("SignalDelay", "SignalEnergy", "SignalFftAutoScale", "SignalFilterBank"),
    *("SignalFilterBankLog", "SignalFilterBankSpectralSubtraction", "SignalFilterBankSquareRoot"),
    *("SignalFramer", "SignalIrfft", "SignalOverlapAdd", "SignalPCAN", "SignalRfft"),
    *("SignalStacker", "SignalWindow", "CIRCULAR_BUFFER"),
)
"""Custom operators of tflite-micro's `micro_mutable_op_resolver.h`."""


def listed(form: str) -> set[str]:
    return {name for group in unread.FORMATS[form] for name in group.operators}


def test_tflite() -> None:
    read = {name for spec in forms().values() if spec.tflite for name in spec.tflite.builtins}
    read |= set(tflite.READ_AWAY)
    known = {name for name in members("BuiltinOperator").values() if name != "CUSTOM"}
    left = {*known, *SIGNAL} - read - listed("TFLite")
    assert not {name for name in left if not name.startswith("STABLEHLO_")}
    assert not read & listed("TFLite")


def test_onnx() -> None:
    """Operators that ONNX defines as functions of others are those others."""
    kinds = (*forms().values(), *specs().values())
    read = {name for spec in kinds if spec.onnx for name in spec.onnx.operators}
    known = {
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if not schema.domain and not schema.deprecated
        if not schema.has_function and not schema.has_context_dependent_function
    }
    assert not known - read - set(READ_AWAY) - listed("ONNX")


@pytest.mark.parametrize("form", list(unread.FORMATS))
def test_a_line_leaves_out_what_is_read(form: str) -> None:
    names = unread.FORMATS[form][0].operators
    (line,) = [line for line in unread.lines(form, names[:1]) if names[1] in line]
    assert names[0] not in line.split(":")[0].split(", ")


def test_a_refusal_quotes_the_list() -> None:
    assert unread.reason("WHERE")[0] == unread.TFLITE[0].why
    assert "StableHLO" in unread.reason("STABLEHLO_SORT")[0]
    assert "random" in unread.reason("STABLEHLO_RNG_BIT_GENERATOR")[0]
