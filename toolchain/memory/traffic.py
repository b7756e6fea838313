"""How often a kernel reads and writes each of its operands, to find the most accessed tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from toolchain.ir import DType, Graph, Op
from toolchain.ops import spec_of

_ROWS_AT_ONCE = 2
"""Output channels that the kernels of convolution and fully connected compute side by side."""


@dataclass(frozen=True)
class Accesses:
    """Bytes read and written in one run of an operator, by tensor, and in its scratch."""

    tensors: Mapping[str, int]
    scratch: int


def accesses(op: Op, graph: Graph, scratch_bytes: int) -> Accesses:
    """An estimate for operators that have code.

    Outputs are written once. Without weights each input is read once. An int8 depthwise kernel
    reads its input once per multiply-accumulate. Any other kernel with scratch gathers its windows
    there once, as int16, and then reads them for every two output channels; without scratch it
    reads the input itself for every two.
    """
    macs = spec_of(op.kind).macs(op, graph)
    outputs = {name: graph.tensors[name].size_bytes for name in op.outputs}
    read = {n: graph.tensors[n].size_bytes for n in op.present_inputs()}
    inner = {name: size for name, size in read.items() if not graph.tensors[name].is_constant}
    scratch = 2 * scratch_bytes
    if macs and len(inner) < len(read) and inner:
        first = next(iter(inner))
        channels = max(graph.output(op).shape[-1:], default=1)
        if op.kind == "depthwise_conv2d" and graph.input(op, 0).dtype is DType.INT8:
            inner[first] = max(inner[first], macs)
        elif scratch_bytes:
            inner[first] = max(inner[first], macs // channels)
            scratch = max(scratch, 2 * (macs // channels) + 2 * macs // _ROWS_AT_ONCE)
        else:
            inner[first] = max(inner[first], macs // _ROWS_AT_ONCE)
    total = dict(outputs)
    for name, size in inner.items():
        total[name] = total.get(name, 0) + size
    return Accesses(MappingProxyType(total), scratch)
