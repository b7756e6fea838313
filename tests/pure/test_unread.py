"""Every operator of TFLite, tflite-micro and ONNX is read, or the document says why not."""

from __future__ import annotations

import onnx
import pytest

from toolchain.frontends import tflite
from toolchain.frontends.onnx import operators as onnx_operators
from toolchain.frontends.tflite.options import members
from toolchain.frontends.tflite.unread import UNREAD, reason
from toolchain.frontends.unread import lines
from toolchain.ops import forms

SIGNAL = (
    *("SignalDelay", "SignalEnergy", "SignalFftAutoScale", "SignalFilterBank"),
    *("SignalFilterBankLog", "SignalFilterBankSpectralSubtraction", "SignalFilterBankSquareRoot"),
    *("SignalFramer", "SignalIrfft", "SignalOverlapAdd", "SignalPCAN", "SignalRfft"),
    *("SignalStacker", "SignalWindow", "CIRCULAR_BUFFER"),
)
"""Custom operators of tflite-micro's `micro_mutable_op_resolver.h`."""


LISTED = {"TFLite": UNREAD, "ONNX": onnx_operators.reasons()}


def test_tflite() -> None:
    read = {name for spec in forms().values() if spec.tflite for name in spec.tflite.builtins}
    read |= set(tflite.READ_AWAY)
    known = {name for name in members("BuiltinOperator").values() if name != "CUSTOM"}
    left = {*known, *SIGNAL} - read - LISTED["TFLite"].keys()
    assert not {name for name in left if not name.startswith("STABLEHLO_")}
    assert not read & LISTED["TFLite"].keys()


def test_onnx() -> None:
    """Operators that ONNX defines as functions of others are those others."""
    rows = onnx_operators.operators().values()
    read = {row.name for row in rows if row.computes} | set(onnx_operators.read_away())
    known = {
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if not schema.domain and not schema.deprecated
        if not schema.has_function and not schema.has_context_dependent_function
    }
    assert not known - read - LISTED["ONNX"].keys()
    assert not read & LISTED["ONNX"].keys()


@pytest.mark.parametrize("form", list(LISTED))
def test_a_line_leaves_out_what_is_read(form: str) -> None:
    first, second, *_ = LISTED[form]
    (line,) = [line for line in lines(LISTED[form], [first]) if second in line]
    assert first not in line.split(":")[0].split(", ")


def test_a_refusal_quotes_the_list() -> None:
    assert reason("WHERE") is UNREAD["WHERE"]
    assert "StableHLO" in reason("STABLEHLO_SORT").why
    assert "random" in reason("STABLEHLO_RNG_BIT_GENERATOR").why
