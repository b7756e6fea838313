"""Bytes of a firmware, estimated before it is compiled."""

from __future__ import annotations

from toolchain.ir.plan import Plan

STACK_BYTES = 2048
"""Reserved for the stack; the firmware paints it and reports how much was used."""

_FIRMWARE_DATA_BYTES = 448
_FIRMWARE_CODE_BYTES = 5000
_BYTES_PER_FUNCTION = 1200
_BYTES_PER_OPERATOR = 180


def weight_bytes(plan: Plan) -> int:
    """Constant tensors of the graph, each counted once."""
    return sum(t.size_bytes for t in plan.graph.tensors.values() if t.is_constant)


def code_estimate_bytes(plan: Plan) -> int:
    """Code of the firmware: its own, one kernel per function used, one call per operator."""
    functions = {function for op in plan.operators for function in op.functions}
    return (
        _FIRMWARE_CODE_BYTES
        + _BYTES_PER_FUNCTION * len(functions)
        + _BYTES_PER_OPERATOR * plan.calls
    )


def firmware_data_bytes(plan: Plan) -> int:
    """.data, .bss and stack of the firmware, the arena apart."""
    return STACK_BYTES + _FIRMWARE_DATA_BYTES + 4 * plan.calls
