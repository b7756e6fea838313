"""int8 functions of one operand that TFLite evaluates once, into a table of 256 results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Int64,
    check_node,
    infer_unary,
    reference_unary,
    require_types,
    sample_unary,
)
from toolchain.ops.elementwise.kernels import unary_kernel
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Kernel
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode, WrittenOp

Float32 = NDArray[np.float32]


def _no_options(attributes: Attributes) -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Options:
    """What a function depends on besides its operand, and how TFLite's options store it."""

    attributes: type[Attributes] = Attributes
    read: Callable[[TfliteNode], Attributes] = lambda node: Attributes()
    options_type: str = ""
    written: Callable[[Attributes], Mapping[str, Any]] = _no_options
    sample: Callable[[np.random.Generator], Attributes] = lambda rng: Attributes()


def table_spec(
    kind: str,
    apply: Callable[[Op, Graph, Int64], Int64],
    sample: Callable[[np.random.Generator, Op], Graph],
    *,
    options: Options = Options(),
    output_scale: float | None = None,
    version: int = 2,
) -> OldForm:
    """The spec of an int8 function of one operand. `apply` maps stored values to stored values.

    `output_scale`, if given, is the only scale that TFLite accepts. `version` is the operator's
    version in files that tests write.
    """

    def reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return reference_unary(op, graph, inputs, lambda stored: apply(op, graph, stored))

    def select(op: Op, graph: Graph, core: Core) -> Kernel:
        require_types(op, graph, DType.INT8)
        scale = graph.output(op).q.scale
        if output_scale is not None and scale != output_scale:
            raise UnsupportedError(
                f"{kind} {op.name!r}: the output scale is {scale:g}, TFLite's kernels need "
                f"{output_scale:g}; convert with TFLite's int8 quantiser"
            )
        return unary_kernel(op, graph, lambda stored: apply(op, graph, stored))

    def read(node: TfliteNode) -> ReadOp:
        check_node(node, DType.INT8)
        return ReadOp(options.read(node), (0,))

    def write(op: Op, graph: Graph) -> WrittenOp:
        written = options.written(op.attributes)
        return WrittenOp(kind.upper(), options.options_type, written, version=version)

    def sampled(rng: np.random.Generator) -> Graph:
        return sample(rng, Op(kind, kind, ("x",), ("y",), options.sample(rng)))

    return OldForm(
        kind=kind,
        attributes=options.attributes,
        infer=infer_unary,
        reference=reference,
        select=select,
        sample=sampled,
        axes=elementwise_axes,
        tflite=TfliteBinding((kind.upper(),), read, write),
        dtype=DType.INT8,
        limits="int8" if output_scale is None else f"int8, output scale 1/{1 / output_scale:.0f}",
    )


def float_table(
    transform: Callable[[Op, Float32], Float32],
) -> Callable[[Op, Graph, Int64], Int64]:
    """The `apply` of a real function `transform`, computed in float32 (`LUTPopulate`)."""

    def apply(op: Op, graph: Graph, stored: Int64) -> Int64:
        x, y = graph.input(op, 0).q, graph.output(op).q
        with np.errstate(all="ignore"):
            real = np.float32(x.scale) * (stored - x.zero_point).astype(np.float32)
            scaled = transform(op, real) * (np.float32(1) / np.float32(y.scale))
        wide = scaled.astype(np.float64)
        wide = np.nan_to_num(wide, nan=_LOWEST, posinf=-_LOWEST, neginf=_LOWEST)
        rounded = np.copysign(np.floor(np.abs(wide) + 0.5), wide)
        clamped: Int64 = np.clip(rounded + y.zero_point, -128, 127).astype(np.int64)
        return clamped

    return apply


_LOWEST = -1e30
"""NaN becomes the lowest output, as x86 converts it."""


def float_table_spec(
    kind: str,
    transform: Callable[[Float32], Float32],
    sample_output: Callable[[np.random.Generator], Quantisation] | None = None,
    output_scale: float | None = None,
    version: int = 2,
) -> OldForm:
    """The spec of an int8 kind for the real function `transform`, without options.

    `sample_output` gives the output's quantisation in samples, by default one like the input's.
    """

    def sample(rng: np.random.Generator, op: Op) -> Graph:
        return sample_unary(rng, op, sample_output(rng) if sample_output else None)

    apply = float_table(lambda op, real: transform(real))
    return table_spec(kind, apply, sample, output_scale=output_scale, version=version)
