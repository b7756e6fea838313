"""int8 functions of one operand that TFLite evaluates once, into a table of 256 results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
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

Float32 = NDArray[np.float32]


def _no_options(attributes: kit.Attributes) -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Options:
    """What a function depends on besides its operand, and how TFLite's options store it."""

    attributes: type[kit.Attributes] = kit.Attributes
    read: Callable[[kit.TfliteNode], kit.Attributes] = lambda node: kit.Attributes()
    options_type: str = ""
    written: Callable[[kit.Attributes], Mapping[str, Any]] = _no_options
    sample: Callable[[np.random.Generator], kit.Attributes] = lambda rng: kit.Attributes()


def table_spec(
    kind: str,
    apply: Callable[[kit.Operator[Any], Int64], Int64],
    sample: Callable[[np.random.Generator, kit.Op], kit.Graph],
    *,
    options: Options = Options(),
    output_scale: float | None = None,
    version: int = 2,
) -> kit.Form[Any]:
    """The spec of an int8 function of one operand. `apply` maps stored values to stored values.

    `output_scale`, if given, is the only scale that TFLite accepts. `version` is the operator's
    version in files that tests write.
    """

    def reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        return reference_unary(op, inputs, lambda stored: apply(op, stored))

    def select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        require_types(op, kit.DType.INT8)
        scale = op.y.q.scale
        if output_scale is not None and scale != output_scale:
            raise kit.UnsupportedError(
                f"{kind} {op.name!r}: the output scale is {scale:g}, TFLite's kernels need "
                f"{output_scale:g}; convert with TFLite's int8 quantiser"
            )
        return unary_kernel(op, lambda stored: apply(op, stored))

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        check_node(node, kit.DType.INT8)
        return kit.ReadOp(options.read(node), (0,))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        written = options.written(op.attributes)
        return kit.WrittenOp(kind.upper(), options.options_type, written, version=version)

    def sampled(rng: np.random.Generator) -> kit.Graph:
        return sample(rng, kit.Op(kind, kind, ("x",), ("y",), options.sample(rng)))

    return kit.Form(
        kind=kind,
        attributes=options.attributes,
        infer=infer_unary,
        reference=reference,
        select=select,
        sample=sampled,
        axes=elementwise_axes,
        tflite=kit.TfliteBinding((kind.upper(),), read, write),
        dtype=kit.DType.INT8,
        limits="int8" if output_scale is None else f"int8, output scale 1/{1 / output_scale:.0f}",
    )


def float_table(
    transform: Callable[[kit.Operator[Any], Float32], Float32],
) -> Callable[[kit.Operator[Any], Int64], Int64]:
    """The `apply` of a real function `transform`, computed in float32 (`LUTPopulate`)."""

    def apply(op: kit.AnyOperator, stored: Int64) -> Int64:
        x, y = op.x.q, op.y.q
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
    sample_output: Callable[[np.random.Generator], kit.Quantisation] | None = None,
    output_scale: float | None = None,
    version: int = 2,
) -> kit.Form[Any]:
    """The spec of an int8 kind for the real function `transform`, without options.

    `sample_output` gives the output's quantisation in samples, by default one like the input's.
    """

    def sample(rng: np.random.Generator, op: kit.Op) -> kit.Graph:
        return sample_unary(rng, op, sample_output(rng) if sample_output else None)

    apply = float_table(lambda op, real: transform(real))
    return table_spec(kind, apply, sample, output_scale=output_scale, version=version)
